package emq

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the dates below are historic: no machine's database may differ
)

// ticks lists what a schedule gives in a span, as walls with their offsets.
func ticks(t *testing.T, spec, zone, from, to string) []string {
	t.Helper()
	s, err := parseCron(Cron{Spec: spec, TZ: zone})
	if err != nil {
		t.Fatal(err)
	}
	loc, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	at, err1 := time.ParseInLocation("2006-01-02 15:04", from, loc)
	end, err2 := time.ParseInLocation("2006-01-02 15:04", to, loc)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	var all []string
	for at = at.Add(-1); ; {
		next := s.after(at)
		if !next.After(at) {
			t.Fatalf("%s in %s: after %v comes %v", spec, zone, at, next)
		}
		if !next.Before(end) {
			return all
		}
		all = append(all, next.In(loc).Format("02 15:04-07:00"))
		at = next
	}
}

// TestCronOverChangesOfOffset states what docs/cron.md promises.
func TestCronOverChangesOfOffset(t *testing.T) {
	for _, c := range []struct{ name, spec, zone, from, to, want string }{
		{"spring: a time that is left out", "30 2 * * *", "America/New_York", "2024-03-09 00:00", "2024-03-12 00:00",
			"09 02:30-05:00, 10 03:30-04:00, 11 02:30-04:00"},
		{"spring: each hour", "0 * * * *", "America/New_York", "2024-03-10 00:00", "2024-03-10 05:00",
			"10 00:00-05:00, 10 01:00-05:00, 10 03:00-04:00, 10 04:00-04:00"},
		{"spring: each half of an hour", "30 * * * *", "America/New_York", "2024-03-10 00:00", "2024-03-10 05:00",
			"10 00:30-05:00, 10 01:30-05:00, 10 03:30-04:00, 10 04:30-04:00"},
		{"spring: each quarter", "*/15 * * * *", "America/New_York", "2024-03-10 01:30", "2024-03-10 03:40",
			"10 01:30-05:00, 10 01:45-05:00, 10 03:00-04:00, 10 03:15-04:00, 10 03:30-04:00"},
		{"spring: two times that fall together", "0 2,3 * * *", "America/New_York", "2024-03-10 00:00", "2024-03-11 00:00",
			"10 03:00-04:00"},
		{"spring: quarters of the hour that is left out", "*/15 2 * * *", "America/New_York", "2024-03-10 00:00", "2024-03-11 00:00",
			"10 03:00-04:00, 10 03:15-04:00, 10 03:30-04:00, 10 03:45-04:00"},
		{"autumn: a time that comes twice", "30 1 * * *", "America/New_York", "2024-11-02 00:00", "2024-11-05 00:00",
			"02 01:30-04:00, 03 01:30-04:00, 04 01:30-05:00"},
		{"autumn: after the change", "30 2 * * *", "America/New_York", "2024-11-03 00:00", "2024-11-04 00:00",
			"03 02:30-05:00"},
		{"autumn: each hour", "0 * * * *", "America/New_York", "2024-11-03 00:00", "2024-11-03 04:00",
			"03 00:00-04:00, 03 01:00-04:00, 03 01:00-05:00, 03 02:00-05:00, 03 03:00-05:00"},
		{"autumn: each quarter", "*/15 * * * *", "America/New_York", "2024-11-03 01:30", "2024-11-03 02:10",
			"03 01:30-04:00, 03 01:45-04:00, 03 01:00-05:00, 03 01:15-05:00, 03 01:30-05:00, 03 01:45-05:00, 03 02:00-05:00"},
		{"autumn: every second hour", "0 */2 * * *", "America/New_York", "2024-11-03 00:00", "2024-11-03 05:00",
			"03 00:00-04:00, 03 02:00-05:00, 03 04:00-05:00"},
		{"autumn: a midnight that does not change", "@daily", "America/New_York", "2024-11-02 00:00", "2024-11-05 00:00",
			"02 00:00-04:00, 03 00:00-04:00, 04 00:00-05:00"},
		{"a change of half an hour, spring: the time that is left out", "10 2 * * *", "Australia/Lord_Howe", "2024-10-05 00:00", "2024-10-08 00:00",
			"05 02:10+10:30, 06 02:40+11:00, 07 02:10+11:00"},
		{"a change of half an hour, spring: each hour", "0 * * * *", "Australia/Lord_Howe", "2024-10-06 00:00", "2024-10-06 05:00",
			"06 00:00+10:30, 06 01:00+10:30, 06 02:30+11:00, 06 03:00+11:00, 06 04:00+11:00"},
		{"a change of half an hour, spring: each quarter", "*/15 * * * *", "Australia/Lord_Howe", "2024-10-06 01:30", "2024-10-06 03:10",
			"06 01:30+10:30, 06 01:45+10:30, 06 02:30+11:00, 06 02:45+11:00, 06 03:00+11:00"},
		{"a change of half an hour, autumn: a time that comes twice", "45 1 * * *", "Australia/Lord_Howe", "2024-04-06 00:00", "2024-04-09 00:00",
			"06 01:45+11:00, 07 01:45+11:00, 08 01:45+10:30"},
		{"a change of half an hour, autumn: each hour at the half", "30 * * * *", "Australia/Lord_Howe", "2024-04-07 00:00", "2024-04-07 04:00",
			"07 00:30+11:00, 07 01:30+11:00, 07 01:30+10:30, 07 02:30+10:30, 07 03:30+10:30"},
		{"a change of half an hour, autumn: each hour", "0 * * * *", "Australia/Lord_Howe", "2024-04-07 00:00", "2024-04-07 04:00",
			"07 00:00+11:00, 07 01:00+11:00, 07 02:00+10:30, 07 03:00+10:30"},
		{"a midnight that is left out", "@daily", "America/Sao_Paulo", "2018-11-03 00:00", "2018-11-06 00:00",
			"03 00:00-03:00, 04 01:00-02:00, 05 00:00-02:00"},
		{"each hour beside a midnight that is left out", "0 * * * *", "America/Sao_Paulo", "2018-11-03 22:00", "2018-11-04 03:00",
			"03 22:00-03:00, 03 23:00-03:00, 04 01:00-02:00, 04 02:00-02:00"},
		{"an hour before midnight that comes twice", "30 23 * * *", "America/Sao_Paulo", "2018-02-16 00:00", "2018-02-19 00:00",
			"16 23:30-02:00, 17 23:30-02:00, 18 23:30-03:00"},
		{"a midnight after the hour that came twice", "@daily", "America/Sao_Paulo", "2018-02-17 00:00", "2018-02-20 00:00",
			"17 00:00-02:00, 18 00:00-03:00, 19 00:00-03:00"},
		{"a day that is left out", "0 12 * * *", "Pacific/Apia", "2011-12-29 00:00", "2012-01-01 00:00",
			"29 12:00-10:00, 31 12:00+14:00"},
		{"a zone without changes", "0 0 * * *", "Asia/Tokyo", "2024-03-10 00:00", "2024-03-12 00:00", "10 00:00+09:00, 11 00:00+09:00"},
		{"UTC by default", "0 6 * * 1", "", "2024-03-10 00:00", "2024-03-19 00:00", "11 06:00+00:00, 18 06:00+00:00"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := strings.Join(ticks(t, c.spec, c.zone, c.from, c.to), ", "); got != c.want {
				t.Errorf("%s in %s:\n got %s\nwant %s", c.spec, c.zone, got, c.want)
			}
		})
	}
}

