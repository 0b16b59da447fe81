package load

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestSocketsAndPortsByTheKernelsAccount(t *testing.T) {
	g := NewWithT(t)
	n, ok := tcpSockets("sockets: used 290\nTCP: inuse 5 orphan 0 tw 2 alloc 8 mem 1\nUDP: inuse 3 mem 0\n")
	g.Expect([]any{n, ok}).To(Equal([]any{7, true}))
	for _, broken := range []string{"", "TCP:\n", "TCP: inuse many tw 2\n", "UDP: inuse 3\n"} {
		_, ok := tcpSockets(broken)
		g.Expect(ok).To(BeFalse(), broken)
	}
	n, ok = width("32768\t60999\n")
	g.Expect([]any{n, ok}).To(Equal([]any{28232, true}))
	for _, broken := range []string{"", "1", "2 1", "a b"} {
		_, ok := width(broken)
		g.Expect(ok).To(BeFalse(), broken)
	}
}
