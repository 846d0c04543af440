package sim

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/paceline-go/paceline/internal/core/dispatch"
	"github.com/paceline-go/paceline/internal/core/queue"
	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/pool/backoff"
	"github.com/paceline-go/paceline/ratetest/latency"
)

// Exchange is a client with several keys at a strict exchange, over a link with latency.
type Exchange struct {
	Server rule.ExchangeConfig
	// Forward and Back are the latencies before and after the server's check.
	Forward, Back latency.Law
	// Generator makes the requests.
	Generator Generator
	// TTL is how long a request is worth sending, and Timeout how long an attempt waits for its answer. If zero, 1 s each.
	TTL, Timeout time.Duration
	// Reserve is how long before the end of its TTL a request must be sent to be of use: it is
	// submitted with a TTL of TTL − Reserve.
	Reserve time.Duration
	// Workers makes the client the published one: a worker per key takes a request from the queue,
	// waits for its limiter, sends the request and waits for the answer. Otherwise a Dispatcher
	// decides which request goes on which key.
	//
	// It is kinder than the published one in two ways. The first published worker dies of an attempt
	// that is not answered within Timeout, and its key is never used again; here it goes on. And the
	// published dead-letter queue only takes requests that timed out, while a request that was
	// answered 429 or 400 is over; here those, too, are tried again, as Queue allows.
	Workers bool
	// Limiter returns the limiter of one key.
	Limiter func() limit.Limiter
	// Poll is how often a worker asks a limiter that is not ready. If zero, it sleeps until it is.
	Poll time.Duration
	// InFlight and Gap are those of dispatch.Key.
	InFlight int
	Gap      time.Duration
	// Nonce says how requests are numbered.
	Nonce Nonces
	// Queue is the queue's configuration.
	Queue queue.Config
	// Duration is how long it lasts: no request is made at its end or later, and attempts that have no
	// answer by then stay in flight.
	Duration time.Duration
	// Restart, if positive, is how often a new process of workers replaces the old one. A journal
	// keeps its windows, its queue and the last numbers of dispatch.Nonce; the threads of Concatenated
	// are new ones, and their counters start again.
	Restart time.Duration
	Seed    uint64
	// OnSend, if not nil, is told when each request is first sent: how long after it was made.
	// OnAnswer, if not nil, is told of each success: how long after the request was made, and how long
	// after it was sent.
	OnSend   func(delay time.Duration)
	OnAnswer func(sinceMade, sinceSent time.Duration)
}

// Generator is a way of making requests: the first at instant 0, and then more at intervals. A
// generator that waits for room in the queue begins its next interval when it has made its request.
type Generator uint8

const (
	Original   Generator = iota // one every U[0, 21] ms
	Saturating                  // there is always a request waiting
	Burst                       // 20 per key at once every 3 s
	Constant                    // one every 2 s
)

func (g Generator) String() string {
	return [...]string{"original", "saturating", "burst", "constant"}[g]
}

// Batch returns how many requests are made at once for that many keys. It is 0 for Saturating,
// which makes as many as there is room for.
func (g Generator) Batch(keys int) int {
	switch g {
	case Saturating:
		return 0
	case Burst:
		return 20 * keys
	}
	return 1
}

// Interval returns the time from one batch to the next, drawn from r if it is random. It is 0 for Saturating.
func (g Generator) Interval(r *rand.Rand) time.Duration {
	switch g {
	case Original:
		return time.Duration(r.Int64N(int64(21*time.Millisecond) + 1))
	case Burst:
		return 3 * time.Second
	case Constant:
		return 2 * time.Second
	}
	return 0
}

// Nonces is a way of numbering requests.
type Nonces uint8

const (
	NoNonces     Nonces = iota
	Timestamp           // the millisecond of the send, as published
	Concatenated        // timestamp, thread and counter written one after the other, as published
	Ours                // those of dispatch.Nonce
)

