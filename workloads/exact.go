package workloads

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Exact pads or trims a task's filler so that its prompt has exactly so many
// tokens by the engine's own count, and puts that number into its ID in place
// of the size. Nothing else of the task changes, and its answer stands as often
// in its text as before. In a retrieval task the filler stands between the
// sentences that hold the codes, in any other before the task. It is the same
// for the same task, number and tokenizer.
//
// Count is the engine's count of a prompt whose only turn is the text, its chat
// template included. It is called about ten times, and about a hundred times if
// its numbers make no sense. Where no filler gives the exact number, because a
// word is several tokens, the error says the nearest numbers that were reached.
func Exact(ctx context.Context, t Task, tokens int, count func(ctx context.Context, text string) (int, error)) (Task, error) {
	if tokens < 1 || tokens > mostTokens {
		return Task{}, fmt.Errorf("%s can't be made %d tokens long: ask for 1 to %d", t.ID, tokens, mostTokens)
	}
	f := fitting{
		text: layOut(t).text, each: sentenceTokens, closing: closing, units: units, want: tokens,
		count: func(text string) (int, error) { return count(ctx, text) },
	}
	text, err := f.fit()
	if err != nil {
		return Task{}, fmt.Errorf("%s can't be made %d tokens long: %w", t.ID, tokens, err)
	}
	t.ID, t.Text = ExactID(t, tokens), text
	return t, nil
}

// ExactID is the ID of a task at an exact number of tokens.
func ExactID(t Task, tokens int) string {
	return fmt.Sprintf("%s/%d/%s", t.Family, tokens, t.ID[strings.LastIndexByte(t.ID, '/')+1:])
}

// mostTokens is more than any engine takes, and few enough to hold in memory.
const mostTokens = 1 << 21

// fillerStart begins the filler of a task that has no context of its own.
const fillerStart = "Here are some notes, which have nothing to do with what is asked after them.\n\n"

// layout is a task's text without its filler.
type layout struct {
	head, tail string
	facts      []string // stand in the filler, in this order
	filler     func(n int) []string
}

// layOut takes a task's text apart. What its filler says is drawn from the rest
// of it: two tasks have different filler, and one task the same at any size.
func layOut(t Task) layout {
	l := layout{tail: t.Text}
	if head, facts, tail, ok := takeApart(t.Text); ok {
		l.head, l.facts, l.tail = head, facts, tail
	} else if padded, ok := strings.CutPrefix(t.Text, fillerStart); ok {
		if _, rest, ok := strings.Cut(padded, "\n\n"); ok {
			l.tail = rest
		}
	}
	r := stream(0, "filler/"+strings.Join(l.facts, " ")+l.tail)
	var sentences []string
	l.filler = func(n int) []string {
		for len(sentences) < n {
			sentences = append(sentences, sentence(r))
		}
		return sentences[:n]
	}
	return l
}

// takeApart takes a retrieval task's text apart: what stands before its context,
// the sentences there that hold the codes, and what stands after it.
func takeApart(text string) (head string, facts []string, tail string, ok bool) {
	rest, ok := strings.CutPrefix(text, contextStart)
	at := strings.LastIndex(rest, contextEnd)
	if !ok || at < 0 {
		return "", nil, "", false
	}
	for s := range strings.SplitAfterSeq(rest[:at]+" ", ". ") {
		if strings.HasPrefix(s, fact) {
			facts = append(facts, strings.TrimSuffix(s, " "))
		}
	}
	return contextStart, facts, rest[at:], facts != nil
}

// text puts the task together around n sentences of filler and one more, if it
// isn't empty.
func (l layout) text(n int, last string) string {
	filler := l.filler(n)
	if last != "" {
		filler = append(slices.Clone(filler), last)
	}
	if l.facts == nil {
		if len(filler) == 0 {
			return l.tail
		}
		return fillerStart + strings.Join(filler, " ") + "\n\n" + l.tail
	}
	var all []string
	from := 0
	for i, said := range l.facts {
		to := len(filler) * (i + 1) / (len(l.facts) + 1)
		all = append(append(all, filler[from:to]...), said)
		from = to
	}
	return l.head + strings.Join(append(all, filler[from:]...), " ") + l.tail
}

// fitting is the search for one text.
type fitting struct {
	// text is the text around n pieces of filler and one more, if last isn't
	// empty. Each piece has a token at least, and about each of them.
	text func(n int, last string) string
	each int
	// closing is a last piece of words, which are some of the units.
	closing func(words []string) string
	units   []string
	want    int
	count   func(text string) (int, error)
	// below and above are the nearest numbers reached so far; 0 if none.
	below, above int
}

// found ends the search with its text.
type found struct{ text string }

func (found) Error() string { return "found" }

// try counts a text. It fails with found where that is the number wanted.
func (f *fitting) try(n int, last string) (int, error) {
	text := f.text(n, last)
	tokens, err := f.count(text)
	switch {
	case err != nil:
		return 0, fmt.Errorf("counting its tokens: %w", err)
	case tokens < 1:
		return 0, fmt.Errorf("the tokenizer counted %d tokens in a text of %d bytes", tokens, len(text))
	case tokens == f.want:
		return 0, found{text}
	case tokens < f.want:
		f.below = max(f.below, tokens)
	case f.above == 0 || tokens < f.above:
		f.above = tokens
	}
	return tokens, nil
}

