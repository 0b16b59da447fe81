package engine_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"assay/harness/engine"
)

// server is what AwaitReady needs of one.
type server struct {
	engine.Server
	url  string
	done chan struct{}
}

func (s server) URL() string           { return s.url }
func (s server) Done() <-chan struct{} { return s.done }
func (s server) Exit() engine.Exit {
	return engine.Exit{OOMKilled: true, LastLines: []string{"allocating"}}
}

func TestAnyAnswerIsListeningAndAHealthyOneIsReady(t *testing.T) {
	g := NewWithT(t)
	var looks atomic.Int64
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if looks.Add(1) < 4 {
			http.Error(w, "loading", http.StatusServiceUnavailable)
		}
	}))
	defer h.Close()
	var moments []engine.Moment
	err := engine.AwaitReady(t.Context(), server{url: h.URL}, engine.ReadyOptions{Poll: time.Millisecond, Mark: func(m engine.Moment) { moments = append(moments, m) }})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(looks.Load()).To(Equal(int64(4)))
	g.Expect(moments).To(HaveLen(2))
	g.Expect(moments[0].Phase).To(Equal(engine.FirstListening))
	g.Expect(moments[1].At.After(moments[0].At)).To(BeTrue())
}

// TestAPortThatAcceptsAndClosesIsNotListening is what Docker's proxy does
// before there is a server behind it.
func TestAPortThatAcceptsAndClosesIsNotListening(t *testing.T) {
	g := NewWithT(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	defer l.Close()
	accepted := make(chan struct{}, 100)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.Close()
			accepted <- struct{}{}
		}
	}()
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-accepted; <-accepted; cancel() }()
	err = engine.AwaitReady(ctx, server{url: "http://" + l.Addr().String()}, engine.ReadyOptions{Poll: time.Millisecond, Mark: func(m engine.Moment) { t.Error("it was called ", m.Phase) }})
	g.Expect(err).To(MatchError(engine.ErrNotReady))
}

func TestWhatWasSeenLastIsInTheError(t *testing.T) {
	g := NewWithT(t)
	h := httptest.NewServer(http.NotFoundHandler())
	defer h.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := engine.AwaitReady(ctx, server{url: h.URL}, engine.ReadyOptions{Path: "/ping", Poll: time.Millisecond})
	g.Expect(err).To(MatchError(engine.ErrNotReady))
	g.Expect(err).To(MatchError(ContainSubstring("/ping answered 404")))
}

func TestAServerThatExitedIsNotWaitedFor(t *testing.T) {
	g := NewWithT(t)
	done := make(chan struct{})
	close(done)
	err := engine.AwaitReady(t.Context(), server{url: "http://127.0.0.1:1", done: done}, engine.ReadyOptions{Poll: time.Millisecond})
	g.Expect(err).To(MatchError(engine.ErrExited))
	g.Expect(err).To(MatchError(And(ContainSubstring("killed for memory"), ContainSubstring("allocating"))))
}

func TestWhatAServerDoesNotServeIsNullWithTheReason(t *testing.T) {
	g := NewWithT(t)
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/models" {
			_, _ = w.Write([]byte(`{"data":[{"id":"m","max_model_len":2048}]}`))
			return
		}
		http.NotFound(w, r)
	}))
	defer h.Close()
	id := engine.Ask(t.Context(), h.URL)
	g.Expect(id["models"].Value).To(Equal([]string{"m"}))
	g.Expect(id["max_model_len"].Value).To(Equal(2048))
	g.Expect(id["engine_version"].Value).To(BeNil())
	g.Expect(id["engine_version"].Reason).To(ContainSubstring("404"))
}

// TestAServerThatExitsInTheMiddleOfALookIsSeen: the look itself would take
// seconds to give up.
func TestAServerThatExitsInTheMiddleOfALookIsSeen(t *testing.T) {
	g := NewWithT(t)
	asked, done, late := make(chan struct{}), make(chan struct{}), make(chan struct{})
	h := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(asked)
		<-late
	}))
	defer h.Close()
	defer close(late)
	go func() { <-asked; close(done) }()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second) // under a look's patience
	defer cancel()
	err := engine.AwaitReady(ctx, server{url: h.URL, done: done}, engine.ReadyOptions{Poll: time.Millisecond})
	g.Expect(err).To(MatchError(engine.ErrExited))
	g.Expect(ctx.Err()).NotTo(HaveOccurred(), "it waited for the look's end")
}

func TestARedirectionIsNotThisServersHealth(t *testing.T) {
	g := NewWithT(t)
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the other server was asked") }))
	defer other.Close()
	h := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusFound))
	defer h.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := engine.AwaitReady(ctx, server{url: h.URL}, engine.ReadyOptions{Poll: time.Millisecond})
	g.Expect(err).To(MatchError(engine.ErrNotReady))
	g.Expect(err).To(MatchError(ContainSubstring("answered 302")))
}

// TestEachLookHasAConnectionOfItsOwn, and none is open once the server is
// ready.
func TestEachLookHasAConnectionOfItsOwn(t *testing.T) {
	g := NewWithT(t)
	var looks, opened, open atomic.Int64
	h := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if looks.Add(1) < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	h.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		switch s {
		case http.StateNew:
			opened.Add(1)
			open.Add(1)
		case http.StateClosed:
			open.Add(-1)
		}
	}
	h.Start()
	defer h.Close()
	g.Expect(engine.AwaitReady(t.Context(), server{url: h.URL}, engine.ReadyOptions{Poll: time.Millisecond})).To(Succeed())
	engine.Ask(t.Context(), h.URL)
	g.Expect(opened.Load()).To(Equal(int64(6)))
	g.Eventually(open.Load).Should(BeZero())
}
