package alarm

import (
	"sync"
	"time"
)

// Alarm wakes one goroutine, again and again.
type Alarm interface {
	// Wait returns true once the moment has come, at once if it is past, and
	// false if the alarm was closed instead.
	Wait(at time.Time) bool
	// Close ends a Wait that is under way and all that follow. It may be called
	// more than once.
	Close()
}

// New makes the most precise alarm that this system has.
func New() Alarm {
	if a := precise(); a != nil {
		return a
	}
	return Timer()
}

// Timer makes an alarm from a timer of Go's runtime, as late as those are. It
// follows the clock of a testing/synctest bubble.
func Timer() Alarm {
	a := &timer{timer: time.NewTimer(time.Hour), closed: make(chan struct{})}
	a.timer.Stop()
	return a
}

type timer struct {
	timer  *time.Timer
	once   sync.Once
	closed chan struct{}
}

func (a *timer) Wait(at time.Time) bool {
	a.timer.Reset(time.Until(at))
	defer a.timer.Stop()
	select {
	case <-a.closed:
		return false
	case <-a.timer.C:
		return true
	}
}

func (a *timer) Close() { a.once.Do(func() { close(a.closed) }) }
