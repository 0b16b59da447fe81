package suite

import "assay/harness/record"

// seen is what was looked at beside the load over a stretch.
type seen struct {
	gpus   []record.Telemetry
	engine *record.EngineMetrics
}

// cut takes what was seen since the last cut: over a wave or, with number 0,
// outside of any. A stretch without a look leaves no line.
func (c *running) cut(wave int, around pages) seen {
	of := func(s *record.Stretch) bool {
		s.Lifecycle, s.Arm, s.Wave = c.place.Number, c.place.Arm, wave
		return len(s.At)+len(s.Failed) > 0
	}
	var out seen
	gpus, engine := c.lifecycle.Watch().Cut()
	for _, g := range gpus {
		if of(&g.Stretch) {
			out.gpus = append(out.gpus, g)
		}
	}
	if engine == nil || !of(&engine.Stretch) && around.before == nil && around.after == nil {
		return out
	}
	engine.Before, engine.After = around.before, around.after
	if wave == 0 {
		around.why = "pages are kept around waves"
	}
	for name, page := range map[string]*record.Page{"before": around.before, "after": around.after} {
		if page == nil {
			engine.Nulls[name] = around.why
		}
	}
	out.engine = engine
	return out
}

// watched keeps what was seen.
func (r *Run) watched(s seen) error {
	gpus, engine, err := r.store.AppendTelemetry(s.gpus, s.engine)
	r.kept.Telemetry = append(r.kept.Telemetry, gpus...)
	if engine != nil {
		r.kept.EngineMetrics = append(r.kept.EngineMetrics, *engine)
	}
	return err
}

// pages are the engine's metrics around a wave; nil where they were not read,
// and why.
type pages struct {
	before, after *record.Page
	why           string
}
