package emq_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/echomq/emq/internal/redistest"
	emq "github.com/echomq/emq/runtime"
)

// heard is what a subscriber was told.
type heard struct {
	mu     sync.Mutex
	events []emq.JobEvent
}

func (h *heard) take(e emq.JobEvent) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, e)
}

// of gives the names of what was told of a job; of the subscription itself for an empty id.
func (h *heard) of(id emq.ID) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var names []string
	for _, e := range h.events {
		if e.ID == id {
			names = append(names, string(e.Name))
		}
	}
	return names
}

// subscribe listens to a queue until stop, which waits for Subscribe's end, and is there when it returns.
func subscribe(t *testing.T, client *emq.Client, queue string, with func(emq.JobEvent)) (h *heard, stop func()) {
	t.Helper()
	h = new(heard)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- client.Queue(queue).Subscribe(ctx, func(e emq.JobEvent) {
			if with != nil {
				with(e)
			}
			h.take(e)
		})
	}()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Errorf("Subscribe: %v", err)
			}
		})
	}
	t.Cleanup(stop)
	eventually(t, "the subscription stands", func() bool { return len(h.of("")) > 0 })
	return h, stop
}

func TestASubscriberHearsWhatBecomesOfJobs(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, client *emq.Client) {
		queue := client.Queue("sums")
		quiet := enqueueSum(t, client, sum{}, emq.In(time.Hour)) // before they are switched on
		if err := queue.SetEvents(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		if s, err := queue.Settings(t.Context()); err != nil || !s.Events {
			t.Errorf("the settings are %+v, %v", s, err)
		}
		began := time.Now()
		h, stop := subscribe(t, client, "sums", nil)
		good, bad := enqueueSum(t, client, sum{Do: "tell"}), enqueueSum(t, client, sum{Do: "fail"})
		later := enqueueSum(t, client, sum{}, emq.In(time.Hour))
		run(t, client, emq.WorkerConfig{}, emq.HandleResult(func(ctx context.Context, s sum) (total, error) {
			if s.Do == "tell" {
				if err := emq.SetProgress(ctx, map[string]int{"done": 40}); err != nil {
					t.Error(err)
				}
			}
			return add(ctx, s)
		}))
		if err := client.Cancel(t.Context(), later); err != nil {
			t.Fatal(err)
		}
		for _, want := range []struct {
			ref   emq.Ref
			names string
		}{
			{quiet, ""}, {good, "progress completed"}, {bad, "failed retried failed dead"}, {later, "scheduled cancelled"},
		} {
			eventually(t, "events "+want.names, func() bool { return strings.Join(h.of(want.ref.ID), " ") == want.names })
		}
		h.mu.Lock()
		for _, e := range h.events[1:] {
			if e.Queue != "sums" || e.Kind != "sum" || e.At.Before(began.Add(-time.Minute)) || e.At.After(time.Now().Add(time.Minute)) {
				t.Errorf("the event is %+v", e)
			}
			switch e.Name {
			case emq.EventFailed, emq.EventDead:
				if e.Reason != "no sum today\nand a stack" || e.Attempt != 1 && e.Attempt != 2 {
					t.Errorf("the event is %+v", e)
				}
			case emq.EventProgress:
				if string(e.Progress) != `{"done":40}` || e.Attempt != 1 {
					t.Errorf("the event is %+v", e)
				}
			}
		}
		h.mu.Unlock()
		if err := queue.SetEvents(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		silent := enqueueSum(t, client, sum{})
		if _, err := emq.Await[sum](t.Context(), client, silent); err != nil { // its notice comes after its event would
			t.Fatal(err)
		}
		stop()
		if names := h.of(silent.ID); len(names) > 0 {
			t.Errorf("events are off, and %v were heard", names)
		}
	})
}

