package emq_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	emq "github.com/echomq/emq/runtime"
)

// toll is the job of the cron experiment: it writes its tick to the journal.
type toll struct{}

func (toll) EmqSpec() emq.Spec[toll] {
	return emq.Spec[toll]{Queue: "errands", Kind: "toll", Attempts: 1, Timeout: time.Minute}
}

func (j *journal) toll(ctx context.Context, _ toll) error {
	info, _ := emq.InfoFrom(ctx)
	j.write(j.runs.Add(1), "toll", info.ID, info.Tick.UnixMilli())
	return nil
}

// tolls reads the journal: the ids of the jobs of each tick.
func (e *experiment) tolls() map[int64][]string {
	e.t.Helper()
	text, err := os.ReadFile(e.journal)
	if err != nil {
		e.t.Fatal(err)
	}
	ticks := make(map[int64][]string)
	for line := range strings.Lines(string(text)) {
		var ns, tick int64
		var pid, run int
		var event, id string
		if !strings.HasSuffix(line, "\n") {
			break // half there
		}
		if _, err := fmt.Sscan(line, &ns, &pid, &run, &event, &id, &tick); err != nil || event != "toll" {
			e.t.Fatalf("journal: %v in %q", err, line)
		}
		if !slices.Contains(ticks[tick], id) {
			ticks[tick] = append(ticks[tick], id)
		}
	}
	return ticks
}

// Experiment 23: five processes fire one entry for 200 ticks, while they are killed at random. A tick whose
// process dies is fired by the next; a job whose process dies runs again, under the same id.
func TestExperimentCronWhileProcessesDie(t *testing.T) {
	t.Parallel()
	const tick, ticks = 50 * time.Millisecond, 200
	e := newExperiment(t)
	settings := part{Lease: 500 * time.Millisecond, Concurrency: 4, Every: tick}
	workers := make([]*process, 5)
	for i := range workers {
		workers[i] = e.start(settings)
	}
	queue := e.client.Queue("errands")
	emq.FireEvery(e.client, tick)
	if err := queue.AddCron(t.Context(), "toll", emq.Cron{Spec: "* * * * *", Missed: emq.RunAll}, emq.New(toll{})); err != nil {
		t.Fatal(err)
	}
	entry := func() emq.CronEntry {
		page, err := queue.Crons(t.Context(), "", 10)
		if err != nil || len(page.Entries) != 1 {
			t.Fatalf("%+v, %v", page, err)
		}
		return page.Entries[0]
	}
	first := entry().Next
	random := rand.New(rand.NewPCG(23, 23))
	kills, pumps := 0, 0
	for seen := int64(0); seen < ticks; {
		e.reached("the entry goes on", func() bool { return entry().TicksFired >= seen+5 })
		seen = entry().TicksFired
		victim := random.IntN(len(workers))
		holder, _ := e.raw.Do(t.Context(), e.raw.B().Get().Key("emq:{errands}:pump").Build()).ToString()
		workers[victim].kill()
		kills++
		workers[victim] = e.start(settings)
		if now, _ := e.raw.Do(t.Context(), e.raw.B().Get().Key("emq:{errands}:pump").Build()).ToString(); now != holder {
			pumps++
		}
	}
	if err := queue.PauseCron(t.Context(), "toll"); err != nil {
		t.Fatal(err)
	}
	e.reached("what was fired has run", func() bool {
		c := e.counts()
		return c.Totals["completed"] == entry().TicksFired && c.Pending+c.Active+c.Scheduled == 0
	})
	end, got := entry(), e.tolls()
	for at := first; !at.After(end.Last); at = at.Add(tick) {
		if ids := got[at.UnixMilli()]; len(ids) != 1 {
			t.Errorf("tick %v has the jobs %v, want one", at, ids)
		}
	}
	want := int64(end.Last.Sub(first)/tick) + 1
	t.Logf("experiment 23: %d ticks of %v, %d of them in the journal, %d kills (%d found another pump at once), %d leases lapsed",
		want, tick, len(got), kills, pumps, e.counts().Totals["reaped"])
	if want < ticks || int64(len(got)) != want || end.TicksFired != want || end.TicksMissed != 0 || end.TicksSkipped != 0 {
		t.Errorf("%d ticks have passed, the journal has %d from %v to %v, and the entry says %+v", want, len(got),
			slices.Min(slices.Collect(maps.Keys(got))), slices.Max(slices.Collect(maps.Keys(got))), end)
	}
}
