package client

import (
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"assay/harness/stamp"
)

// stampedConn reads with recvmsg, so that the kernel's receive time comes with
// the bytes. Everything else is the TCP connection's own.
type stampedConn struct {
	*net.TCPConn
	raw    syscall.RawConn
	buffer []byte // of the Read under way
	n      int
	err    error
	kernel int64 // receive time of the last read, ns since the Unix epoch; 0: none came with it
	oob    [128]byte
	read   func(fd uintptr) bool // bound once: a closure a read would be garbage a read
	closed atomic.Bool
}

// stamping is how many connections are open that were seen to be stamped. The
// kernel stamps for the whole host as long as one socket asks for it.
var stamping atomic.Int64

// stamped asks the socket for software receive timestamps (SO_TIMESTAMPING,
// Documentation/networking/timestamping.rst in the kernel's source).
func stamped(c *net.TCPConn) (stamper, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	var setErr error
	err = raw.Control(func(fd uintptr) {
		setErr = stamp.Ask(int(fd))
	})
	if err = errors.Join(err, setErr); err != nil {
		return nil, err
	}
	// Beside a connection that is stamped there is nothing to wait for: this one
	// has asked by now, so that stamping stays on when the other is closed.
	if stamping.Load() == 0 {
		if err := awaitStamps(); err != nil {
			return nil, err
		}
	}
	stamping.Add(1)
	s := &stampedConn{TCPConn: c, raw: raw}
	s.read = s.recvmsg
	return s, nil
}

// Close closes the connection, which no longer keeps stamping on.
func (s *stampedConn) Close() error {
	if !s.closed.Swap(true) {
		stamping.Add(-1) // before: nobody may count on it while it goes
	}
	return s.TCPConn.Close()
}

// awaitStamps returns once what is received is stamped. The kernel stamps
// packets only while some socket asks for it, and begins a little after the
// first has asked, from a work queue: a response that comes at once would have
// no time. While the connection that asked is open, stamping stays on.
func awaitStamps() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	defer unix.Close(fd)
	if err := stamp.Ask(fd); err != nil {
		return err
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return os.NewSyscallError("bind", err)
	}
	self, err := unix.Getsockname(fd)
	if err != nil {
		return os.NewSyscallError("getsockname", err)
	}
	const longest, pause = 500 * time.Millisecond, 100 * time.Microsecond
	var oob [128]byte
	for began := time.Now(); time.Since(began) < longest; time.Sleep(pause) { // the work queue needs a processor too
		if err := unix.Sendto(fd, []byte{0}, 0, self); err != nil {
			return os.NewSyscallError("sendto", err)
		}
		ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		if _, err := unix.Poll(ready, int(longest.Milliseconds())); err != nil && err != unix.EINTR {
			return os.NewSyscallError("poll", err)
		}
		_, n, _, _, err := unix.Recvmsg(fd, make([]byte, 1), oob[:], 0)
		if err == nil && stamp.Received(oob[:n]) != 0 {
			return nil
		}
	}
	return errors.New("the kernel does not say when it received what it was sent on loopback")
}

// Read reads once; received then says when the kernel got the last of it.
func (s *stampedConn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	s.buffer = p
	err := s.raw.Read(s.read)
	s.buffer = nil
	switch {
	case err != nil:
		return 0, err // the deadline, or the connection was closed on this side
	case s.err != nil:
		return 0, &net.OpError{Op: "read", Net: "tcp", Source: s.LocalAddr(), Addr: s.RemoteAddr(), Err: os.NewSyscallError("recvmsg", s.err)}
	case s.n == 0:
		return 0, io.EOF
	}
	return s.n, nil
}

// recvmsg is called until it says that it is done; it must not wait itself.
func (s *stampedConn) recvmsg(fd uintptr) bool {
	for {
		n, oob, _, _, err := unix.Recvmsg(int(fd), s.buffer, s.oob[:], 0)
		switch err {
		case unix.EINTR:
			continue
		case unix.EAGAIN:
			return false
		}
		s.n, s.err, s.kernel = n, err, 0
		if err == nil && oob > 0 {
			s.kernel = stamp.Received(s.oob[:oob])
		}
		return true
	}
}

func (s *stampedConn) received() int64 { return s.kernel }
