package backlog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
)

// WorkerConfig is for NewWorker. Backlog and Do have no default.
type WorkerConfig struct {
	Backlog *Backlog
	// Gate is the limit of the requests of lane 0, for this process or, with package share, for many. If
	// nil, there is none.
	Gate *paceline.Gate
	// Lanes are the limits of requests with a Lane. A request is sent only by workers that have its lane
	// here.
	Lanes map[int32]*paceline.Gate
	// Cost is what each request costs. If zero, limit.One. If requests cost differently, leave Gate nil,
	// and wait in Do.
	Cost limit.Cost
	// Concurrency is how many requests of each lane may be in flight or wait for their turn. If zero, 64.
	Concurrency int
	// Attempts is after how many attempts a request is dead, with the class "attempts": also one that
	// ended its workers each time. If zero, 5; if negative, Do decides alone.
	Attempts int
	// UntilEmpty makes Run return when each request of the backlog has a result. Otherwise it waits for
	// more.
	UntilEmpty bool
	// Grace is how long Run waits for calls of Do after its context is done. Then their contexts are done,
	// too. If zero, 30 s.
	Grace time.Duration
	// Do sends one request. It calls Attempt.Fresh right before the write, and sends nothing if that is
	// false: it returns NotSent. Calls run at once, up to Concurrency.
	Do func(ctx context.Context, a *Attempt) Reply
	// Notice is as in SessionConfig.
	Notice func(error)
}

// Reply is what a Do returns. Finished, Retry and NotSent make one.
type Reply struct {
	// Outcome is for the Gate. The zero Outcome says that the end is unknown.
	Outcome limit.Outcome
	answer  Answer
	again   bool
	rest    time.Duration
	unsent  bool
}

// Finished is the Reply for a request at its end. The server accepted it.
func Finished(a Answer) Reply {
	return Reply{Outcome: limit.Outcome{Result: limit.Accepted}, answer: a}
}

// Retry is the Reply for a request that goes again after a rest. served says that this attempt may have
// been served. Once Attempts are used up, the request is dead with Class and Line of last.
func Retry(rest time.Duration, served bool, last Answer) Reply {
	last.Unsure = served
	return Reply{answer: last, again: true, rest: rest}
}

// NotSent is the Reply for a request of which nothing was written.
func NotSent() Reply { return Reply{Outcome: limit.Outcome{Result: limit.Unsent}, unsent: true} }

// Worker sends the requests of a backlog by a function, within limits. NewWorker makes it. Run it once.
type Worker struct {
	config WorkerConfig
	lanes  map[int32]*paceline.Gate
}

// defaultConcurrency, defaultAttempts and defaultGrace are those of a zero WorkerConfig.
const (
	defaultConcurrency, defaultAttempts = 64, 5
	defaultGrace                        = 30 * time.Second
	// markedWithin is how long a permit waits for a request to be marked.
	markedWithin = 100 * time.Millisecond
)

// classAttempts is the class of requests that used up their Attempts, unless Retry has another.
const classAttempts = "attempts"

// NewWorker returns a Worker. The error names the field that makes no sense.
func NewWorker(c WorkerConfig) (*Worker, error) {
	switch {
	case c.Backlog == nil:
		return nil, errors.New("backlog: the Worker has no Backlog")
	case c.Do == nil:
		return nil, errors.New("backlog: the Worker has no Do")
	case c.Concurrency < 0:
		return nil, fmt.Errorf("backlog: Concurrency %d is negative", c.Concurrency)
	case c.Grace < 0:
		return nil, fmt.Errorf("backlog: Grace %v is negative", c.Grace)
	}
	if c.Cost == (limit.Cost{}) {
		c.Cost = limit.One
	}
	c.Concurrency = cmp.Or(c.Concurrency, defaultConcurrency)
	c.Attempts = cmp.Or(c.Attempts, defaultAttempts)
	c.Grace = cmp.Or(c.Grace, defaultGrace)
	w := &Worker{config: c, lanes: map[int32]*paceline.Gate{0: c.Gate}}
	maps.Copy(w.lanes, c.Lanes)
	return w, nil
}

