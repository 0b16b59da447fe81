package null

import (
	"io"
	"net"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// askForStamps has a socket, and every connection that it accepts, say when the
// kernel received what is read: the null server is late itself where hundreds
// of requests come at once, and a client is not to be blamed for that.
func askForStamps(_, _ string, raw syscall.RawConn) error {
	var set error
	err := raw.Control(func(fd uintptr) {
		set = os.NewSyscallError("setsockopt SO_TIMESTAMPING", unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPING,
			unix.SOF_TIMESTAMPING_RX_SOFTWARE|unix.SOF_TIMESTAMPING_SOFTWARE))
	})
	if err != nil {
		return err
	}
	return set
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
		if s.at = stampIn(oob[:control]); s.at == 0 {
			s.at = time.Now().UnixNano()
		}
	}
	return n, nil
}

// stampIn is the first of the three times of SCM_TIMESTAMPING, the kernel's
// own; 0 if there is none.
func stampIn(oob []byte) int64 {
	for len(oob) >= unix.CmsgLen(0) {
		header, data, rest, err := unix.ParseOneSocketControlMessage(oob)
		if err != nil {
			return 0
		}
		if header.Level == unix.SOL_SOCKET && header.Type == unix.SO_TIMESTAMPING && len(data) >= int(unsafe.Sizeof(unix.Timespec{})) {
			return (*unix.Timespec)(unsafe.Pointer(&data[0])).Nano()
		}
		oob = rest
	}
	return 0
}
