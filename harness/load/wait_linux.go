package load

import (
	"time"

	"golang.org/x/sys/unix"
)

// preciseTimers has the kernel wake the calling thread on time, and not up to
// 50 µs later, which is how far it otherwise joins timers (prctl(2),
// PR_SET_TIMERSLACK). Where it can't be had, waits are that much less precise,
// and schedule_delay shows it.
func preciseTimers() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) }

// preciseSleep sleeps in the kernel, by its high-resolution timers; a signal
// ends it.
func preciseSleep(d time.Duration) {
	left := unix.NsecToTimespec(int64(d))
	_ = unix.Nanosleep(&left, nil)
}