// ConcatenatedNonce returns the nonce of Concatenated, for a send at so many milliseconds since
// 1970 by the thread that works for the key in that process and has sent counter requests,
// including this one.
func ConcatenatedNonce(unixMilli int64, process uint64, key int, counter uint64) string {
	return fmt.Sprintf("%d%d%d", unixMilli, 140_000_000_000_000+1000*process+uint64(key), counter)
}

// Tally is what happened in a run.
type Tally struct {
	Counts     queue.Counts
	Successes  int // answered OK, and read in time
	Failures   int // attempts that ended otherwise
	Rejected   int // 429s, as the server counted them
	BadNonce   int // 400s, as the server counted them
	BannedKeys int
	InTime     int // successes within the TTL, counted from the first making of the request
	Lost       int // requests that were made, have not ended, and are not in the queue
	Sent       int
	// WakeUps is how often a sleeping client woke, for a timer (a worker's polls are timers) or for
	// the end of an attempt. New requests are not counted: they are part of the load, the same for
	// every client.
	WakeUps int
	Polls   int // how often a limiter told a worker that it must wait
	End     mono.Time
}

type exchangeEvent struct {
	kind exchangeEventKind
	i    int32 // the index of an attempt or of a worker
	seq  uint32
}

type exchangeEventKind uint8

const (
	makeRequests exchangeEventKind = iota
	arrive
	answer
	timeOut
	wakeDispatcher
	workerMaySend
	workerGivesUp
	restart
)

// flight is an attempt on its way.
type flight struct {
	dispatch.Attempt
	sent    limit.Sent // if a worker sent it
	process uint64     // likewise
	made    mono.Time
	back    time.Duration
	late    bool // nobody waits for it any more
	verdict rule.Verdict
}

type worker struct {
	limiter limit.Limiter
	sent    limit.Sent // the latest
	seq     uint32     // the sequence number of the event that it waits for
	ticket  queue.Ticket
	request queue.Request
	number  int
	made    mono.Time
	counter uint64
	nonce   *dispatch.Nonce
}

type exchange struct {
	Exchange
	Tally
	loop       Loop[exchangeEvent]
	outcome    limit.Outcome // of the present answer to a worker
	server     *rule.Exchange
	queue      *queue.Queue
	dispatcher *dispatch.Dispatcher
	workers    []worker
	idle       []int32 // workers without a request, in the order in which they became idle
	flights    []flight
	free       []int32
	wake       mono.Time
	wakeSeq    uint32
	owed       int       // how many requests of a batch wait for room before they are made
	owedSince  mono.Time // since when the first of them waits; limit.Never: none does
	made       int
	gone       int // how many have ended
	process    uint64
	rngMake    *rand.Rand
	rngLink    *rand.Rand
}

// wallEpoch is the wall clock at instant 0 of a simulation; timestamps are made from it.
const wallEpoch = 1_800_000_000_000 * time.Millisecond

// Run simulates the exchange and returns what happened.
func (c Exchange) Run() (Tally, error) {
	c.TTL = cmp.Or(c.TTL, time.Second)
	c.Timeout = cmp.Or(c.Timeout, time.Second)
	if c.Limiter == nil {
		return Tally{}, errors.New("sim: Exchange: Limiter is nil")
	}
	x := &exchange{
		Exchange: c,
		wake:     limit.Never, owedSince: limit.Never,
		rngMake: rand.New(rand.NewPCG(c.Seed, 1)),
		rngLink: rand.New(rand.NewPCG(c.Seed, 2)),
	}
	var err error
	x.Server.AnyNonce = c.Nonce == NoNonces
	if x.server, err = rule.NewExchange(x.Server); err != nil {
		return Tally{}, err
	}
	x.Server = x.server.Config()
	if x.queue, err = queue.New(c.Queue); err != nil {
		return Tally{}, err
	}
	if err := x.start(); err != nil {
		return Tally{}, err
	}
	x.loop.At(0, exchangeEvent{kind: makeRequests})
	if c.Restart > 0 {
		x.loop.At(mono.Time(c.Restart), exchangeEvent{kind: restart})
	}
	until := mono.Time(c.Duration)
	for {
		e, ok := x.loop.Next(until)
		if !ok {
			break
		}
		x.happen(e)
	}
	return x.tally(until), nil
}

