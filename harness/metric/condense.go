package metric

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"unique"

	"assay/harness/record"
)

// Condenser makes attempts small that were read, for runs of which not every
// event can be held: every number of a summary and every finding of a check is
// the same. Its zero value is ready, and may be used from several goroutines.
type Condenser struct {
	nulls sync.Map // by what they say
}

// Condense leaves of an attempt's events, lags and token ids what results need,
// and lets it share the texts that others have too. Its map of nulls may be
// another's from then on, and is not to be changed.
func (c *Condenser) Condense(r *record.Request) {
	if r.Condensed != nil {
		return
	}
	r.Condensed = &record.Condensed{
		Events: len(r.Events), Shared: Shared(*r), Unread: max(0, len(r.Events)-len(r.ClientLag)), KnownLags: record.Pack(KnownLag(*r)),
		TokenIDs: record.Pack(r.OutputTokenIDs), Broken: Broken(*r),
	}
	r.Events, r.ClientLag, r.OutputTokenIDs = nil, nil, nil
	for _, text := range []*string{
		&r.Schema, &r.PlanSHA256, &r.ScheduleSHA256, &r.Arm, &r.Lane, &r.PromptID, &r.InputSHA256, (*string)(&r.Outcome),
		(*string)(&r.Clock.Provenance), &r.Clock.Reason, r.Error, r.FinishReason, r.InputTokensSource, r.OutputTokensSource,
		&r.OutputText, &r.ReasoningText, (*string)(&r.Condensed.TokenIDs),
	} {
		if text != nil {
			*text = unique.Make(*text).Value()
		}
	}
	r.Nulls = c.shared(r.Nulls)
}

// shared is a map that says the same: few attempts have reasons of their own.
func (c *Condenser) shared(nulls map[string]string) map[string]string {
	var key strings.Builder
	for _, name := range slices.Sorted(maps.Keys(nulls)) {
		key.WriteString(name)
		key.WriteByte(0)
		key.WriteString(nulls[name])
		key.WriteByte(0)
	}
	same, _ := c.nulls.LoadOrStore(key.String(), nulls)
	return same.(map[string]string)
}
