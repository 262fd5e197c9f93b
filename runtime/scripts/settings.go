package scripts

import "context"

// Fields of meta that say how a queue is served.
const (
	FieldPaused      = "paused"
	FieldConcurrency = "concurrency"
	FieldRateMax     = "rate_max"
	FieldRateMs      = "rate_ms"
	FieldMaxLen      = "max_len"
	FieldDeadMax     = "dead_max"
	FieldDeadMs      = "dead_ms"
	FieldCrashBudget = "crash_budget"
	FieldEvents      = "events"
)

func settingFields() []string {
	return []string{FieldPaused, FieldConcurrency, FieldRateMax, FieldRateMs, FieldMaxLen, FieldDeadMax, FieldDeadMs, FieldCrashBudget, FieldEvents}
}

// Set changes fields of meta, given with their values in pairs; an empty value takes a field away. Safe to
// repeat.
func (q *Queue) Set(ctx context.Context, pairs ...string) error {
	c := q.prepare("setting", "", "", append([]string{q.keys.Base()}, pairs...)...)
	return q.wrap("set "+pairs[0], "", q.run(ctx, c).Error())
}

// Settings reads the fields that are set. Safe to repeat.
func (q *Queue) Settings(ctx context.Context) (map[string]string, error) {
	fields := settingFields()
	// Pinned: see Counts.
	cmd := q.client.B().Hmget().Key(q.keys.Fixed("meta")).Field(fields...).Build().Pin()
	values, err := q.client.Do(ctx, cmd).ToArray()
	if err != nil {
		return nil, q.wrap("settings", "", err)
	}
	set := make(map[string]string)
	for i, v := range values {
		if s := text(v); s != "" {
			set[fields[i]] = s
		}
	}
	return set, nil
}
