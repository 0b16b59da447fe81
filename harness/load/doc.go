// Package load releases requests: together in a wave, behind one barrier; one
// after the other in a sequence; or each at its own drawn moment in an open
// loop, whatever the server does. Each attempt is made once, and everything
// that was seen comes back as records.
package load
