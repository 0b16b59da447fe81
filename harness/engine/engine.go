package engine

import (
	"context"
	"errors"
	"io"
	"time"

	"assay/harness/telemetry"
)

// An Engine launches servers of one kind: one server for each lifecycle.
type Engine interface {
	// Launch brings a fresh server up to the point where it was started; it
	// does not wait until the server is ready (see [AwaitReady]). What it
	// passes on the way goes to l.Mark as it happens. On an error nothing is
	// left behind, and the error says what to do.
	Launch(ctx context.Context, l Launch) (Server, error)
}

// Launch is what a lifecycle gives its engine.
type Launch struct {
	// Run names the run: letters, digits and dashes. Everything an engine
	// makes outside this process (containers, process groups) carries it, so
	// that leftovers of a killed run can be found.
	Run string
	// Name is the lifecycle's own, such as "01-naive".
	Name string
	// Logs takes the server's output as it comes, already split in lines; it
	// never blocks for long. Never nil.
	Logs io.Writer
	// Mark takes each moment as it passes. Never nil.
	Mark func(Moment)
	// Stop is how long a server gets to leave on its own before it is killed.
	Stop time.Duration
}

// Phase names a moment in a server's life, in the order in which they come.
type Phase string

// The phases of a lifecycle, in order. A phase that an engine can't see is
// null in the record, with the reason.
const (
	Invoked        Phase = "invoked"         // the host began
	ImageReady     Phase = "image_ready"     // image pulled or built, or found
	Created        Phase = "created"         // container created
	Started        Phase = "started"         // just before the start call
	EngineStarted  Phase = "engine_started"  // the daemon's own State.StartedAt
	FirstListening Phase = "first_listening" // first HTTP answer of any status
	Ready          Phase = "ready"           // first healthy answer
	FirstSent      Phase = "first_sent"      // first request's first byte written
	LastTerminal   Phase = "last_terminal"   // last attempt's terminal moment
	StopRequested  Phase = "stop_requested"  // stop asked for
	Exited         Phase = "exited"          // server gone
	Removed        Phase = "removed"         // nothing of it left
)

// Moment is one phase reached.
type Moment struct {
	Phase      Phase
	At         time.Time // with Go's monotonic reading where this process saw it
	Provenance string    // one of record's provenances: "client_observed", "engine_reported", …
}

// A Server is one launched server. Its methods may be called from several
// goroutines.
type Server interface {
	// URL is the base: scheme and host, no trailing slash. It never changes.
	URL() string
	// Done is closed once the server has exited by itself or was stopped. An
	// endpoint's never closes.
	Done() <-chan struct{}
	// Exit says how the server ended; it is complete once Done is closed.
	Exit() Exit
	// Identity is what the engine itself says of what runs: image ID and
	// digest, arguments, version; each a fact or a null with its reason.
	Identity(ctx context.Context) Identity
	// Stop stops and removes the server: asks, waits the launch's stop
	// timeout, kills. It may be called more than once, and after an exit.
	Stop(ctx context.Context) error
}

// Exit is how a server ended.
type Exit struct {
	Code      *int     // exit code; nil while running or where it can't be known
	OOMKilled bool     // killed for memory, by the engine's own word
	Signal    string   // the signal that ended a process, if one did
	Asked     bool     // the exit came after Stop was called
	Reason    string   // why Code is nil, or what the engine said beyond the code
	LastLines []string // the last 50 log lines before the end
}

// Fact is a value with where it comes from, or nothing with the reason.
type Fact struct {
	Value      any    `json:"value"`
	Provenance string `json:"provenance,omitempty"`
	Reason     string `json:"reason,omitempty"` // why Value is null
}

// Identity holds an engine's facts by name: "image", "image_id",
// "image_digest", "args", "engine_version", "model_digest", …
type Identity map[string]Fact

// Errors that callers branch on.
var (
	// ErrUnavailable: what the engine needs is not on this machine (no Docker,
	// no GPU, no image). The error's text says what, and the command that
	// brings it.
	ErrUnavailable = errors.New("engine unavailable")
	// ErrExited: the server exited before it was ready, or while it was needed.
	ErrExited = errors.New("server exited")
	// ErrNotReady: the server did not get healthy in time.
	ErrNotReady = errors.New("server not ready")
)

// A Checker is an engine that can say beforehand whether it could launch
// here; Check returns an error that wraps [ErrUnavailable] and names what is
// missing and the command that brings it.
type Checker interface {
	Check(ctx context.Context) error
}

// A Holder knows which of this machine's processes are its server's, so that
// what else is on a GPU can be told from it.
type Holder interface {
	// Owns says so; ok is false where that can't be told.
	Owns(pid int) (owns, ok bool)
}

// A Computer is an engine whose servers are given GPUs of this machine.
type Computer interface {
	// Devices lists the machine's GPUs, and those of them that a server gets.
	Devices() (telemetry.GPUs, []telemetry.Device, error)
}
