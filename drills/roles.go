package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/redis/rueidis"

	"github.com/echomq/emq/internal/wire"
	emq "github.com/echomq/emq/runtime"
)

// A process of a drill is this program again, with its role in the environment.
const roleVariable = "EMQ_DRILL_ROLE"

// role is what a process does. Times of zero are the worker's defaults.
type role struct {
	URL, Log string
	Work     *workRole    `json:",omitempty"`
	Produce  *produceRole `json:",omitempty"`
	Soak     *soakRole    `json:",omitempty"`
	Watch    *watchRole   `json:",omitempty"`
}

type workRole struct {
	Concurrency, CrashBudget  int
	Lease, SoftStop, HardStop time.Duration
}

// produceRole is a producer that enqueues jobs with the numbers from First on.
type produceRole struct {
	First, Count, Batch int
	Pause               time.Duration // between batches
	Longest             time.Duration // of a job
	Only                string        // one queue; all three otherwise
	Seed                uint64

	Patience time.Duration // of one call; 30 s by default
	Skew     time.Duration // ids are minted by a clock that is wrong by so much
	Clients  int           // so many clients that each draw a node number of their own, and all call at once
	Gate     string        // a file: nothing is sent before it is there
}

func playRole(text string) int {
	var r role
	err := json.Unmarshal([]byte(text), &r)
	if err == nil {
		err = r.play()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func (r role) play() error {
	book, err := openLogbook(r.Log)
	if err != nil {
		return err
	}
	switch {
	case r.Work != nil:
		err = r.work(book)
	case r.Soak != nil:
		return r.soak(book)
	case r.Watch != nil:
		return r.Watch.run(book)
	default:
		err = r.produce(book)
	}
	if err == nil {
		book.write(line{What: isDone})
	}
	return err
}

// open waits for a server that is away now: a process may be started at any moment of a drill.
func (r role) open(ctx context.Context) (*emq.Client, error) {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	for try := 0; ; try++ {
		c, err := emq.Open(ctx, r.URL, emq.WithLogger(log))
		if err == nil || try == 60 || ctx.Err() != nil {
			return c, err
		}
		log.Warn("open", "error", err)
		time.Sleep(500 * time.Millisecond) // between tries
	}
}

// scribe writes down what a worker's observer sees.
type scribe struct{ book logbook }

func (s scribe) Observe(_ context.Context, e emq.Event) {
	if e.Name != emq.EventCompleted {
		s.book.write(line{What: observed, Text: string(e.Name), Queue: e.Queue, ID: string(e.ID), Try: e.Attempt})
	}
}

func (r role) work(book logbook) error {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	client, err := r.open(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	hand := &laborer{book: book}
	w, err := emq.NewWorker(client, emq.WorkerConfig{
		Concurrency: r.Work.Concurrency, CrashBudget: r.Work.CrashBudget,
		Lease: r.Work.Lease, SoftStop: r.Work.SoftStop, HardStop: r.Work.HardStop, Observer: scribe{book},
	}, hand.bindings())
	if err != nil {
		return err
	}
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		t := time.NewTicker(500 * time.Millisecond)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				book.write(line{What: sampled, Count: runtime.NumGoroutine()})
			case <-stop:
				return
			}
		}
	}()
	book.write(line{What: isUp})
	return emq.RunUntilSignal(ctx, w)
}

func (r role) produce(book logbook) error {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	clients, err := r.clients(ctx)
	if ctx.Err() != nil {
		return nil // told to end before it had begun
	}
	if err != nil {
		return err
	}
	p := r.Produce
	rng := rand.New(rand.NewPCG(p.Seed, uint64(p.First)))
	minter, err := wire.NewMinter(int(p.Seed)%wire.MaxNode, func() time.Time { return time.Now().Add(p.Skew) })
	if err != nil {
		return err
	}
	book.write(line{What: isUp})
	for p.Gate != "" && !exists(p.Gate) {
		time.Sleep(time.Millisecond) // polling; the drill has the deadline
	}
	var calls sync.WaitGroup
	defer calls.Wait()
	for n := 0; n < p.Count && ctx.Err() == nil; {
		size := min(max(p.Batch, 1), p.Count-n)
		jobs := make([]emq.Job, size)
		queues := make([]string, size)
		for i := range jobs {
			var opts []emq.Option
			if p.Skew != 0 {
				id, err := minter.Mint()
				if err != nil {
					return err
				}
				opts = append(opts, emq.WithID(emq.ID(id)))
			}
			jobs[i], queues[i] = p.job(rng, p.First+n+i, opts)
		}
		first, client := p.First+n, clients[n/size%len(clients)]
		send := func() { p.enqueue(book, client, jobs, queues, first) }
		if len(clients) > 1 {
			calls.Go(send)
		} else {
			send()
		}
		n += size
		if p.Pause > 0 && n < p.Count {
			select {
			case <-time.After(p.Pause):
			case <-ctx.Done():
			}
		}
	}
	return nil
}

// clients are one, or many over one connection, as so many processes would be.
func (r role) clients(ctx context.Context) ([]emq.Enqueuer, error) {
	if r.Produce.Clients <= 1 {
		c, err := r.open(ctx)
		return []emq.Enqueuer{c}, err
	}
	option, err := rueidis.ParseURL(r.URL)
	if err != nil {
		return nil, err
	}
	option.DisableCache, option.DisableRetry, option.PipelineMultiplex = true, true, -1
	shared, err := rueidis.NewClient(option)
	if err != nil {
		return nil, err
	}
	clients := make([]emq.Enqueuer, r.Produce.Clients)
	for i := range clients {
		if clients[i], err = emq.NewClient(shared); err != nil {
			return nil, err
		}
	}
	return clients, nil
}

// job draws one: its queue, its work, and for a parcel a lane and a delay.
func (p *produceRole) job(rng *rand.Rand, n int, opts []emq.Option) (emq.Job, string) {
	w := work{N: n}
	if p.Longest > 0 {
		w.For = time.Duration(rng.Int64N(int64(p.Longest)))
	}
	if rng.IntN(15) == 0 {
		w.Do = failFirst
	}
	queue := p.Only
	if queue == "" {
		queue = []string{tasks, keeps, parcels}[rng.IntN(3)]
	}
	switch queue {
	case tasks:
		return emq.New(task(w), opts...), queue
	case keeps:
		return emq.New(kept(w), opts...), queue
	}
	if rng.IntN(4) > 0 {
		opts = append(opts, emq.InLane(fmt.Sprintf("lane %d", rng.IntN(5))))
	}
	if rng.IntN(3) == 0 {
		opts = append(opts, emq.In(time.Duration(rng.Int64N(int64(2*time.Second)))))
	}
	return emq.New(parcel(w), opts...), queue
}

// enqueue sends a batch and writes down what became of each job.
func (p *produceRole) enqueue(book logbook, c emq.Enqueuer, jobs []emq.Job, queues []string, first int) {
	patience := p.Patience
	if patience == 0 {
		patience = 30 * time.Second
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	sent := monotonic()
	receipts, err := c.Enqueue(ctx, jobs...)
	for i, r := range receipts {
		entry := line{ID: string(r.ID), Queue: queues[i], N: first + i, Sent: sent}
		switch r.Status {
		case emq.Enqueued:
			entry.What = wasAcked
		case emq.Refused:
			entry.What, entry.Text = wasRefused, "another error"
			if errors.Is(err, emq.ErrFull) {
				entry.Text = "full"
			}
		default:
			entry.What, entry.Text = isUnknown, fmt.Sprint(r.Status, " ", err)
		}
		book.write(entry)
	}
}
