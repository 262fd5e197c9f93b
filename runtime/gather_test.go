package emq

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"
)

// ferry is a gather whose calls wait until the test lets them go.
type ferry struct {
	gather[int, int]
	calls chan []int
	let   chan struct{}
	tasks sync.WaitGroup
}

func newFerry() *ferry {
	f := &ferry{calls: make(chan []int, 10), let: make(chan struct{}, 100)}
	f.gather = gather[int, int]{
		life: context.Background,
		call: func(ctx context.Context, members []int) []int {
			f.calls <- slices.Clone(members)
			<-f.let
			verdicts := make([]int, len(members))
			for i, m := range members {
				verdicts[i] = -m
			}
			return verdicts
		},
		bytes: func(m int) int { return m }, limit: 1000, most: 5,
	}
	return f
}

// send sends a member in a goroutine of its own, and answers when it waits or flies.
func (f *ferry) send(t *testing.T, ctx context.Context, m int) {
	t.Helper()
	f.mu.Lock()
	before := len(f.waiting) + f.flying
	f.mu.Unlock()
	f.begin(t, ctx, m)
	until(t, func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return len(f.waiting)+f.flying > before
	})
}

// begin sends a member in a goroutine of its own.
func (f *ferry) begin(t *testing.T, ctx context.Context, m int) {
	f.tasks.Go(func() {
		v, err := f.do(ctx, m)
		if err == nil && v != -m {
			t.Errorf("the verdict of %d is %d", m, v)
		}
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

func until(t *testing.T, f func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it does not come")
		}
	}
}

func (f *ferry) saw(t *testing.T, want ...int) {
	t.Helper()
	select {
	case got := <-f.calls:
		if !slices.Equal(got, want) {
			t.Errorf("the call carries %v, want %v", got, want)
		}
	case <-time.After(20 * time.Second):
		t.Fatalf("no call; want %v", want)
	}
}

// end lets everything land.
func (f *ferry) end(t *testing.T) {
	t.Helper()
	close(f.let)
	f.tasks.Wait()
	f.flights.Wait()
	if f.flying != 0 || len(f.waiting) != 0 || len(f.calls) != 0 {
		t.Errorf("%d fly, %d wait, %d calls were not expected", f.flying, len(f.waiting), len(f.calls))
	}
}

func TestALoneCallIsSentAtOnce(t *testing.T) {
	f := newFerry()
	ctx := t.Context()
	f.send(t, ctx, 1)
	f.saw(t, 1)
	f.send(t, ctx, 2)
	f.saw(t, 2)
	f.end(t)
}

func TestWhatWaitsGoesTogetherAndInOrder(t *testing.T) {
	f := newFerry()
	ctx := t.Context()
	for m := 1; m <= 9; m++ {
		f.send(t, ctx, m)
	}
	f.saw(t, 1)
	f.saw(t, 2)
	f.let <- struct{}{}
	f.saw(t, 3, 4, 5, 6, 7) // five at most
	f.let <- struct{}{}
	f.saw(t, 8, 9)
	f.end(t)
}

func TestASecondCallWaitsForACrowdIfThereHasToBeOne(t *testing.T) {
	f := newFerry()
	f.crowd = 3
	ctx := t.Context()
	f.send(t, ctx, 1)
	f.saw(t, 1)
	f.send(t, ctx, 2)
	f.send(t, ctx, 3)
	if len(f.calls) != 0 {
		t.Error("two are no crowd")
	}
	f.begin(t, ctx, 4)
	f.saw(t, 2, 3, 4)
	for m := 5; m <= 8; m++ {
		f.send(t, ctx, m)
	}
	if len(f.calls) != 0 {
		t.Error("two are under way already")
	}
	f.let <- struct{}{}
	f.saw(t, 5, 6, 7, 8)
	f.send(t, ctx, 9)
	f.let <- struct{}{}
	f.saw(t, 9) // a call that has ended takes what waits, also one
	f.end(t)
}

// What comes while the first caller lets others run goes along with it, within the limits of a call.
func TestTheFirstCallTakesAlongWhoIsAboutToMakeOne(t *testing.T) {
	for _, c := range []struct {
		come  []int
		calls [][]int
	}{
		{nil, [][]int{{1}}},
		{[]int{2, 3}, [][]int{{1, 2, 3}}},
		{[]int{2, 3, 4, 5, 6, 7}, [][]int{{1, 2, 3, 4, 5}, {6, 7}}},
		{[]int{600, 300, 200, 10}, [][]int{{1, 600, 300}, {200, 10}}},
		{[]int{2000, 10}, [][]int{{1}, {2000}, {10}}},
	} {
		f := newFerry()
		f.crowd = 100
		for _, m := range c.come {
			f.waiting = append(f.waiting, &passenger[int, int]{member: m, landed: make(chan struct{})})
		}
		others := slices.Clone(f.waiting)
		f.begin(t, t.Context(), 1)
		for _, call := range c.calls {
			f.saw(t, call...)
			f.let <- struct{}{}
		}
		f.end(t)
		for _, p := range others {
			if <-p.landed; p.verdict != -p.member {
				t.Errorf("the verdict of %d is %d", p.member, p.verdict)
			}
		}
	}
}

func TestACallCarriesNoMoreThanItsBytes(t *testing.T) {
	f := newFerry()
	ctx := t.Context()
	for _, m := range []int{1, 2, 600, 300, 200, 2000, 10} {
		f.send(t, ctx, m)
	}
	f.saw(t, 1)
	f.saw(t, 2)
	f.let <- struct{}{}
	f.saw(t, 600, 300)
	f.let <- struct{}{}
	f.saw(t, 200)
	f.let <- struct{}{}
	f.saw(t, 2000) // more than the limit: alone
	f.let <- struct{}{}
	f.saw(t, 10)
	f.end(t)
}

func TestAContextThatEndsStopsOnlyItsOwnMember(t *testing.T) {
	f := newFerry()
	ctx := t.Context()
	f.send(t, ctx, 1)
	f.saw(t, 1)
	f.send(t, ctx, 2)
	f.saw(t, 2)
	early, cancelEarly := context.WithCancel(ctx)
	f.send(t, ctx, 3)
	f.send(t, early, 4)
	f.send(t, ctx, 5)
	cancelEarly()
	until(t, func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return len(f.waiting) == 2
	})
	f.let <- struct{}{}
	f.saw(t, 3, 5) // 4 was never sent
	late, cancelLate := context.WithCancel(ctx)
	f.send(t, late, 6)
	f.let <- struct{}{}
	f.saw(t, 6)
	cancelLate() // on its way: its fate is not known
	f.end(t)
}
