package clock_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"assay/harness/clock"
)

func TestReadingsOnlyGrow(t *testing.T) {
	g := NewWithT(t)
	c := clock.Start()
	last := c.Now()
	for range 1000 {
		now := c.Now()
		g.Expect(now).To(BeNumerically(">=", last))
		last = now
	}
	g.Expect(c.At(c.Time(12345))).To(Equal(int64(12345)))
	g.Expect(c.Anchor()).To(BeTemporally("~", time.Now(), time.Minute))
}

func TestABracketHoldsTheWallClock(t *testing.T) {
	g := NewWithT(t)
	c := clock.Start()
	r := c.Read()
	g.Expect(r.After).To(BeNumerically(">=", r.Before))
	g.Expect(r.Bound()).To(BeNumerically(">=", (r.After-r.Before)/2))
	g.Expect(time.Unix(0, r.Wall)).To(BeTemporally("~", time.Now(), time.Minute))
}

// reading makes one whose bracket is 2·bound wide around mid.
func reading(mid, wall, bound int64) clock.Reading {
	return clock.Reading{Before: mid - bound, Wall: wall, After: mid + bound}
}

func TestConversion(t *testing.T) {
	const second = int64(time.Second)
	for _, test := range []struct {
		name       string
		conversion clock.Conversion
		wall, want int64
		stepped    bool
		bound      int64
	}{
		{"steady", clock.Conversion{First: reading(0, 1000*second, 100), Last: reading(second, 1001*second, 100)}, 1000*second + 7, 7, false, 100},
		{"the wider bracket is the bound", clock.Conversion{First: reading(0, 1000*second, 100), Last: reading(second, 1001*second, 900)}, 1000 * second, 0, false, 900},
		{"slewed by 100 ppm, halfway", clock.Conversion{First: reading(0, 1000*second, 0), Last: reading(second, 1001*second+100_000, 0)}, 1000*second + (second+100_000)/2, second / 2, false, 100_000},
		{"stepped forward by 20 ms", clock.Conversion{First: reading(0, 1000*second, 100), Last: reading(second, 1001*second+20_000_000, 100)}, 1000 * second, 0, true, 20_000_100},
		{"stepped back by 20 ms", clock.Conversion{First: reading(0, 1000*second, 100), Last: reading(second, 1001*second-20_000_000, 100)}, 1000 * second, 0, true, 20_000_100},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(test.conversion.Stepped()).To(Equal(test.stepped))
			g.Expect(test.conversion.Monotonic(test.wall)).To(BeNumerically("~", test.want, 1))
			g.Expect(test.conversion.Bound()).To(BeNumerically("~", test.bound, 1))
		})
	}
}