// start makes the client.
func (x *exchange) start() error {
	if !x.Workers {
		keys := make([]dispatch.Key, x.Server.Keys)
		for i := range keys {
			keys[i] = dispatch.Key{Limiter: x.Limiter(), InFlight: x.InFlight, Gap: x.Gap}
			if x.Nonce == Ours {
				keys[i].Nonce = &dispatch.NonceConfig{}
			}
		}
		var err error
		x.dispatcher, err = dispatch.New(dispatch.Config{
			Queue: x.queue, Keys: keys, Backoff: backoff.Policy{}, Rand: rand.New(rand.NewPCG(x.Seed, 3)),
			Epoch: time.Unix(0, int64(wallEpoch)),
			Ended: func(queue.Ended) { x.gone++ },
		})
		return err
	}
	x.workers = make([]worker, x.Server.Keys)
	for i := range x.workers {
		w := &x.workers[i]
		w.limiter = x.Limiter()
		x.idle = append(x.idle, int32(i))
		var err error
		if w.nonce, err = dispatch.NewNonce(time.Unix(0, int64(wallEpoch)), dispatch.NonceConfig{}); err != nil {
			return err
		}
	}
	return nil
}

func (x *exchange) happen(e exchangeEvent) {
	now := x.loop.Now()
	switch e.kind {
	case makeRequests:
		x.owed = x.Generator.Batch(x.Server.Keys)
		x.generate(now)
	case arrive:
		f := &x.flights[e.i]
		f.verdict = x.arrive(now, f)
		if f.late {
			if e.seq == 0 { // its time-out was handled before
				x.free = append(x.free, e.i)
			}
			return
		}
		x.loop.At(now.Add(f.back), exchangeEvent{kind: answer, i: e.i})
		return
	case answer:
		x.WakeUps++
		x.answered(now, e.i)
	case timeOut:
		x.WakeUps++
		x.settle(now, e.i, dispatch.Answer{})
		if e.seq != 0 {
			x.free = append(x.free, e.i)
		}
	case wakeDispatcher:
		if e.seq != x.wakeSeq {
			return
		}
		x.wake = limit.Never
		x.WakeUps++
	case workerMaySend:
		w := &x.workers[e.i]
		if e.seq != w.seq {
			return
		}
		x.workerSends(now, e.i)
	case workerGivesUp:
		w := &x.workers[e.i]
		x.retire(x.queue.Retry(now, w.ticket, now, "deadline passed while waiting for the limiter"))
		x.workerTakes(now, e.i)
	case restart:
		x.process++
		for i := range x.workers {
			x.workers[i].counter = 0
		}
		x.loop.At(now.Add(x.Restart), e)
	}
	x.pump(now)
}

// generate makes the requests that are owed, as far as there is room, and then sets when the next ones are made.
func (x *exchange) generate(now mono.Time) {
	for ; x.owed > 0; x.owed-- {
		// The first request without room waits in Submit, and the next is made after it. The published
		// workers have no Submit.
		if x.owedSince = min(x.owedSince, now); x.Workers {
			x.owedSince = now
		}
		if !x.submit(now, x.owedSince) {
			return
		}
		x.owedSince = limit.Never
	}
	next := now.Add(x.Generator.Interval(x.rngMake))
	if x.Generator != Saturating && next < mono.Time(x.Duration) {
		x.loop.At(next, exchangeEvent{kind: makeRequests})
	}
}

