package stamp

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Ask has a socket, and every connection that it accepts, say when the kernel
// received what is read (SO_TIMESTAMPING, software receive times;
// Documentation/networking/timestamping.rst in the kernel's source).
func Ask(fd int) error {
	return os.NewSyscallError("setsockopt SO_TIMESTAMPING", unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPING,
		unix.SOF_TIMESTAMPING_RX_SOFTWARE|unix.SOF_TIMESTAMPING_SOFTWARE))
}

// Received finds the software timestamp among a read's control messages, the
// first of the three times of SCM_TIMESTAMPING: ns since the Unix epoch, 0 if
// there is none.
func Received(oob []byte) int64 {
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
