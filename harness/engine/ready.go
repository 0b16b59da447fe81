package engine

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"assay/harness/record"
)

// ReadyOptions say how readiness is looked for.
type ReadyOptions struct {
	Path string        // the health endpoint; empty: /health
	Poll time.Duration // between two looks; 0: 50 ms
	Mark func(Moment)  // takes FirstListening and Ready as they pass; may be nil
}

// A Keyed server wants a key with every question, its health's included.
type Keyed interface {
	// Authorize puts the key on a request.
	Authorize(*http.Request)
}

// patience is how long one look may take: a server that is busy loading may
// answer late, and its answer is worth having.
const patience = 5 * time.Second

// Authorizer adds a server's key to a request; of one that wants none it leaves
// the request as it is.
func Authorizer(s Server) func(*http.Request) {
	if keyed, ok := s.(Keyed); ok {
		return keyed.Authorize
	}
	return func(*http.Request) {}
}

// AwaitReady polls the server's own health endpoint until it answers with a
// 2xx status. An answer of any status is the first moment of listening; a
// connection that is accepted and closed is not, since docker-proxy does that
// before there is a server. Each look has a connection of its own, goes past
// every proxy, and follows no redirection: it is this server that must be
// healthy. The error wraps [ErrExited] as soon as the server has exited, even
// while a look waits for its answer, and [ErrNotReady], with the last answer
// seen, when ctx ends first.
func AwaitReady(ctx context.Context, server Server, o ReadyOptions) error {
	if o.Path == "" {
		o.Path = "/health"
	}
	if o.Poll <= 0 {
		o.Poll = 50 * time.Millisecond
	}
	mark := func(p Phase, at time.Time) {
		if o.Mark != nil {
			o.Mark(Moment{Phase: p, At: at, Provenance: "client_observed"})
		}
	}
	looking, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-server.Done():
			cancel()
		case <-looking.Done():
		}
	}()
	client := plainClient()
	prepare := Authorizer(server)
	tick := time.NewTicker(o.Poll)
	defer tick.Stop()
	listening := false
	last := "no look was taken"
	for {
		seen, err := look(looking, client, server.URL()+o.Path, prepare)
		switch {
		case err == nil:
			last = fmt.Sprintf("%s answered %d %s", o.Path, seen.status, seen.text)
			if !listening {
				listening = true
				mark(FirstListening, seen.at)
			}
			if seen.status/100 == 2 {
				mark(Ready, seen.at)
				return nil
			}
		case looking.Err() == nil:
			last = err.Error()
		}
		select {
		case <-looking.Done():
		case <-tick.C:
		}
		select {
		case <-server.Done():
			return exited(server.Exit())
		default:
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%w: %w; last seen: %s", ErrNotReady, context.Cause(ctx), last)
		}
	}
}

// plainClient asks a server itself: no proxy, no redirection, and a connection
// for each question, closed with its answer, so that none is open while the
// server is measured.
func plainClient() *http.Client {
	return &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// answer is what one look saw.
type answer struct {
	at     time.Time // when the status was read
	status int
	text   string // the beginning of the body
}

func look(ctx context.Context, client *http.Client, url string, prepare func(*http.Request)) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return answer{}, err
	}
	prepare(request)
	response, err := client.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	a := answer{at: time.Now(), status: response.StatusCode}
	body, _ := io.ReadAll(io.LimitReader(response.Body, 200))
	a.text = string(body)
	return a, nil
}

func exited(e Exit) error {
	how := "with no exit code known"
	switch {
	case e.OOMKilled:
		how = "killed for memory"
	case e.Signal != "":
		how = "by " + e.Signal
	case e.Code != nil:
		how = fmt.Sprintf("with code %d", *e.Code)
	case e.Reason != "":
		how = "with no exit code known: " + e.Reason
	}
	text := fmt.Sprintf("%s before it was ready", how)
	for _, line := range e.LastLines {
		text += "\n  " + record.Visible(line)
	}
	return fmt.Errorf("%w %s", ErrExited, text)
}
