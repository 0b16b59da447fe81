package engine_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"assay/harness/engine"
)

// calls keeps each write apart.
type calls struct{ got []string }

func (c *calls) Write(p []byte) (int, error) { c.got = append(c.got, string(p)); return len(p), nil }

func TestLinesArePassedOnWhole(t *testing.T) {
	g := NewWithT(t)
	var to calls
	l := engine.NewLines(&to)
	for _, piece := range []string{"one\ntw", "o\r\n", "", "\n", "thr", "ee"} {
		_, _ = l.Write([]byte(piece))
	}
	g.Expect(to.got).To(Equal([]string{"one\n", "two\r\n", "\n"}))
	g.Expect(l.Close()).To(Succeed())
	g.Expect(l.Close()).To(Succeed())
	g.Expect(to.got).To(HaveLen(4))
	g.Expect(l.Last()).To(Equal([]string{"one", "two", "", "three"}))
}

func TestOnlyTheLastLinesAreKept(t *testing.T) {
	l := engine.NewLines(&bytes.Buffer{})
	for i := range 2 * engine.KeptLines {
		fmt.Fprintf(l, "%d\n", i)
	}
	NewWithT(t).Expect(l.Last()).To(HaveLen(engine.KeptLines))
	NewWithT(t).Expect(l.Last()[0]).To(Equal(fmt.Sprint(engine.KeptLines)))
}

func TestAnEndlessLineIsPassedOnAndNotHeld(t *testing.T) {
	g := NewWithT(t)
	var to calls
	l := engine.NewLines(&to)
	sent := strings.Repeat("x", 5<<20) + "\nend\n"
	for i := 0; i < len(sent); i += 4093 {
		_, _ = l.Write([]byte(sent[i:min(i+4093, len(sent))]))
	}
	g.Expect(strings.Join(to.got, "") == sent).To(BeTrue(), "nothing is lost")
	for _, piece := range to.got {
		g.Expect(len(piece)).To(BeNumerically("<=", 1<<20))
	}
	g.Expect(l.Last()).To(ContainElement("end"))
}

// FuzzLines: however output is cut, every byte of it arrives, in order.
func FuzzLines(f *testing.F) {
	f.Add([]byte("a\nb\r\n\n"), 1)
	f.Add([]byte("no end"), 3)
	f.Fuzz(func(t *testing.T, data []byte, size int) {
		size = max(1, size%100)
		var to bytes.Buffer
		l := engine.NewLines(&to)
		for i := 0; i < len(data); i += size {
			_, _ = l.Write(data[i:min(i+size, len(data))])
		}
		_ = l.Close()
		if len(data) > 0 && data[len(data)-1] != '\n' {
			data = append(data, '\n')
		}
		NewWithT(t).Expect(to.String()).To(Equal(string(data)))
	})
}