// nearest is the error of a search that ended in vain. Below there is always
// the task without filler.
func (f *fitting) nearest(why string) error {
	if f.above == 0 {
		return fmt.Errorf("%s: the nearest number reached is %d", why, f.below)
	}
	return fmt.Errorf("%s: the nearest numbers reached are %d and %d", why, f.below, f.above)
}

func (f *fitting) fit() (string, error) {
	err := f.search()
	if hit, ok := errors.AsType[found](err); ok {
		return hit.text, nil
	}
	return "", err
}

// search ends with found or with another error.
func (f *fitting) search() error {
	alone, err := f.try(0, "")
	if err != nil {
		return err
	}
	if alone > f.want {
		return fmt.Errorf("it has %d without any filler: ask for more", alone)
	}
	n, err := f.pieces(alone)
	if err != nil {
		return err
	}
	// The piece after them takes what is missing, word by word. Where that is
	// less than the piece without any words, it takes the place of those before
	// it.
	for back := range 4 {
		if n-back < 0 {
			break
		}
		if err := f.words(n - back); err != nil {
			return err
		}
	}
	return f.nearest("no filler gives just that many")
}

// pieces finds how many pieces of filler leave the prompt too short where one
// more makes it too long.
func (f *fitting) pieces(alone int) (int, error) {
	low, lowTokens := 0, alone
	high, highTokens := -1, 0
	for step := 1; high < 0 || high-low > 1; step++ {
		var n int
		switch {
		case high < 0:
			each := f.each
			if low > 0 {
				each = max(1, (lowTokens-alone)/low)
			}
			// At least twice as far as the last time: a count that stops short
			// of the number would lead on for ever.
			n = low + max((f.want-lowTokens)/each+1, 1<<step)
		case step%3 == 0:
			n = (low + high) / 2 // so that an odd tokenizer can't lead it one by one
		default:
			n = low + (f.want-lowTokens)*(high-low)/(highTokens-lowTokens)
			n = min(max(n, low+1), high-1)
		}
		if n > f.want {
			n = f.want // a piece has a token at least
			if n == low {
				return 0, f.nearest("more filler adds no tokens")
			}
		}
		tokens, err := f.try(n, "")
		switch {
		case err != nil:
			return 0, err
		case tokens < f.want:
			low, lowTokens = n, tokens
		default:
			high, highTokens = n, tokens
		}
	}
	return low, nil
}

// words closes the gap that n pieces leave with the words of a last one. It
// returns nil where it can't.
func (f *fitting) words(n int) error {
	bare, err := f.try(n, f.closing(nil))
	if err != nil {
		return err
	}
	if bare > f.want {
		return nil
	}
	costs := make([]int, len(f.units))
	for i, unit := range f.units {
		tokens, err := f.try(n, f.closing([]string{unit}))
		if err != nil {
			return err
		}
		costs[i] = tokens - bare
	}
	gap := f.want - bare
	purse := newPurse(f.units, costs, 2*gap) // in case together they cost less than alone
	sum := gap
	for range 4 {
		words, ok := purse.words(sum)
		if !ok {
			break
		}
		tokens, err := f.try(n, f.closing(words))
		if err != nil {
			return err
		}
		sum -= tokens - f.want // together they cost other than alone
	}
	// It can't be paid exactly: see how near it comes.
	for _, step := range []int{-1, 1} {
		for sum = gap + step; ; sum += step {
			if words, ok := purse.words(sum); ok {
				if _, err := f.try(n, f.closing(words)); err != nil {
					return err
				}
				break
			}
			if sum < 0 || sum >= len(purse.last) {
				break
			}
		}
	}
	return nil
}

// purse says which units have a given number of tokens together, in the fewest
// words.
type purse struct {
	units []string
	costs []int
	last  []int // by sum: the unit that completes it, or -1
}

// newPurse works out the sums up to one and the first above it.
func newPurse(units []string, costs []int, upTo int) purse {
	p := purse{units: units, costs: costs, last: make([]int, upTo+1+max(0, slices.Max(costs)))}
	fewest := make([]int, len(p.last))
	for sum := 1; sum < len(p.last); sum++ {
		p.last[sum] = -1
		for unit, cost := range costs {
			if cost < 1 || cost > sum || sum > cost && p.last[sum-cost] < 0 {
				continue
			}
			if words := fewest[sum-cost] + 1; p.last[sum] < 0 || words < fewest[sum] {
				p.last[sum], fewest[sum] = unit, words
			}
		}
	}
	return p
}

// words are the units that a sum takes, and whether there are any that do.
func (p purse) words(sum int) ([]string, bool) {
	if sum < 0 || sum >= len(p.last) || p.last[sum] < 0 {
		return nil, false
	}
	var words []string
	for sum > 0 {
		unit := p.last[sum]
		words, sum = append(words, p.units[unit]), sum-p.costs[unit]
	}
	return words, true
}
