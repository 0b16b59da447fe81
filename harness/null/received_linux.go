package null

import (
	"errors"
	"io"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"assay/harness/stamp"
)

// askForStamps has a listener's connections say when the kernel received what is
// read: the null server is late itself where hundreds of requests come at once,
// and a client is not to be blamed for that.
func askForStamps(_, _ string, raw syscall.RawConn) error {
	var set error
	err := raw.Control(func(fd uintptr) { set = stamp.Ask(int(fd)) })
	return errors.Join(err, set)
}

// stamped reads a connection and notes when the first of what it read since
// `at` was set to 0 had reached this host, in ns since the Unix epoch.
type stamped struct {
	at   int64
	conn *net.TCPConn
	raw  syscall.RawConn
}

func newStamped(conn *net.TCPConn) (*stamped, error) {
	raw, err := conn.SyscallConn()
	return &stamped{conn: conn, raw: raw}, err
}

func (s *stamped) Read(p []byte) (int, error) {
	var n, control int
	var failed error
	var oob [128]byte
	err := s.raw.Read(func(fd uintptr) bool {
		for {
			n, control, _, _, failed = unix.Recvmsg(int(fd), p, oob[:], 0)
			if failed != unix.EINTR {
				return failed != unix.EAGAIN
			}
		}
	})
	switch {
	case err != nil:
		return 0, err
	case failed != nil:
		return 0, failed
	case n == 0:
		return 0, io.EOF
	}
	if s.at == 0 {
		if s.at = stamp.Received(oob[:control]); s.at == 0 {
			s.at = time.Now().UnixNano()
		}
	}
	return n, nil
}
