package suite

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"

	"assay/harness/record"
)

// progress is the live line: what runs, how many of its attempts have ended,
// how many of those failed, and the time since the run began. Where the
// output is no terminal it says each lifecycle and each open loop once and
// nothing else, so that a CI's log stays short.
type progress struct {
	out      io.Writer
	live     bool
	failed   atomic.Int64
	finished atomic.Int64
	began    time.Time

	mu    sync.Mutex
	text  string
	bars  *mpb.Progress
	bar   *mpb.Bar
	total int
}

// barWidth is the bar's, in columns.
const barWidth = 24

func newProgress(out *os.File) *progress {
	live := term.IsTerminal(int(out.Fd()))
	if !live && os.Getenv("CI") == "" {
		// Ginkgo gives a suite a pipe, wherever its own output goes. Where somebody
		// sits at a terminal, the line goes there.
		if terminal, err := os.OpenFile("/dev/tty", os.O_WRONLY, 0); err == nil {
			if live = term.IsTerminal(int(terminal.Fd())); live {
				out = terminal
			} else {
				_ = terminal.Close()
			}
		}
	}
	return &progress{out: out, live: live, began: time.Now()}
}

// silent is a progress that nobody sees.
func silent() *progress { return &progress{out: io.Discard, began: time.Now()} }

// lifecycle says where the run is between waves.
func (p *progress) lifecycle(text string) {
	p.close()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.live {
		fmt.Fprintf(p.out, "%s  %s\n", p.elapsed(), text)
		return
	}
	p.open(text, 0)
}

// step says what a lifecycle has come to where there is no live line to say it.
func (p *progress) step(text string) {
	if !p.live {
		p.lifecycle(text)
	}
}

// wave begins the line of a wave of n attempts.
func (p *progress) wave(text string, n int) {
	if !p.live {
		return
	}
	p.close()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open(text, n)
}

func (p *progress) open(text string, n int) {
	p.text, p.total = text, n
	p.failed.Store(0)
	p.finished.Store(0)
	p.bars = mpb.New(mpb.WithOutput(p.out), mpb.WithRefreshRate(200*time.Millisecond))
	// It is drawn from the counters, since attempts touch nothing else.
	filled := mpb.BarFillerFunc(func(w io.Writer, _ decor.Statistics) error {
		if n == 0 {
			return nil
		}
		done := barWidth * min(int(p.finished.Load()), n) / n
		_, err := fmt.Fprintf(w, "[%s%s]", strings.Repeat("=", done), strings.Repeat(" ", barWidth-done))
		return err
	})
	bar, err := p.bars.Add(int64(max(n, 1)), filled, mpb.BarRemoveOnComplete(),
		mpb.PrependDecorators(decor.Any(func(decor.Statistics) string { return p.elapsed() + "  " + text + " " })),
		mpb.AppendDecorators(decor.Any(func(decor.Statistics) string {
			if n == 0 {
				return ""
			}
			if failed := p.failed.Load(); failed > 0 {
				return fmt.Sprintf(" %d of %d ended, %d failed", p.finished.Load(), n, failed)
			}
			return fmt.Sprintf(" %d of %d ended", p.finished.Load(), n)
		})))
	if err != nil { // it is closed already, and draws nothing
		p.bars = nil
		return
	}
	p.bar = bar
}

// ended counts one attempt. It is called while a wave is timed, so it only
// touches counters; the line draws itself on its own clock.
func (p *progress) ended(outcome record.Outcome) {
	if outcome != record.OK {
		p.failed.Add(1)
	}
	p.finished.Add(1)
}

// close removes the line.
func (p *progress) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bars == nil {
		return
	}
	p.bar.Abort(true)
	p.bars.Wait()
	p.bars, p.bar = nil, nil
}

func (p *progress) elapsed() string {
	d := time.Since(p.began).Round(time.Second)
	return fmt.Sprintf("%02d:%02d", int(d.Minutes()), int(d.Seconds())%60)
}
