package scripts

import (
	"context"

	"github.com/redis/rueidis"
)

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

	FlatWeight = "flat_weight" // the weight of the jobs without a lane, which is no field of meta but is read with them
)

// SettingFields are the fields that Set changes.
func SettingFields() []string {
	return []string{FieldPaused, FieldConcurrency, FieldRateMax, FieldRateMs, FieldMaxLen, FieldDeadMax, FieldDeadMs, FieldCrashBudget, FieldEvents}
}

// SplitFields are those of them that are numbers of jobs: each shard of a queue has its part.
func SplitFields() []string {
	return []string{FieldConcurrency, FieldRateMax, FieldMaxLen, FieldDeadMax}
}

// Whole is the field of the first shard that keeps what a split one is of all shards together.
func Whole(field string) string { return "all_" + field }

// Set changes fields of meta, given with their values in pairs; an empty value takes a field away. Safe to
// repeat.
func (q *Queue) Set(ctx context.Context, pairs ...string) error {
	c := q.prepare("setting", "", "", append([]string{q.keys.Base()}, pairs...)...)
	return q.wrap(settingVerb(pairs[0], pairs[1] != ""), "", q.run(ctx, c).Error())
}

// SettingName is what the user calls a field.
func SettingName(field string) string {
	return map[string]string{
		FieldConcurrency: "concurrency", FieldRateMax: "rate", FieldMaxLen: "maximum length", FieldDeadMax: "dead caps",
		FieldCrashBudget: "crash budget",
	}[field]
}

// settingVerb is what the user called to change a field.
func settingVerb(field string, on bool) string {
	switch {
	case field == FieldPaused && on:
		return "pause"
	case field == FieldPaused:
		return "resume"
	case field == FieldEvents:
		return "set events"
	case on:
		return "set " + SettingName(field)
	}
	return "clear " + SettingName(field)
}

// Settings reads the fields that are set, and the FlatWeight. Safe to repeat.
func (q *Queue) Settings(ctx context.Context) (map[string]string, error) {
	fields := SettingFields()
	for _, field := range SplitFields() {
		fields = append(fields, Whole(field))
	}
	// Pinned: see Counts.
	cmd := q.client.B().Hmget().Key(q.keys.Fixed("meta")).Field(fields...).Build().Pin()
	answers := q.client.DoMulti(ctx, cmd, q.client.B().Hget().Key(q.keys.Fixed("gweight")).Field("").Build().Pin())
	values, err := answers[0].ToArray()
	if err != nil {
		return nil, q.wrap("settings", "", err)
	}
	weight, err := answers[1].ToString()
	if err != nil && !rueidis.IsRedisNil(err) {
		return nil, q.wrap("settings", "", err)
	}
	set := make(map[string]string)
	for i, v := range values {
		if s := text(v); s != "" {
			set[fields[i]] = s
		}
	}
	if weight != "" {
		set[FlatWeight] = weight
	}
	return set, nil
}
