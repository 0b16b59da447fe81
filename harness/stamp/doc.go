// Package stamp asks the kernel when it received what a socket reads, where the
// system can say.
package stamp
