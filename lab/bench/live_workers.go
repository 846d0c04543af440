package bench

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/paceline-go/paceline/internal/core/dispatch"
	"github.com/paceline-go/paceline/internal/core/queue"
	"github.com/paceline-go/paceline/lab/sim"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// workers is the published client: for each key a worker takes a request from the shared queue,
// waits for its limiter, sends the request and waits for the answer.
type workers struct {
	*client
	x *sim.Exchange

	shared sync.Mutex // guards the fields below; the client's own lock guards its tally
	q      *queue.Queue
	// There are two conditions. With one, every request taken would wake the idle workers, and they
	// would queue up in another order. First come, first served is the order in which the key goes
	// next that has rested longest.
	work, room *sync.Cond
	stopped    bool
}

func (c *client) runWorkers(ctx context.Context) error {
	w := &workers{client: c, x: &c.row.Scenario}
	w.work, w.room = sync.NewCond(&w.shared), sync.NewCond(&w.shared)
	var err error
	if w.q, err = queue.New(w.x.Queue); err != nil {
		return err
	}
	making, stop := context.WithDeadline(ctx, c.began.Add(c.length))
	defer stop()
	var wg sync.WaitGroup
	errs := make([]error, w.x.Server.Keys)
	for key := range errs {
		wg.Go(func() { errs[key] = w.run(ctx, key) })
	}
	wake := context.AfterFunc(making, func() {
		w.shared.Lock() // without the lock this could come between the generator's look and its wait, and be missed
		defer w.shared.Unlock()
		w.room.Broadcast()
	})
	defer wake()
	c.generate(making, w.submit)
	w.shared.Lock()
	w.stopped = true
	w.shared.Unlock()
	w.work.Broadcast()
	wg.Wait()
	c.tally.Counts = w.q.Counts()
	c.tally.WakeUps = c.tally.Polls + c.tally.Sent
	c.tally.Lost = c.requests - c.ended - c.tally.Counts.Waiting - c.tally.Counts.InFlight
	return errors.Join(errs...)
}

func (w *workers) now() mono.Time { return mono.Time(time.Since(w.began)) }

// submit puts a request into the queue, as soon as there is room.
func (w *workers) submit(ctx context.Context) (waited bool, err error) {
	w.shared.Lock()
	defer w.shared.Unlock()
	for w.full() && ctx.Err() == nil {
		waited = true
		w.room.Wait()
	}
	if err := ctx.Err(); err != nil {
		return waited, err
	}
	_, err = w.q.Submit(w.now(), w.request())
	w.work.Signal()
	return waited, err
}

func (w *workers) full() bool {
	most := w.x.Queue.MaxLen
	if w.x.Generator == sim.Saturating {
		most = w.x.Server.Keys
	}
	return most > 0 && w.q.Counts().Waiting >= most
}

// run does the work of a key's worker.
func (w *workers) run(ctx context.Context, key int) error {
	nonce, err := dispatch.NewNonce(w.began, dispatch.NonceConfig{})
	if err != nil {
		return err
	}
	nonces := numbers{workers: w, key: key, ours: nonce}
	limiter := w.x.Limiter()
	sent := limit.Sent{Cost: limit.One} // of the present request: each is answered before the next
	for {
		t, ok := w.take()
		if !ok {
			return nil
		}
		if !w.await(limiter, t.info.Deadline) {
			w.retry(t, "deadline passed while waiting for the limiter")
			continue
		}
		sent.At = w.now()
		sent.Number++
		digits := nonces.next(sent.At)
		w.sent(t.request, sent.At.Sub(t.info.Submitted))
		limiter.Admit(&sent)
		attempt, cancel := context.WithTimeout(ctx, w.x.Timeout)
		ans := w.send(attempt, key, digits, t.number)
		cancel()
		read := w.now()
		w.answered(&ans, read.Sub(t.info.Submitted), read.Sub(sent.At))
		limiter.Settle(read, &sent, &ans.Outcome)
		if ans.Result == limit.Accepted {
			w.done(t)
		} else {
			w.retry(t, ans.Result.String())
		}
	}
}

// taken is a request that a worker has taken.
type taken struct {
	ticket  queue.Ticket
	request queue.Request
	info    queue.Info
	number  int // number of the attempt
}

// take waits for a request. ok is false when the client stops.
func (w *workers) take() (t taken, ok bool) {
	w.shared.Lock()
	defer w.shared.Unlock()
	for !w.stopped {
		if ticket, r, ok := w.q.Head(w.now()); ok {
			t = taken{ticket: ticket, request: *r, info: w.q.Info(ticket)}
			t.number = w.q.Take(w.now(), ticket)
			w.room.Signal()
			return t, true
		}
		w.work.Wait()
	}
	return t, false
}

// await waits until the limiter lets a request go, and returns false if the deadline comes first.
func (w *workers) await(limiter limit.Limiter, deadline mono.Time) bool {
	t := w.now()
	ready := limiter.Ready(t, limit.One)
	late := deadline <= t
	for ; ready > t && !late; t = w.now() {
		w.mu.Lock()
		w.tally.Polls++
		w.mu.Unlock()
		if w.x.Poll > 0 {
			time.Sleep(w.x.Poll)
		} else {
			time.Sleep(ready.Sub(t))
		}
		late = w.now() > deadline
		ready = limiter.Ready(w.now(), limit.One)
	}
	return !late
}

func (w *workers) done(t taken) {
	w.shared.Lock()
	defer w.shared.Unlock()
	w.retire(w.q.Done(w.now(), t.ticket))
}

func (w *workers) retry(t taken, why string) {
	w.shared.Lock()
	defer w.shared.Unlock()
	w.retire(w.q.Retry(w.now(), t.ticket, w.now(), why))
}

func (w *workers) retire(e queue.Ended) {
	if e.State.Ended() {
		w.ended++
	}
}

// numbers are the nonces of a worker. Workers share nothing here.
type numbers struct {
	*workers
	key              int
	ours             *dispatch.Nonce
	process, counter uint64
}

func (n *numbers) next(sent mono.Time) string {
	if n.x.Restart > 0 {
		if p := uint64(time.Duration(sent) / n.x.Restart); p != n.process {
			n.process, n.counter = p, 0
		}
	}
	n.counter++
	switch wall := n.began.Add(time.Duration(sent)).UnixMilli(); n.x.Nonce {
	case sim.Timestamp:
		return strconv.FormatInt(wall, 10)
	case sim.Concatenated:
		return sim.ConcatenatedNonce(wall, n.process, n.key, n.counter)
	case sim.Ours:
		return strconv.FormatUint(n.ours.Next(sent), 10)
	}
	return ""
}
