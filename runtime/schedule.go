package emq

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// schedule is when an entry ticks.
type schedule interface {
	// after is the first tick after t, the zero time if none comes within years.
	after(t time.Time) time.Time
}

// parseCron checks a spec and its zone. It does no I/O but for the zone.
func parseCron(c Cron) (schedule, error) {
	switch {
	case strings.Contains(c.Spec, "TZ="):
		return nil, fmt.Errorf("%w: cron spec %q: the zone stands in TZ, not in the spec", ErrInvalid, c.Spec)
	case strings.HasPrefix(c.Spec, "@every"):
		return nil, fmt.Errorf(`%w: cron spec %q: @every counts from a start that no two processes share: write a step, "*/10 * * * *"`, ErrInvalid, c.Spec)
	}
	parsed, err := cron.ParseStandard(c.Spec)
	if err != nil {
		return nil, fmt.Errorf("%w: cron spec %q: %w: it has five fields (minute, hour, day of month, month, day of week with 0 for Sunday), like \"15 2 * * *\", or is @hourly, @daily, @weekly, @monthly or @yearly",
			ErrInvalid, c.Spec, err)
	}
	fields, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return nil, fmt.Errorf("%w: cron spec %q has no fields", ErrInvalid, c.Spec)
	}
	if c.Missed > RunAll || c.Overlap > SkipOverlap {
		return nil, fmt.Errorf("%w: cron: Missed(%d) or Overlap(%d) is none of the constants", ErrInvalid, c.Missed, c.Overlap)
	}
	zone, err := loadZone(c.TZ)
	if err != nil {
		return nil, err
	}
	fields.Location = time.UTC
	s := wallSchedule{fields, zone, fields.Hour&everyHour == everyHour}
	if s.after(time.Now()).IsZero() {
		return nil, fmt.Errorf("%w: cron spec %q never comes: none of its months has a day that it names", ErrInvalid, c.Spec)
	}
	return s, nil
}

// loadZone finds a zone by its name; the empty one is UTC.
func loadZone(name string) (*time.Location, error) {
	if name == "" {
		return time.UTC, nil
	}
	if name == "Local" {
		return nil, fmt.Errorf("%w: cron zone %q differs between processes: write a name of the IANA database", ErrInvalid, name)
	}
	zone, err := time.LoadLocation(name)
	if err == nil {
		return zone, nil
	}
	hint := "write a name of the IANA database, like Europe/Berlin"
	if _, none := time.LoadLocation("Europe/Berlin"); none != nil {
		hint = `this program finds no zone database: import _ "time/tzdata", or install tzdata`
		err = errors.Join(err, none)
	}
	return nil, fmt.Errorf("%w: cron zone %q: %w: %s", ErrInvalid, name, err, hint)
}

const everyHour = 1<<24 - 1

// wallSchedule ticks by the clock on the wall of a zone. It works with walls as if they were UTC, where
// there is no change of offset, and turns them into times by the offsets of the zone.
//
// A wall time that a change of offset leaves out is taken by the offset before the change. One that
// comes twice counts the first time only, unless the entry has every hour: that ticks both times.
type wallSchedule struct {
	fields *cron.SpecSchedule
	zone   *time.Location
	hourly bool // it has every hour of the day
}

// mostPeriods bounds how many changes of offset are looked beyond: no zone has had so many in five years.
const mostPeriods = 64

func (s wallSchedule) after(t time.Time) time.Time {
	at := t
	for range mostPeriods {
		start, end := at.In(s.zone).ZoneBounds()
		best := s.within(t, start, at)
		if best.IsZero() || end.IsZero() || best.Before(end) {
			return best.In(s.zone)
		}
		at = end
	}
	return time.Time{}
}

// within is the first tick after t in the period of one offset that begins at start and has at in it. It
// may lie beyond the period's end; then it is none of this period.
func (s wallSchedule) within(t, start, at time.Time) time.Time {
	offset := offsetOf(at.In(s.zone))
	if start.IsZero() { // the first period of the zone
		return s.first(t, offset)
	}
	before := offsetOf(start.Add(-1).In(s.zone))
	shift := offset - before
	from := t
	if from.Before(start) {
		from = start.Add(-1)
	}
	again := start.Add(-shift) // until then the walls were there before
	normal := from
	if !s.hourly && shift < 0 && normal.Before(again) {
		normal = again.Add(-1)
	}
	best := s.first(normal, offset)
	if shift > 0 && from.Before(start.Add(shift)) {
		if left := s.first(from, before); left.Before(start.Add(shift)) && !left.IsZero() && left.Before(best) {
			best = left
		}
	}
	return best
}

// first is the first tick after t, if the offset did not change.
func (s wallSchedule) first(t time.Time, offset time.Duration) time.Time {
	wall := s.fields.Next(t.UTC().Add(offset))
	if wall.IsZero() {
		return wall
	}
	return wall.Add(-offset)
}

func offsetOf(t time.Time) time.Duration {
	_, seconds := t.Zone()
	return time.Duration(seconds) * time.Second
}
