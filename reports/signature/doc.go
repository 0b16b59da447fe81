// Package signature signs a bundle's sums with an SSH key and checks who has, as
// ssh-keygen -Y sign and -Y verify do in the namespace "assay": either program's
// signature is the other's.
package signature
