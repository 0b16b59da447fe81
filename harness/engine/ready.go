package engine

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

// ReadyOptions say how readiness is looked for.
type ReadyOptions struct {
	Path string        // the health endpoint; empty: /health
	Poll time.Duration // between two looks; 0: 50 ms
	Mark func(Moment)  // takes FirstListening and Ready as they pass; may be nil
}

// AwaitReady polls the server's own health endpoint until it answers with a
// 2xx status. An answer of any status is the first moment of listening; a
// connection that is accepted and closed is not, since docker-proxy does that
// before there is a server. Each look has a connection of its own. The error
// wraps [ErrExited] as soon as the server has exited, and [ErrNotReady], with
// the last answer seen, when ctx ends first.
func AwaitReady(ctx context.Context, server Server, o ReadyOptions) error {
	if o.Path == "" {
		o.Path = "/health"
	}
	if o.Poll <= 0 {
		o.Poll = 50 * time.Millisecond
	}
	mark := func(p Phase) {
		if o.Mark != nil {
			o.Mark(Moment{Phase: p, At: time.Now(), Provenance: "client_observed"})
		}
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	tick := time.NewTicker(o.Poll)
	defer tick.Stop()
	listening := false
	last := "no look was taken"
	for {
		status, answer, err := look(ctx, client, server.URL()+o.Path, o.Poll)
		switch {
		case err == nil && !listening:
			listening = true
			mark(FirstListening)
		case err != nil && ctx.Err() == nil:
			last = err.Error()
		}
		if err == nil {
			last = fmt.Sprintf("%s answered %d %s", o.Path, status, answer)
			if status/100 == 2 {
				mark(Ready)
				return nil
			}
		}
		select {
		case <-server.Done():
			return exited(server.Exit())
		case <-ctx.Done():
			return fmt.Errorf("%w: %w; last seen: %s", ErrNotReady, context.Cause(ctx), last)
		case <-tick.C:
		}
	}
}

// look asks once. It may wait longer than a poll, since a server that is busy
// loading may answer late; what bounds it is how long a person would wait.
func look(ctx context.Context, client *http.Client, url string, poll time.Duration) (int, string, error) {
	ctx, cancel := context.WithTimeout(ctx, max(5*time.Second, poll))
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(response.Body, 200))
	return response.StatusCode, string(body), nil
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
	}
	text := fmt.Sprintf("%s before it was ready", how)
	for _, line := range e.LastLines {
		text += "\n  " + line
	}
	return fmt.Errorf("%w %s", ErrExited, text)
}