// Run sends requests until ctx is done, or until the backlog is empty if the Worker is UntilEmpty. Then it
// gives back what is not in flight, waits for the rest, and returns. The error is nil, ErrNoBacklog if the
// backlog was removed, or what the store may not have.
func (w *Worker) Run(ctx context.Context) error {
	c := SessionConfig{Backlog: w.config.Backlog, UntilEmpty: w.config.UntilEmpty, Notice: w.config.Notice}
	for lane := range w.lanes {
		c.Lanes = append(c.Lanes, lane)
	}
	s, err := NewSession(c)
	if err != nil {
		return err
	}
	// Calls of Do go on after ctx, for the Grace.
	calls, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		s.beginStop()
		t := time.AfterFunc(w.config.Grace, cancel)
		context.AfterFunc(calls, func() { t.Stop() })
	})
	defer stop()
	var all sync.WaitGroup
	errs := make(chan error, len(w.lanes))
	for lane, gate := range w.lanes {
		l := &sender{worker: w, session: s, lane: lane, gate: gate, room: make(chan struct{}, w.config.Concurrency)}
		all.Go(func() { errs <- l.run(ctx, calls) })
	}
	all.Wait()
	close(errs)
	var gone error
	for err := range errs {
		if errors.Is(err, ErrNoBacklog) {
			gone = err
		}
	}
	last, cancelLast := context.WithTimeout(context.WithoutCancel(ctx), w.config.Grace)
	defer cancelLast()
	return errors.Join(gone, s.Stop(last))
}

// sender sends the requests of one lane.
type sender struct {
	worker  *Worker
	session *Session
	lane    int32
	gate    *paceline.Gate
	room    chan struct{}
	queued  atomic.Int32 // how many wait for a permit or for the mark
}

// run sends until no request goes any more. It returns when all are at their end.
func (l *sender) run(ctx, calls context.Context) error {
	var all sync.WaitGroup
	defer all.Wait()
	// Those that wait for a permit wait until ctx is done. Of its deadline they know nothing: a Gate refuses at once who
	// would have to wait longer, and the next one comes at once.
	done := ctx
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(done, cancel)()
	for {
		select {
		case l.room <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
		if err := l.session.atLeast(ctx, l.lane, func() int { return int(l.queued.Load()) }); err != nil {
			return err
		}
		l.queued.Add(1)
		all.Go(func() {
			l.one(ctx, calls)
			<-l.room
		})
	}
}

// one gets a permit, then a request, and sends it.
func (l *sender) one(ctx, calls context.Context) {
	var permit paceline.Permit
	var err error
	if l.gate != nil {
		permit, err = l.gate.Wait(ctx, l.worker.config.Cost)
	}
	var a *Attempt
	if err == nil {
		a = l.take(ctx)
	}
	l.queued.Add(-1)
	if err != nil {
		return // ctx is done: nothing was taken
	}
	if a == nil || l.settled(a) {
		l.settle(permit, limit.Outcome{Result: limit.Unsent})
		return
	}
	a.permit, a.limited = permit, l.gate != nil
	if !a.Fresh() {
		a.Unsent()
		l.settle(permit, limit.Outcome{Result: limit.Unsent})
		return
	}
	l.send(calls, a, permit)
}

// take takes a request that is marked soon.
func (l *sender) take(ctx context.Context) *Attempt {
	if a := l.session.try(l.lane); a != nil {
		return a
	}
	ctx, cancel := context.WithTimeout(ctx, markedWithin)
	defer cancel()
	a, err := l.session.Take(ctx, l.lane)
	if err != nil {
		return nil
	}
	return a
}

// settled ends a request that is not to be sent.
func (l *sender) settled(a *Attempt) bool {
	switch most := l.worker.config.Attempts; {
	case !a.Deadline.IsZero() && !time.Now().Before(a.Deadline):
		a.End(Answer{State: Expired})
	case most > 0 && a.Attempts >= most:
		a.End(Answer{State: Dead, Class: classAttempts, Attempts: a.Attempts})
	default:
		return false
	}
	return true
}

func (l *sender) settle(p paceline.Permit, o limit.Outcome) {
	if l.gate != nil {
		p.Settle(o)
	}
}

// send calls Do. If Do panics, the request is left as one that may have been served, and the panic goes on.
func (l *sender) send(ctx context.Context, a *Attempt, permit paceline.Permit) {
	returned := false
	defer func() {
		if !returned {
			l.settle(permit, limit.Outcome{})
			a.Again(0, true)
		}
	}()
	r := l.worker.config.Do(ctx, a)
	returned = true
	l.settle(permit, r.Outcome)
	most := l.worker.config.Attempts
	switch {
	case r.unsent:
		a.Unsent()
	case !r.again:
		a.End(r.answer)
	case most > 0 && a.Attempts+1 >= most:
		r.answer.State, r.answer.Class = Dead, cmp.Or(r.answer.Class, classAttempts)
		a.End(r.answer)
	default:
		a.Again(r.rest, r.answer.Unsure)
	}
}