func (x *exchange) submit(now, came mono.Time) bool {
	// Value says whether the request has been sent. The number of its attempt does not tell that: an
	// attempt counts even if it waits for its limiter until its deadline.
	_, err := x.queue.SubmitFrom(now, came, queue.Request{Cost: limit.One, TTL: x.TTL - x.Reserve, Value: new(bool)})
	if err != nil { // full
		return false
	}
	x.made++
	return true
}

// refill makes requests when there is room.
func (x *exchange) refill(now mono.Time) {
	if x.Generator == Saturating {
		for x.queue.Counts().Waiting < x.Server.Keys {
			if !x.submit(now, now) {
				return
			}
		}
	}
	if x.owed > 0 {
		x.generate(now)
	}
}

// pump lets everyone act who can.
func (x *exchange) pump(now mono.Time) {
	x.refill(now)
	if x.Workers {
		for len(x.idle) > 0 && x.queue.Counts().Waiting > 0 {
			i := x.idle[0]
			x.idle = x.idle[1:]
			x.workerTakes(now, i)
		}
		return
	}
	for {
		a, wake, ok := x.dispatcher.Next(now)
		if !ok {
			before := x.made
			if x.refill(now); x.made > before { // requests that expired made room
				continue
			}
			if wake < limit.AfterSettle && wake != x.wake {
				x.wake = wake
				x.wakeSeq++
				x.loop.At(wake, exchangeEvent{kind: wakeDispatcher, seq: x.wakeSeq})
			}
			return
		}
		x.launch(now, flight{Attempt: a, made: a.Submitted})
		x.refill(now)
	}
}

// workerTakes gives worker i its next request, or makes the worker idle.
func (x *exchange) workerTakes(now mono.Time, i int32) {
	w := &x.workers[i]
	for {
		t, r, ok := x.queue.Head(now)
		if !ok {
			x.idle = append(x.idle, i)
			return
		}
		info := x.queue.Info(t)
		w.ticket, w.request, w.made = t, *r, info.Submitted
		w.number = x.queue.Take(now, t)
		x.refill(now)
		left := info.Deadline.Sub(now)
		if left <= 0 {
			x.retire(x.queue.Retry(now, t, now, "deadline passed in the queue"))
			continue
		}
		x.workerWaits(now, i, left)
		return
	}
}

// workerWaits has worker i ask its limiter until it may send, or until left has passed.
func (x *exchange) workerWaits(now mono.Time, i int32, left time.Duration) {
	w := &x.workers[i]
	w.seq++
	ready := w.limiter.Ready(now, w.request.Cost)
	if ready <= now {
		x.workerSends(now, i)
		return
	}
	deadline := now.Add(left) + 1 // in the published code the check is strict
	if x.Poll > 0 {
		ready = onGrid(now, ready, x.Poll)
		deadline = onGrid(now, deadline, x.Poll)
		polls := int(min(ready, deadline).Sub(now) / x.Poll)
		x.Polls += polls
		x.WakeUps += polls
	} else {
		deadline = max(deadline, ready) // the worker finds out when it wakes
		x.Polls++
		x.WakeUps++
		if ready.Sub(now) > left {
			ready = limit.Never
		}
	}
	if ready <= deadline-1 {
		x.loop.At(ready, exchangeEvent{kind: workerMaySend, i: i, seq: w.seq})
	} else {
		x.loop.At(deadline, exchangeEvent{kind: workerGivesUp, i: i, seq: w.seq})
	}
}

// onGrid returns the first instant from + k·step, k ≥ 1, that is not before t.
func onGrid(from, t mono.Time, step time.Duration) mono.Time {
	return from.Add((t.Sub(from) + step - 1) / step * step)
}

func (x *exchange) workerSends(now mono.Time, i int32) {
	w := &x.workers[i]
	w.counter++
	f := flight{Attempt: dispatch.Attempt{Ticket: w.ticket, Request: w.request, Number: w.number, Key: int(i), At: now},
		made: w.made, process: x.process}
	switch x.Nonce {
	case Timestamp:
		f.Nonce = uint64((wallEpoch + time.Duration(now)) / time.Millisecond)
	case Ours:
		f.Nonce = w.nonce.Next(now)
	case Concatenated:
		f.Nonce = w.counter
	}
	w.sent = limit.Sent{At: now, Number: w.counter, Cost: w.request.Cost}
	f.sent = w.sent
	w.limiter.Admit(&w.sent)
	x.launch(now, f)
}

