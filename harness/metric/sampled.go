package metric

import (
	"fmt"
	"slices"

	"assay/harness/record"
)

// sampled checks what was looked at beside the load: that it is of this plan
// and of lifecycles and waves that ran, that looks follow one another, that
// there is a value or a reason for each, and that the pages around a wave are
// around it.
func (c *checker) sampled() {
	for _, t := range c.run.Telemetry {
		where := fmt.Sprintf("lifecycle %d, telemetry of GPU %d over wave %d", t.Lifecycle, t.Device, t.Wave)
		c.line(where, t.Chain, record.TelemetrySchema)
		if c.plan.Telemetry == nil || c.plan.Telemetry.GPU == 0 {
			c.found("telemetry", where, "the plan looks at no GPU")
		}
		c.stretch(where, t.Stretch)
		for name, values := range t.Series {
			c.series(where, t.Stretch, name, len(values), slices.Contains(values, nil), t.Nulls)
		}
	}
	for _, m := range c.run.EngineMetrics {
		where := fmt.Sprintf("lifecycle %d, engine metrics over wave %d", m.Lifecycle, m.Wave)
		c.line(where, m.Chain, record.EngineMetricsSchema)
		if c.plan.Telemetry == nil || c.plan.Telemetry.Engine == 0 {
			c.found("telemetry", where, "the plan looks at no engine's metrics")
		}
		w := c.stretch(where, m.Stretch)
		for name, values := range m.Series {
			c.series(where, m.Stretch, name, len(values), slices.Contains(values, nil), m.Nulls)
		}
		for name, page := range map[string]*record.Page{"before": m.Before, "after": m.After} {
			if page == nil && m.Nulls[name] == "" {
				c.found("nulls", where, "its page %s is null without a reason", name)
			}
		}
		if w == nil || w.ReleasedAt == nil {
			continue
		}
		if m.Before != nil && m.Before.At > *w.ReleasedAt {
			c.found("time", where, "its page before the wave was read at %d ns, and the wave was released at %d ns", m.Before.At, *w.ReleasedAt)
		}
		for _, r := range c.run.Of(*w).Attempts {
			if m.After != nil && m.After.At < r.EndedAt {
				c.found("time", where, "its page after the wave was read at %d ns, before ordinal %d had ended at %d ns", m.After.At, r.Ordinal, r.EndedAt)
				break
			}
		}
	}
}

// line checks the beginning of a chained line.
func (c *checker) line(where string, l record.Chain, schema string) {
	if l.PlanSHA256 != c.planSum {
		c.found("plan_sha256", where, "the record is of another plan: %.12s…, this one is %.12s…", l.PlanSHA256, c.planSum)
	}
	if l.ScheduleSHA256 != c.scheduleSum {
		c.found("schedule_sha256", where, "the record is of another schedule: %.12s…, this one is %.12s…", l.ScheduleSHA256, c.scheduleSum)
	}
	if l.Schema != schema {
		c.found("schema", where, "%q where %q belongs", l.Schema, schema)
	}
}

// stretch checks a stretch's looks and returns its wave, nil if it is of none.
func (c *checker) stretch(where string, s record.Stretch) *record.Wave {
	if len(s.At) != len(s.Took) {
		c.found("telemetry", where, "it has %d looks and %d durations of looks", len(s.At), len(s.Took))
	}
	for i := 1; i < len(s.At); i++ {
		if s.At[i] <= s.At[i-1] {
			c.found("time", where, "look %d began at %d ns, the one before it at %d ns", i+1, s.At[i], s.At[i-1])
			break
		}
	}
	if s.Lifecycle < 1 || s.Lifecycle > len(c.schedule.Lifecycles) {
		c.found("schedule", where, "the schedule has no such lifecycle")
		return nil
	}
	if arm := c.schedule.Lifecycles[s.Lifecycle-1].Arm; s.Arm != arm {
		c.found("schedule", where, "it is of %s, the schedule has %s", s.Arm, arm)
	}
	if s.Wave == 0 {
		return nil
	}
	for i := range c.run.Waves {
		if w := &c.run.Waves[i]; w.Lifecycle == s.Lifecycle && w.Number == s.Wave && w.Executed > 0 {
			return w
		}
	}
	c.found("schedule", where, "no such wave ran")
	return nil
}

func (c *checker) series(where string, s record.Stretch, name string, values int, missing bool, nulls map[string]string) {
	if values != len(s.At) {
		c.found("telemetry", where, "%s has %d values for %d looks", name, values, len(s.At))
	}
	if missing && nulls[name] == "" {
		c.found("nulls", where, "%s has a null without a reason", name)
	}
}
