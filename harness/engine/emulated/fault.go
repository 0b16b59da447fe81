package emulated

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"
)

// The faults that can be declared, by the names that plans use.
const (
	// Refuse closes the connection without an answer.
	Refuse = "refuse"
	// StallBefore keeps the first token back, for For or for good.
	StallBefore = "stall_before_first"
	// StallAfter keeps everything back after After tokens, for For or for good.
	StallAfter = "stall_after"
	// Cut ends the connection in order (FIN) after After tokens, in the middle
	// of the response.
	Cut = "cut"
	// Reset breaks the connection (RST) after After tokens.
	Reset = "reset"
	// ErrorEvent sends an error event under HTTP 200 after After tokens, and
	// nothing more.
	ErrorEvent = "error_event"
	// Malformed sends an event that is no JSON after After tokens, and nothing
	// more.
	Malformed = "malformed_event"
	// SlowHeaders keeps the response's header back, for For or for good. The
	// request joins the queue only then.
	SlowHeaders = "slow_headers"
	// WrongUsage counts more output tokens in the usage than were sent.
	WrongUsage = "wrong_usage"
	// Exit ends the server with the request that follows the first After.
	Exit = "exit"
	// HTTPStatus answers with Status and an error instead of tokens.
	HTTPStatus = "http_status"
	// NoDone ends the response after the last token, without finish reason,
	// usage and [DONE].
	NoDone = "no_done"
	// MissingDone leaves out [DONE] alone: the finish reason is there.
	MissingDone = "missing_done"
	// NoFinish leaves out the finish reason alone: [DONE] is there.
	NoFinish = "no_finish_reason"
	// RepeatToken sends the token after the first After twice.
	RepeatToken = "repeat_token"
	// WrongAnswer says something else in place of the right answer, where the
	// server knows it.
	WrongAnswer = "wrong_answer"
	// ShortAnswer ends an answer one token early, as if it were whole.
	ShortAnswer = "short_answer"
	// OtherText answers with other tokens than the prompt's.
	OtherText = "other_text"
	// IgnoreDisconnect goes on with requests whose client has left, whatever
	// the arm declares. It befalls all requests.
	IgnoreDisconnect = "ignore_disconnect"
)

// Faults are the kinds of faults that this server knows.
func Faults() []string {
	return []string{
		Refuse, StallBefore, StallAfter, Cut, Reset, ErrorEvent, Malformed, SlowHeaders, WrongUsage, Exit, HTTPStatus,
		NoDone, MissingDone, NoFinish, RepeatToken, OtherText, IgnoreDisconnect, WrongAnswer, ShortAnswer,
	}
}

// Endpoints that a fault can be limited to.
const (
	Chat        = "chat"        // /v1/chat/completions
	Completions = "completions" // /v1/completions
)

// Fault is one declared misbehaviour, and the requests that it befalls: those
// that meet every condition that is set.
type Fault struct {
	Kind     string
	Requests []int         // arrival numbers at the server, from 1, over both endpoints; empty: all
	Endpoint string        // Chat or Completions; empty: both
	Share    float64       // the share of requests, drawn by the server's seed; 0: all
	After    int           // tokens, or requests for Exit, before it
	For      time.Duration // how long a delay lasts, emulated; 0: for good
	Status   int           // of HTTPStatus; 0: 500
}

// Validate says everything that is wrong with a fault at once, or returns nil.
func (f Fault) Validate() error {
	var errs []error
	if !slices.Contains(Faults(), f.Kind) {
		errs = append(errs, fmt.Errorf("there is no fault %q: there are %s", f.Kind, strings.Join(Faults(), ", ")))
	}
	if f.Endpoint != "" && f.Endpoint != Chat && f.Endpoint != Completions {
		errs = append(errs, fmt.Errorf("%s: there is no endpoint %q: write %s, %s or nothing", f.Kind, f.Endpoint, Chat, Completions))
	}
	if !(f.Share >= 0 && f.Share <= 1) {
		errs = append(errs, fmt.Errorf("%s: a share of %g: write 0 to 1", f.Kind, f.Share))
	}
	if f.After < 0 || f.For < 0 {
		errs = append(errs, fmt.Errorf("%s: after %d, for %s: neither can be negative", f.Kind, f.After, f.For))
	}
	if f.Status != 0 && (f.Status < 400 || f.Status > 599) {
		errs = append(errs, fmt.Errorf("%s: the status %d is no failure: write 400 to 599", f.Kind, f.Status))
	}
	for _, n := range f.Requests {
		if n < 1 {
			errs = append(errs, fmt.Errorf("%s: request %d: they count from 1", f.Kind, n))
		}
	}
	return errors.Join(errs...)
}

// befalls says whether the fault is met by a request; draw tells it apart from
// the server's other faults.
func (f Fault) befalls(arrival int, chat bool, seed uint64, draw int) bool {
	switch {
	case f.Kind == Exit && arrival <= f.After,
		len(f.Requests) > 0 && !slices.Contains(f.Requests, arrival),
		f.Endpoint == Chat && !chat, f.Endpoint == Completions && chat:
		return false
	case f.Share > 0:
		random := rand.New(rand.NewPCG(seed^uint64(draw+1)<<32, uint64(arrival)))
		return random.Float64() < f.Share
	}
	return true
}

func (f Fault) status() int {
	if f.Status == 0 {
		return http.StatusInternalServerError
	}
	return f.Status
}