// TestCronKeepsItsNumbersOverYears: over all changes of four years a daily entry ticks once a day, and an hourly
// one each hour that passes where the offset changes by whole hours.
func TestCronKeepsItsNumbersOverYears(t *testing.T) {
	for _, zone := range []string{"America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo", "Europe/Berlin", "Africa/Casablanca"} {
		for _, spec := range []string{"30 2 * * *", "@daily", "0 1 * * *", "59 23 * * *"} {
			days := map[string]int{}
			for _, tick := range years(t, spec, zone) {
				days[tick.Format(time.DateOnly)]++
			}
			loc, _ := time.LoadLocation(zone)
			for day := time.Date(2016, 1, 1, 12, 0, 0, 0, loc); day.Year() < 2020; day = day.AddDate(0, 0, 1) {
				if n := days[day.Format(time.DateOnly)]; n != 1 {
					t.Errorf("%s in %s ticks %d times on %s", spec, zone, n, day.Format(time.DateOnly))
				}
			}
		}
		if zone == "Australia/Lord_Howe" {
			continue
		}
		for _, spec := range []string{"0 * * * *", "30 * * * *"} {
			all := years(t, spec, zone)
			for i := 1; i < len(all); i++ {
				if gap := all[i].Sub(all[i-1]); gap != time.Hour {
					t.Errorf("%s in %s: %v after %v", spec, zone, gap, all[i-1])
				}
			}
		}
	}
}

func years(t *testing.T, spec, zone string) (all []time.Time) {
	t.Helper()
	s, err := parseCron(Cron{Spec: spec, TZ: zone})
	if err != nil {
		t.Fatal(err)
	}
	loc, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	end := time.Date(2020, 1, 1, 0, 0, 0, 0, loc)
	for at := s.after(time.Date(2016, 1, 1, 0, 0, 0, 0, loc).Add(-1)); at.Before(end); at = s.after(at) {
		all = append(all, at)
	}
	return all
}

