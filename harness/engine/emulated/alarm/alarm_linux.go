package alarm

import (
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// descriptor is a timerfd. It is read through the runtime's poller, which a
// closing file leaves at once.
type descriptor struct {
	file   *os.File
	closed atomic.Bool
}

// precise is nil where the kernel gives no timerfd.
func precise() Alarm {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil
	}
	return &descriptor{file: os.NewFile(uintptr(fd), "timerfd")}
}

func (a *descriptor) Wait(at time.Time) bool {
	until := time.Until(at)
	if until <= 0 { // a timerfd that is set to 0 or less is switched off, or refuses
		return !a.closed.Load()
	}
	left := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(until))}
	raw, err := a.file.SyscallConn()
	if err != nil {
		return false
	}
	var set error
	if err := raw.Control(func(fd uintptr) { set = unix.TimerfdSettime(int(fd), 0, &left, nil) }); err != nil || set != nil {
		return false
	}
	var expirations [8]byte
	_, err = a.file.Read(expirations[:])
	return err == nil
}

func (a *descriptor) Close() {
	a.closed.Store(true)
	_ = a.file.Close()
}
