//go:build !linux

package load

import "time"

// preciseTimers has nothing to set here.
func preciseTimers() {}

// preciseSleep is as precise as the runtime's timers are.
func preciseSleep(d time.Duration) { time.Sleep(d) }
