// Package load decides when requests are released: a wave is opened, settled
// and let go by one barrier, each attempt is made once, and everything that
// was seen comes back as records.
package load
