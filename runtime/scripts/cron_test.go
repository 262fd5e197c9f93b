package scripts

import (
	"fmt"
	"time"
)

func nightly(payload string) CronDef {
	return CronDef{Spec: "0 2 * * *", TZ: "Europe/Berlin", Missed: "once", Overlap: "allow", Kind: "sweep", Version: 1, Payload: []byte(payload)}
}

// in is a time from the last step on, in ms.
func (s *scene) in(d time.Duration) int64 { return int64(s.at) + d.Milliseconds() }

// fire is the tick that an entry has next, with the job that it enqueues.
func (s *scene) fire(name, id string) cronFire {
	e := s.m.crons[name]
	job := NewJob{ID: id, Payload: e.def.Payload, Src: "src00001", Fields: []string{"kind", e.def.Kind}, Lane: e.def.Lane,
		Unique: e.def.Unique, Window: e.def.Window, UntilStart: e.def.UntilStart}
	return cronFire{Name: name, Rev: e.rev, Seen: int64(e.next), Tick: int64(e.next), Next: int64(e.next) + 3_600_000, NewJob: job}
}

func (s *scene) added(name string, d CronDef, in time.Duration) {
	s.says("wanted", cronRefresh{name, false, d})
	s.says("true", cronPut{name, "", "rev00001", s.in(in), false, d})
}

func (s *scene) declared(name string, d CronDef, in time.Duration) {
	s.says("wanted", cronRefresh{name, true, d})
	s.says("true", cronPut{name, "", "rev00001", s.in(in), true, d})
}

// everythingOfCron takes every transition of cron entries once.
func everythingOfCron(s *scene) {
	d := nightly("{}")
	d.Lane, d.Unique = "a", uniqueKeyName+"cron"
	s.added("night", d, time.Minute)
	s.declared("day", nightly("{}"), time.Minute)
	s.all(cronBrowse{}, cronDue{}, cronTune{"day", "pause", "", 0})
	s.pass(2 * time.Minute)
	s.all(cronDue{}, s.fire("night", jobN(300)), s.fire("day", jobN(301)), cronRefresh{"day", true, nightly("{}")})
	s.all(cronTune{"day", "resume", "rev00001", s.in(0)}, cronTune{"day", "lapse", "", 0})
	s.all(cronTune{"day", "retire", "", 0}, cronTune{"night", "remove", "", 0}, remove{jobN(300)})
}

