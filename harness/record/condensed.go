package record

import (
	"encoding/binary"
	"iter"
)

// Condensed is what results need of an attempt's events, lags and token ids, in
// a tenth of their memory. Package metric makes it of them.
type Condensed struct {
	Events    int      // with a token
	Shared    int      // of them, in one read with another, see Shared of package metric
	Unread    int      // of them, without a client lag
	KnownLags Packed   // see KnownLag of package metric
	TokenIDs  Packed   // output_token_ids
	Broken    []string // what the record has against itself, see Broken of package metric
}

// EventCount is how many events with a token arrived.
func (r *Request) EventCount() int {
	if r.Condensed != nil {
		return r.Condensed.Events
	}
	return len(r.Events)
}

// TokenIDs are the output's token ids, of a condensed request too.
func (r *Request) TokenIDs() []int {
	if r.Condensed == nil {
		return r.OutputTokenIDs
	}
	ids := []int{}
	for id := range r.Condensed.TokenIDs.All() {
		ids = append(ids, int(id))
	}
	return ids
}

// PackedIDs are the same, packed: two requests have the same if these are equal.
func (r *Request) PackedIDs() Packed {
	if r.Condensed == nil {
		return Pack(r.OutputTokenIDs)
	}
	return r.Condensed.TokenIDs
}

// Packed is whole numbers in no more bytes than they need: equal ones are equal.
type Packed string

// Pack packs numbers.
func Pack[N int | int64](numbers []N) Packed {
	packed := make([]byte, 0, 3*len(numbers))
	for _, n := range numbers {
		packed = binary.AppendVarint(packed, int64(n))
	}
	return Packed(packed)
}

// All are the numbers.
func (p Packed) All() iter.Seq[int64] {
	return func(yield func(int64) bool) {
		shift, bits := 0, uint64(0)
		for i := range len(p) {
			bits |= uint64(p[i]&0x7f) << shift
			if shift += 7; p[i] >= 0x80 {
				continue
			}
			if !yield(int64(bits>>1) ^ -int64(bits&1)) {
				return
			}
			shift, bits = 0, 0
		}
	}
}
