package workloads

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
)

// Task is one prompt with an evaluator of its answer.
type Task struct {
	// ID is family, size and number, such as "retrieval/4/7"; stable for ever,
	// since records carry it. The size is the difficulty of a task as drawn,
	// and the tokens of one that [Exact] made, such as "retrieval/2048/7"; the
	// number is its place in its cycle, from 1.
	ID     string
	Family string // "retrieval", "arithmetic", "copy" or "json"
	Text   string // the user turn
	Answer string // what the evaluator looks for
	// Evaluator is one of [Evaluators].
	Evaluator string
	// Difficulty is graded: in retrieval the codes in the context (2, 4, 8,
	// 16), in copy the sentences of the line (1 to 4), in json the fields (2 to
	// 5), in arithmetic 1 to 4: numbers of one digit without and with a carry,
	// then of two digits without and with a carry.
	Difficulty int
}

// Digest is the task's SHA-256, in hex: of id, text, evaluator and answer, each
// after its length in bytes and a colon, so that no two tasks share one by
// where a field ends.
func (t Task) Digest() string {
	h := sha256.New()
	for _, field := range []string{t.ID, t.Text, t.Evaluator, t.Answer} {
		fmt.Fprintf(h, "%d:%s", len(field), field)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// family is one kind of task.
type family struct {
	name      string
	evaluator string
	grades    [4]int // difficulties, the easiest first
	// draw makes the task of a number: what it asks and what answers it.
	draw func(seed uint64, difficulty, number int) (text, answer string)
}

// mixed is the cycle of all families in turn.
const mixed = "mixed"

var families = []family{
	{name: "retrieval", evaluator: evaluateContains, grades: [4]int{2, 4, 8, 16}, draw: drawRetrieval},
	{name: "arithmetic", evaluator: evaluateNumeric, grades: [4]int{1, 2, 3, 4}, draw: drawArithmetic},
	{name: "copy", evaluator: evaluateExact, grades: [4]int{1, 2, 3, 4}, draw: drawCopy},
	{name: "json", evaluator: evaluateJSONEqual, grades: [4]int{2, 3, 4, 5}, draw: drawJSON},
}

// Families are the names that a plan's lanes may have as their tasks.
func Families() []string {
	var names []string
	for _, f := range families {
		names = append(names, f.name)
	}
	return append(names, mixed)
}

// Cycle draws a cycle of n tasks of a family from a seed: the same always, and
// a longer cycle begins with a shorter one. Difficulties come in turn; in the
// family "mixed" the families do, and each meets each difficulty. A sequence
// asks its cycle over and over, see [Of].
func Cycle(name string, n int, seed uint64) ([]Task, error) {
	if n < 1 {
		return nil, fmt.Errorf("a cycle of %d tasks asks nothing: draw 1 or more", n)
	}
	at := slices.IndexFunc(families, func(f family) bool { return f.name == name })
	if at < 0 && name != mixed {
		return nil, fmt.Errorf("there is no family of tasks %q: there are %s", name, strings.Join(Families(), ", "))
	}
	cycle := make([]Task, n)
	for i := range cycle {
		f, grade := at, i
		if name == mixed {
			// The grade moves on with each round of families, and each family
			// starts at another: twelve tasks hold three of each grade.
			f, grade = i%len(families), i+i/len(families)
		}
		cycle[i] = families[f].task(seed, grade%4, i+1)
	}
	return cycle, nil
}

func (f family) task(seed uint64, grade, number int) Task {
	t := Task{Family: f.name, Evaluator: f.evaluator, Difficulty: f.grades[grade]}
	t.ID = fmt.Sprintf("%s/%d/%d", f.name, t.Difficulty, number)
	t.Text, t.Answer = f.draw(seed, t.Difficulty, number)
	return t
}

// Of is the task of an ordinal, from 1: the cycle over and over.
func Of(cycle []Task, ordinal int) Task { return cycle[(ordinal-1)%len(cycle)] }

// TasksDigest is the SHA-256 of a cycle, in hex: of its tasks' digests in hex,
// one after the other.
func TasksDigest(cycle []Task) string {
	h := sha256.New()
	for _, t := range cycle {
		io.WriteString(h, t.Digest())
	}
	return hex.EncodeToString(h.Sum(nil))
}

// stream is the random numbers of one purpose: ChaCha8 keyed by the SHA-256 of
// the seed and the purpose, so that streams of neighbouring seeds and numbers
// have nothing in common.
func stream(seed uint64, purpose string) *rand.Rand {
	return rand.New(rand.NewChaCha8(sha256.Sum256(fmt.Appendf(nil, "%d/%s", seed, purpose))))
}

// pick draws one of several.
func pick[T any](r *rand.Rand, of []T) T { return of[r.IntN(len(of))] }

// draw takes n different ones of several, in random order.
func draw[T any](r *rand.Rand, n int, of []T) []T {
	out := make([]T, n)
	for i, at := range r.Perm(len(of))[:n] {
		out[i] = of[at]
	}
	return out
}
