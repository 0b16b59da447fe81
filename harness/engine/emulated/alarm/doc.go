// Package alarm waits until a moment, precisely. A timer of Go's runtime sleeps
// in whole milliseconds while a process is idle, so it is up to one late: as
// much as a whole step of a server whose time is scaled by twenty. On Linux an
// alarm is a timerfd, late by some tens of microseconds and using no CPU while
// it waits; elsewhere it is a runtime timer.
package alarm
