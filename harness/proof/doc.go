// Package proof has the load client show, on the machine on which it is about
// to measure, how near its times are to the truth: it measures a server that
// computes nothing, and whose own account of what it did is at hand.
package proof