func TestTheTotalsCountWhatTheEventsTell(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		queue := s.Queue("sums")
		if err := queue.SetEvents(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		h, _ := subscribe(t, s.Client, "sums", nil)
		cases := []struct {
			do, names string
			totals    []string // each is one more
		}{
			{"well", "completed", []string{"completed"}},
			{"fail", "failed retried failed dead", []string{"retried", "failed"}},
			{"panic once", "failed retried completed", []string{"retried", "completed"}},
			{"retry in once", "failed retried completed", []string{"retried", "completed"}},
			{"die", "dead", []string{"failed"}},
			{"garbage", "dead", []string{"failed"}},
			{"discard", "discarded", []string{"discarded"}},
			{"snooze once", "snoozed completed", []string{"snoozed", "completed"}},
			{"lapse at the budget", "reaped dead", []string{"reaped", "failed"}},
			{"lapse", "reaped completed", []string{"reaped", "completed"}},
		}
		refs, want := make([]emq.Ref, len(cases)), s.counts(t, "sums").Totals
		for i, c := range cases {
			refs[i] = enqueueSum(t, s.Client, sum{Do: c.do})
			row := "emq:{sums}:job:" + string(refs[i].ID)
			switch c.do {
			case "garbage":
				s.do(t, "HSET", row, "payload", "{")
			case "lapse at the budget", "lapse":
				if c.do != "lapse" {
					s.do(t, "HSET", row, "lapses", "4")
				}
				s.do(t, "ZREM", "emq:{sums}:pending", string(refs[i].ID))
				s.do(t, "HSET", row, "state", "active", "attempts", "1", "by", "gone0000")
				s.do(t, "ZADD", "emq:{sums}:active", "1", string(refs[i].ID))
			}
			for _, name := range c.totals {
				want[name]++
			}
		}
		run(t, s.Client, emq.WorkerConfig{Lease: time.Second}, emq.HandleResult(func(ctx context.Context, j sum) (total, error) {
			info, _ := emq.InfoFrom(ctx)
			once := s.row(t, info.Ref)["attempts"] == "1"
			switch {
			case j.Do == "fail":
				return total{}, errors.New("no sum today")
			case j.Do == "panic once" && once:
				panic("as told")
			case j.Do == "retry in once" && once:
				return total{}, emq.RetryIn(time.Millisecond, errors.New("not yet"))
			case j.Do == "die":
				return total{}, emq.Dead(errors.New("at once"))
			case j.Do == "discard":
				return total{}, emq.Discard(errors.New("not wanted"))
			case j.Do == "snooze once" && once:
				return total{}, emq.Snooze(time.Millisecond)
			}
			return total{}, nil
		}))
		for i, c := range cases {
			eventually(t, c.do+": "+c.names, func() bool { return strings.Join(h.of(refs[i].ID), " ") == c.names })
		}
		if diff := cmp.Diff(want, s.counts(t, "sums").Totals); diff != "" {
			t.Errorf("the totals (-want +got):\n%s", diff)
		}
	})
}

