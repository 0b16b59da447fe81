// Package endpoint is a server that somebody else runs: it is not started, not
// stopped, and most of what is known of another engine is null here, with the
// reason.
package endpoint