// launch sends an attempt.
func (x *exchange) launch(now mono.Time, f flight) {
	x.Sent++
	if before := f.Request.Value.(*bool); !*before {
		*before = true
		if x.OnSend != nil {
			x.OnSend(now.Sub(f.made))
		}
	}
	forward := x.Forward.Draw(x.rngLink)
	f.back = x.Back.Draw(x.rngLink)
	f.late = forward+f.back > x.Timeout
	i := place(&x.flights, &x.free, f)
	// An attempt that is no longer waited for ends twice: here, and when it arrives. The later of the two frees its place.
	gone := uint32(0)
	if f.late {
		if forward < x.Timeout {
			gone = 1
		}
		x.loop.At(now.Add(x.Timeout), exchangeEvent{kind: timeOut, i: i, seq: gone})
	}
	x.loop.At(now.Add(forward), exchangeEvent{kind: arrive, i: i, seq: gone})
}

// arrive has the server decide about an attempt.
func (x *exchange) arrive(now mono.Time, f *flight) rule.Verdict {
	if x.Nonce == Concatenated {
		return x.server.ArriveDigits(now, f.Key,
			ConcatenatedNonce((wallEpoch+time.Duration(f.At)).Milliseconds(), f.process, f.Key, f.Nonce))
	}
	return x.server.Arrive(now, f.Key, f.Nonce)
}

// answered settles an attempt whose answer has come.
func (x *exchange) answered(now mono.Time, i int32) {
	f := &x.flights[i]
	ans := dispatch.Answer{Outcome: limit.Outcome{RTT: now.Sub(f.At)}}
	switch f.verdict {
	case rule.Accepted:
		ans.Result = limit.Accepted
		x.Successes++
		if now.Sub(f.made) <= x.TTL {
			x.InTime++
		}
		if x.OnAnswer != nil {
			x.OnAnswer(now.Sub(f.made), now.Sub(f.At))
		}
	case rule.Limited:
		ans.Result = limit.Limited
	case rule.Banned, rule.UnknownKey:
		ans.Result, ans.Banned = limit.Failed, !x.Workers
	default:
		ans.Result, ans.Misordered = limit.Failed, f.verdict == rule.BadNonce
	}
	x.settle(now, i, ans)
}

func (x *exchange) settle(now mono.Time, i int32, ans dispatch.Answer) {
	f := &x.flights[i]
	if ans.Result != limit.Accepted {
		x.Failures++
	}
	if !f.late {
		x.free = append(x.free, i)
	}
	if !x.Workers {
		x.dispatcher.Done(now, f.Attempt, ans)
		return
	}
	w := &x.workers[f.Key]
	x.outcome = ans.Outcome
	w.limiter.Settle(now, &f.sent, &x.outcome)
	if ans.Result == limit.Accepted {
		x.retire(x.queue.Done(now, f.Ticket))
	} else {
		x.retire(x.queue.Retry(now, f.Ticket, now, ans.Result.String()))
	}
	x.workerTakes(now, int32(f.Key))
}

func (x *exchange) retire(e queue.Ended) {
	if e.State.Ended() {
		x.gone++
	}
}

func (x *exchange) tally(end mono.Time) Tally {
	x.End = end
	x.Counts = x.queue.Counts()
	x.Lost = x.made - x.gone - x.Counts.Waiting - x.Counts.InFlight
	served := x.server.Total()
	x.Rejected, x.BadNonce = served.Limited, served.BadNonce
	for k := range x.Server.Keys {
		if x.server.Banned(k) {
			x.BannedKeys++
		}
	}
	return x.Tally
}
