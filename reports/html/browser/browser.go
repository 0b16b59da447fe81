package browser

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Variable names a browser in place of one that is found, and asks for it by
// name: then what needs one fails without it.
const Variable = "ASSAY_CHROMIUM"

// Find is where Chromium is: what [Variable] names, or the first of the usual
// names that is there.
func Find() (string, error) {
	if name := os.Getenv(Variable); name != "" {
		path, err := exec.LookPath(name)
		if err != nil {
			return "", fmt.Errorf("%s=%s is no browser: %w", Variable, name, err)
		}
		return path, nil
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("no Chromium on this machine: install Debian's chromium, or name another with %s=PATH", Variable)
}

// View is how a page is looked at.
type View struct {
	Width, Height int // of the window, in CSS pixels
	Dark          bool
	Print         bool // as it would be printed
}

// Tab is a page that is open.
type Tab struct {
	ctx     context.Context
	close   []context.CancelFunc
	address string

	mu       sync.Mutex
	messages []string
	asked    []string
}

// Open opens a file in a browser of its own. The tab has to be closed.
func Open(ctx context.Context, browser, file string, v View) (*Tab, error) {
	path, err := filepath.Abs(file)
	if err != nil {
		return nil, err
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(browser), chromedp.Flag("disable-background-networking", true))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // it refuses one to root
	}
	allocated, endBrowser := chromedp.NewExecAllocator(ctx, options...)
	t := &Tab{}
	inside, endTab := chromedp.NewContext(allocated, chromedp.WithListener(t.hear))
	t.ctx, t.close, t.address = inside, []context.CancelFunc{endTab, endBrowser}, (&url.URL{Scheme: "file", Path: path}).String()
	if err := t.Look(v); err != nil {
		t.Close()
		return nil, fmt.Errorf("%s can't be opened in %s: %w", file, browser, err)
	}
	return t, nil
}

// Look opens the page anew, in another view. What it said and asked for before
// is forgotten.
func (t *Tab) Look(v View) error {
	t.mu.Lock()
	t.messages, t.asked = nil, nil
	t.mu.Unlock()
	scheme, medium := "light", "screen"
	if v.Dark {
		scheme = "dark"
	}
	if v.Print {
		medium = "print"
	}
	return chromedp.Do(t.ctx,
		command(network.Enable, network.EnableParams{}), command(log.Enable, cdp.Empty{}), command(runtime.Enable, cdp.Empty{}),
		command(emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: int64(v.Width), Height: int64(v.Height), DeviceScaleFactor: 1, Mobile: v.Width < 600}),
		command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: medium, Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}),
		chromedp.Navigate(t.address),
	)
}

// command is a step that gives nothing.
func command[P any](c cdp.Command[P, cdp.Empty], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, c, params)
		return err
	})
}

// hear keeps what the page says and asks for.
func (t *Tab) hear(event any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		text := string(e.Type)
		for _, a := range e.Args {
			text += " " + string(a.Value)
		}
		t.messages = append(t.messages, text)
	case *runtime.EventExceptionThrown:
		t.messages = append(t.messages, (&chromedp.ExceptionError{ExceptionDetails: e.ExceptionDetails}).Error())
	case *log.EventEntryAdded:
		t.messages = append(t.messages, fmt.Sprintf("%s: %s", e.Entry.Level, e.Entry.Text))
	case *network.EventRequestWillBeSent:
		t.asked = append(t.asked, e.Request.URL)
	}
}

// Messages are what the page printed, threw and was told off for.
func (t *Tab) Messages() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]string{}, t.messages...)
}

// Asked are the addresses that the page asked for, its own first.
func (t *Tab) Asked() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]string{}, t.asked...)
}

// Evaluate runs an expression in the page and reads what it gives. Scripts of
// tests are run so, which the page's policy does not hold back.
func Evaluate[T any](t *Tab, expression string) (T, error) {
	out, err := chromedp.Run(t.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		err = fmt.Errorf("%s: %w", expression, err)
	}
	return out, err
}

// Press presses a key, as package kb of chromedp names it.
func (t *Tab) Press(key string) error { return chromedp.Do(t.ctx, chromedp.KeyEvent(key)) }

// Move moves the mouse to a place in the window.
func (t *Tab) Move(x, y float64) error {
	return chromedp.Do(t.ctx, chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, x, y))
}

// Picture is a PNG of a part of the page, in CSS pixels from its upper left
// corner; height 0 is to its end.
func (t *Tab) Picture(width, height float64) ([]byte, error) {
	if height == 0 {
		all, err := Evaluate[float64](t, "document.documentElement.scrollHeight")
		if err != nil {
			return nil, err
		}
		height = all
	}
	beyond := true
	picture, err := chromedp.Call(t.ctx, page.CaptureScreenshot, page.CaptureScreenshotParams{
		CaptureBeyondViewport: &beyond, Clip: &page.Viewport{Width: width, Height: height, Scale: 1},
	})
	return picture.Data, err
}

// Close ends the browser.
func (t *Tab) Close() {
	for _, end := range t.close {
		end()
	}
}
