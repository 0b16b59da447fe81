//go:build !linux

package null

import (
	"net"
	"syscall"
	"time"
)

func askForStamps(_, _ string, _ syscall.RawConn) error { return nil }

// stamped reads a connection and notes when the first of what it read since
// `at` was set to 0 was read, in ns since the Unix epoch.
type stamped struct {
	at   int64
	conn *net.TCPConn
}

func newStamped(conn *net.TCPConn) (*stamped, error) { return &stamped{conn: conn}, nil }

func (s *stamped) Read(p []byte) (int, error) {
	n, err := s.conn.Read(p)
	if s.at == 0 {
		s.at = time.Now().UnixNano()
	}
	return n, err
}