func cronScenarios() []scenario {
	return []scenario{
		{"an entry is written once and known again", func(s *scene) {
			d := nightly("{}")
			s.added("night", d, time.Hour)
			s.says("kept rev00001", cronRefresh{"night", false, d})
			s.leaves(cronRefresh{"night", false, d})
			s.says("false", cronPut{"night", "", "rev00002", s.in(time.Minute), false, d})
			s.says("EMQLOCK", cronRefresh{"night", true, d})
			s.leaves(cronRefresh{"night", true, d})
			s.all(cronBrowse{}, cronDue{})
		}},
		{"another payload keeps the next tick, another spec does not", func(s *scene) {
			s.added("night", nightly("{}"), time.Hour)
			next := s.m.crons["night"].next
			s.says("wanted rev00001", cronRefresh{"night", false, nightly("[]")})
			s.says("true", cronPut{"night", "rev00001", "rev00002", s.in(time.Minute), false, nightly("[]")})
			if s.m.crons["night"].next != next {
				failf("after %s\nthe next tick has changed", s.story())
			}
			other := nightly("[]")
			other.Spec = "0 3 * * *"
			s.says("true", cronPut{"night", "rev00002", "rev00003", s.in(time.Minute), false, other})
			s.says("false", cronPut{"night", "rev00002", "rev00004", s.in(time.Minute), false, other})
		}},
		{"a tick fires once, not before its time, and its job has the tick", func(s *scene) {
			s.added("night", nightly("{}"), time.Minute)
			s.says("early", s.fire("night", jobA))
			s.pass(2 * time.Minute)
			s.says("pumped 0 0 0, a cron entry is due", pump{Tag: "process1", Budget: 3, Limit: 100, Lease: lease})
			first := s.fire("night", jobA)
			s.says("fired", first)
			s.says("moved", first)
			again := first
			again.ID = jobB
			s.says("moved", again)
			s.says("pumped 0 0 0, a cron entry will be due", pump{Tag: "process1", Budget: 3, Limit: 100, Lease: lease})
			s.says("early", s.fire("night", jobB))
			none := s.fire("night", jobB)
			none.Tick = 0
			s.says("early", none)
			s.all(cronBrowse{}, claimBy("mine0001"))
		}},
		{"a tick fires only for the entry that its caller saw", func(s *scene) {
			s.added("night", nightly("{}"), -time.Minute)
			f := s.fire("night", jobA)
			s.all(cronPut{"night", "rev00001", "rev00002", s.in(0), false, nightly("[]")})
			s.says("moved", f)
			f = s.fire("night", jobA)
			f.Seen++
			s.says("moved", f)
			s.all(cronTune{"night", "pause", "", 0})
			s.says("moved", s.fire("night", jobA))
			f = s.fire("night", jobA)
			f.Name = "nobody"
			s.leaves(f)
		}},
		{"an id that is taken changes nothing", func(s *scene) {
			s.all(enter(jobA))
			s.added("night", nightly("{}"), -time.Minute)
			s.says("duplicate", s.fire("night", jobA))
			s.leaves(s.fire("night", jobA))
			f := s.fire("night", "USR00000000001")
			s.says("EMQKIND", f)
			s.says("fired", s.fire("night", jobB))
		}},
		{"a unique key, a full queue and an overlap skip the tick, and the entry goes on", func(s *scene) {
			d := nightly("{}")
			d.Unique = uniqueKeyName
			s.all(only(jobC))
			s.added("unique", d, -time.Hour)
			s.says("conflict", s.fire("unique", jobN(1)))
			d = nightly("{}")
			d.Overlap = "skip"
			s.added("overlap", d, -5*time.Hour)
			s.says("fired", s.fire("overlap", jobN(2)))
			s.says("overlap", s.fire("overlap", jobN(3)))
			s.all(claimBy("mine0001"))
			s.says("overlap", s.fire("overlap", jobN(4)))
			s.added("allow", nightly("{}"), -3*time.Hour)
			s.says("fired", s.fire("allow", jobN(10)))
			s.says("fired", s.fire("allow", jobN(11)))
			s.all(kill{fenceOf(jobN(2), 1, "mine0001"), "no"})
			s.says("fired", s.fire("overlap", jobN(5)))
			s.all(setMeta("max_len", "1"))
			s.added("full", nightly("{}"), -time.Hour)
			s.says("full", s.fire("full", jobN(6)))
			s.all(cronBrowse{})
		}},
		{"missed ticks are counted, with a job or without", func(s *scene) {
			s.added("night", nightly("{}"), -4*time.Hour)
			f := s.fire("night", jobA)
			f.Tick, f.Next, f.Missed = f.Seen+3_600_000, f.Seen+7_200_000, 1
			s.says("fired", f)
			f = s.fire("night", jobB)
			f.Tick, f.Missed = 0, 2
			s.says("missed", f)
			s.all(cronBrowse{})
		}},
		{"lanes and keys of a tick are those of an enqueue", func(s *scene) {
			for i, lane := range []string{"", "a"} {
				for j, d := range []CronDef{{}, {Unique: uniqueKeyName + lane}, {Unique: uniqueKeyName + lane + "w", Window: delay},
					{Unique: uniqueKeyName + lane + "s", UntilStart: true}} {
					name := fmt.Sprint("e", i, j)
					full := nightly("{}")
					full.Lane, full.Unique, full.Window, full.UntilStart = lane, d.Unique, d.Window, d.UntilStart
					s.added(name, full, -time.Hour)
					s.says("fired", s.fire(name, jobN(10*i+j)))
				}
			}
			s.all(cronBrowse{}, claimBy("mine0001"))
		}},
		{"a pause keeps its entry from ticking until it is resumed", func(s *scene) {
			s.added("night", nightly("{}"), -time.Minute)
			s.says("done", cronTune{"night", "pause", "", 0})
			s.says("done", cronTune{"night", "pause", "", 0})
			s.says("", cronDue{})
			s.says("pumped 0 0 0", pump{Tag: "process1", Budget: 3, Limit: 100, Lease: lease})
			s.says("moved", cronTune{"night", "resume", "rev00000", s.in(time.Minute)})
			s.all(cronPut{"night", "rev00001", "rev00002", s.in(time.Minute), false, nightly("[]")})
			s.says("done", cronTune{"night", "resume", "rev00002", s.in(time.Minute)})
			s.says("done", cronTune{"night", "resume", "rev00000", s.in(time.Hour)})
			s.says("early", s.fire("night", jobA))
		}},
		{"an entry is removed once, a declared one is not", func(s *scene) {
			s.added("night", nightly("{}"), time.Minute)
			s.says("kept", cronTune{"night", "lapse", "", 0})
			s.says("kept", cronTune{"night", "retire", "", 0})
			s.says("done", cronTune{"night", "remove", "", 0})
			for _, verb := range []string{"remove", "pause", "resume", "lapse", "retire"} {
				s.says("EMQGONE", cronTune{"night", verb, "", 0})
			}
			s.declared("day", nightly("{}"), time.Minute)
			s.says("EMQLOCK", cronTune{"day", "remove", "", 0})
			s.says("done", cronTune{"day", "pause", "", 0})
			s.says("done", cronTune{"day", "retire", "", 0})
		}},
		{"a declared entry lives while somebody refreshes it, also paused", func(s *scene) {
			s.declared("day", nightly("{}"), 24*time.Hour)
			s.declared("rest", nightly("{}"), -time.Minute)
			s.all(cronTune{"rest", "pause", "", 0})
			s.pass(40 * time.Minute)
			s.says("kept rev00001", cronRefresh{"day", true, nightly("{}")})
			s.pass(40 * time.Minute)
			s.says("kept", cronTune{"day", "lapse", "", 0})
			s.all(cronDue{})
			s.says("done", cronTune{"rest", "lapse", "", 0})
			s.pass(21 * time.Minute)
			s.all(cronDue{})
			s.says("pumped 0 0 0, a cron entry is due", pump{Tag: "process1", Budget: 3, Limit: 100, Lease: lease})
			s.says("done", cronTune{"day", "lapse", "", 0})
		}},
		{"a declared entry that nobody refreshes does not fire", func(s *scene) {
			s.declared("day", nightly("{}"), 30*time.Minute)
			s.pass(61 * time.Minute)
			s.says("moved", s.fire("day", jobA))
			s.says("kept rev00001", cronRefresh{"day", true, nightly("{}")})
			s.says("fired", s.fire("day", jobA))
		}},
		{"of two definitions the one that came last stays, until nobody has it", func(s *scene) {
			a, b := nightly("{}"), nightly("[]")
			s.declared("day", a, time.Hour)
			s.says("wanted rev00001", cronRefresh{"day", true, b})
			s.says("true", cronPut{"day", "rev00001", "rev00002", s.in(time.Hour), true, b})
			s.says("older rev00002", cronRefresh{"day", true, a})
			s.leaves(cronRefresh{"day", true, a})
			s.pass(4 * time.Minute)
			s.says("older rev00002", cronRefresh{"day", true, a})
			s.says("kept rev00002", cronRefresh{"day", true, b})
			s.pass(4 * time.Minute)
			s.says("older rev00002", cronRefresh{"day", true, a})
			s.pass(2 * time.Minute)
			s.says("wanted rev00002", cronRefresh{"day", true, a})
			s.says("true", cronPut{"day", "rev00002", "rev00003", s.in(time.Hour), true, a})
			s.says("older rev00003", cronRefresh{"day", true, b})
			c := nightly("null")
			c.Version = 2
			s.says("true", cronPut{"day", "rev00003", "rev00004", s.in(time.Hour), true, c})
			s.says("older rev00004", cronRefresh{"day", true, nightly("never seen")})
			for i := range 12 { // the memory is bounded
				d := nightly(fmt.Sprint(i))
				d.Version = 2
				s.says("true", cronPut{"day", s.m.crons["day"].rev, fmt.Sprintf("rev1%04d", i), s.in(time.Hour), true, d})
			}
		}},
		{"many entries are due in parts", func(s *scene) {
			for i := range MaxCronDue + 3 {
				s.added(fmt.Sprintf("e%02d", i), nightly("{}"), -time.Duration(40-i)*time.Second)
			}
			s.all(cronDue{}, cronDue{MaxCronDue}, cronDue{100}, cronBrowse{})
		}},
		{"a place that somebody has spoilt is mended when it is met", func(s *scene) {
			s.added("night", nightly("{}"), time.Hour)
			s.declared("day", nightly("{}"), time.Hour)
			spoil := func(name string) {
				s.must("ZADD", s.key("repeat"), "1", name)
			}
			spoil("night")
			s.says("early", s.fire("night", jobA))
			spoil("day")
			s.says("kept", cronTune{"day", "lapse", "", 0})
			s.must("ZADD", s.key("repeat"), "1", "ghost")
			s.says("EMQGONE", cronTune{"ghost", "lapse", "", 0})
		}},
	}
}
