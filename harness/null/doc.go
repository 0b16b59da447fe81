// Package null is a server that computes nothing: it answers every request at a
// declared pace and keeps when it did, so that what a client reports can be held
// against what was true.
package null