func TestBadCronsAreRefused(t *testing.T) {
	for _, c := range []struct {
		Cron
		want string
	}{
		{Cron{Spec: ""}, "five fields"},
		{Cron{Spec: "61 * * * *"}, "five fields"},
		{Cron{Spec: "* * * * * *"}, "five fields"},
		{Cron{Spec: "@every 5m"}, "write a step"},
		{Cron{Spec: "CRON_TZ=Europe/Berlin 0 0 * * *"}, "stands in TZ"},
		{Cron{Spec: "0 0 30 2 *"}, "never comes: none of its months has a day that it names"},
		{Cron{Spec: "0 0 30,31 2 *"}, "never comes"},
		{Cron{Spec: "0 0 31 4,6,9,11 *"}, "never comes"},
		{Cron{Spec: "*/5 * 31 2-2,APR ?", TZ: "Europe/Berlin"}, "never comes"},
		{Cron{Spec: "@daily", TZ: "Europe/Berln"}, "IANA"},
		{Cron{Spec: "@daily", TZ: "Local"}, "differs between processes"},
		{Cron{Spec: "@daily", TZ: "../etc/passwd"}, "IANA"},
		{Cron{Spec: "@daily", Missed: 3}, "constants"},
		{Cron{Spec: "@daily", Overlap: 2}, "constants"},
	} {
		_, err := parseCron(c.Cron)
		if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want ErrInvalid with %q", c.Cron, err, c.want)
		}
	}
}

// every ticks at the multiples of a duration.
type every time.Duration

func (e every) after(t time.Time) time.Time {
	return t.Truncate(time.Duration(e)).Add(time.Duration(e))
}

func TestMissedTicksByPolicy(t *testing.T) {
	at := func(minute int) time.Time { return time.Date(2024, 5, 1, 0, minute, 0, 0, time.UTC) }
	plan := every(time.Minute)
	for _, c := range []struct {
		name   string
		policy Missed
		now    time.Time
		want   dueTick
	}{
		{"skip, in time", SkipMissed, at(0), dueTick{at(0), at(1).UnixMilli(), 0}},
		{"skip, late by less than the grace", SkipMissed, at(0).Add(50 * time.Second), dueTick{at(0), at(1).UnixMilli(), 0}},
		{"skip, the newest is in time", SkipMissed, at(10).Add(5 * time.Second), dueTick{at(10), at(11).UnixMilli(), 10}},
		{"once, in time", RunOnce, at(0), dueTick{at(0), at(1).UnixMilli(), 0}},
		{"once, late", RunOnce, at(10).Add(5 * time.Second), dueTick{at(10), at(11).UnixMilli(), 10}},
		{"all, late", RunAll, at(10), dueTick{at(0), at(1).UnixMilli(), 0}},
	} {
		if got := choose(c.policy, plan, at(0), c.now, time.Minute); got.next != c.want.next || got.missed != c.want.missed || !got.fire.Equal(c.want.fire) {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
	hourly := every(time.Hour)
	if got := choose(SkipMissed, hourly, at(0), at(130), time.Minute); !got.fire.IsZero() || got.missed != 3 || got.next != at(180).UnixMilli() {
		t.Errorf("skip, the newest is too late: %+v", got)
	}
	long := at(0).AddDate(20, 0, 0).Add(time.Second)
	if got := choose(RunOnce, plan, at(0), long, time.Minute); !got.fire.Equal(long.Add(-time.Second)) || got.missed != mostMissed {
		t.Errorf("once, after 20 years: %+v, want %v and %d missed", got, long, mostMissed)
	}
	if got := choose(RunOnce, hourly, at(0), long, time.Minute); !got.fire.Equal(long.Truncate(time.Hour)) || got.missed < mostMissed {
		t.Errorf("once, hourly, after 20 years: %+v, want %v", got, long)
	}
}

func TestCronsOfAJobAreNamed(t *testing.T) {
	d, err := declareCrons([]Cron{{Spec: "@daily"}, {Spec: "@hourly"}}, New(modest{}))
	if err != nil || len(d) != 2 || !slices.Equal([]string{d[0].name, d[1].name}, []string{"modest", "modest:2"}) {
		t.Errorf("%+v, %v", d, err)
	}
	if _, err := declareCrons([]Cron{{Spec: "x"}, {Spec: "y"}}, New(modest{})); err == nil || strings.Count(err.Error(), "five fields") != 2 {
		t.Errorf("%v", err)
	}
}
