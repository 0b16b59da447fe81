// Package clock is the one monotonic clock of a lifecycle. Every duration that
// enters a result is a difference of two of its readings: integer nanoseconds
// since the lifecycle's start, with one wall-clock anchor. Times that the
// kernel gives on CLOCK_REALTIME are brought to it by bracketed readings of
// both clocks, and the bound of that conversion is kept with them.
package clock