func TestASubscriberIsToldOfACutAndGoesOn(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	p := startProxy(t, server.URL())
	client, err := emq.Open(t.Context(), p.Proxy.URL(), emq.WithLogger(new(logbook).logger()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	other := openClient(t, server.URL())
	if err := other.Queue("sums").SetEvents(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	h, _ := subscribe(t, client, "sums", nil)
	for n := 2; n <= 4; n++ {
		p.CutAll()
		eventually(t, "it is told of the cut", func() bool { return len(h.of("")) >= n })
		ref := enqueueSum(t, other, sum{}, emq.In(time.Hour))
		eventually(t, "it hears again", func() bool { return slices.Equal(h.of(ref.ID), []string{"scheduled"}) })
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, e := range h.events {
		if e.Name == emq.EventSubscribed && (e.Reason == "") != (i == 0) {
			t.Errorf("event %d says %q", i, e.Reason)
		}
	}
}

// A callback that is too slow loses events, is told so, and holds nobody up.
func TestASlowSubscriberIsToldWhatItHasMissed(t *testing.T) {
	t.Parallel()
	s := realStore(t)
	hold := make(chan struct{})
	var first atomic.Bool
	h, _ := subscribe(t, s.Client, "sums", func(e emq.JobEvent) {
		if e.Name != emq.EventSubscribed && first.CompareAndSwap(false, true) {
			<-hold
		}
	})
	const told = 6000
	for range told {
		s.do(t, "PUBLISH", "emq:{sums}:events", `{"id":"JOB0KHTOWnGLuA","event":"completed","ts":1764660000000}`)
	}
	s.do(t, "PUBLISH", "emq:{sums}:events", "not an event")
	ref := enqueueSum(t, s.Client, sum{A: 1})
	run(t, s.Client, emq.WorkerConfig{}, emq.HandleResult(add))
	if r, err := emq.Await[sum](t.Context(), s.Client, ref); err != nil || r.Total != 1 { // on the same connection
		t.Errorf("%v, %v", r, err)
	}
	close(hold)
	eventually(t, "it is told", func() bool { return len(h.of("")) == 2 })
	got := len(h.of("JOB0KHTOWnGLuA"))
	h.mu.Lock()
	defer h.mu.Unlock()
	i := slices.IndexFunc(h.events, func(e emq.JobEvent) bool { return e.Name == emq.EventSubscribed && e.Reason != "" })
	t.Logf("%d of %d heard; then: %s", got, told, h.events[i].Reason)
	if got < 4096 || got >= told || !strings.Contains(h.events[i].Reason, "dropped") {
		t.Error("it does not add up")
	}
}

func TestSubscribeEndsAndLeavesNothing(t *testing.T) {
	server := redistest.Start(t)
	raw := outside(t, server.URL())
	subscriptions(t, raw, "emq:{sums}:events") // its own goroutines begin with the first call
	before := goleak.IgnoreCurrent()
	client, err := emq.Open(t.Context(), server.URL())
	if err != nil {
		t.Fatal(err)
	}
	var stops []func()
	for range 20 {
		_, stop := subscribe(t, client, "sums", nil)
		stops = append(stops, stop)
	}
	if n := subscriptions(t, raw, "emq:{sums}:events"); n != 1 {
		t.Errorf("%d connections are subscribed", n)
	}
	for _, stop := range stops {
		stop()
	}
	eventually(t, "nobody is subscribed any more", func() bool { return subscriptions(t, raw, "emq:{sums}:events") == 0 })
	// and one that is there when its client is closed
	ended := make(chan error, 1)
	there := make(chan struct{})
	go func() {
		ended <- client.Queue("sums").Subscribe(context.Background(), func(emq.JobEvent) { close(there) })
	}()
	<-there
	client.Close()
	if err := <-ended; err == nil {
		t.Error("a subscription outlives its client")
	}
	if err := client.Queue("sums").Subscribe(context.Background(), func(emq.JobEvent) {}); err == nil {
		t.Error("a closed client subscribes")
	}
	goleak.VerifyNone(t, before)
}

func TestSubscribeRefusesWhatItCannotDo(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := openClient(t, server.URL())
	for _, err := range []error{
		client.Queue("{}").Subscribe(t.Context(), func(emq.JobEvent) {}), client.Queue("sums").Subscribe(t.Context(), nil),
		client.Queue("{}").SetEvents(t.Context(), true),
	} {
		if !errors.Is(err, emq.ErrInvalid) {
			t.Error(err)
		}
	}
	why := errors.New("nobody looks any more")
	over, end := context.WithCancelCause(t.Context())
	end(why)
	if err := client.Queue("sums").Subscribe(over, func(emq.JobEvent) { t.Error("something was heard") }); !errors.Is(err, why) {
		t.Errorf("a context that has ended: %v", err)
	}
	p := startProxy(t, server.URL())
	p.denying(func(words []string) bool { return strings.EqualFold(words[0], "SUBSCRIBE") })
	denied, err := emq.Open(t.Context(), p.Proxy.URL(), emq.WithLogger(new(logbook).logger()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(denied.Close)
	if err := denied.Queue("sums").Subscribe(t.Context(), func(emq.JobEvent) {}); !errors.Is(err, emq.ErrPermission) {
		t.Errorf("a user who may not subscribe: %v", err)
	}
}
