package dispatch

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/paceline-go/paceline/internal/core/ability"
	"github.com/paceline-go/paceline/internal/core/keyring"
	"github.com/paceline-go/paceline/internal/core/queue"
	"github.com/paceline-go/paceline/internal/core/scheduler"
	"github.com/paceline-go/paceline/internal/core/stack"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/pool/backoff"
)

// Config describes a Dispatcher. Queue and Keys have no default. No function in it may call the
// Dispatcher or its queue.
type Config struct {
	// Queue has the requests. It belongs to the Dispatcher from now on; others may only Submit,
	// Cancel and read.
	Queue *queue.Queue
	// Keys are the API keys, at least one.
	Keys []Key
	// Epoch is the wall time of the driver's epoch, for nonces. If zero, 1970.
	Epoch time.Time
	// Backoff is the delay before the next attempt of a failed request.
	Backoff backoff.Policy
	// Rand jitters the backoff. If nil, there is no jitter.
	Rand *rand.Rand
	// AnswerTime is how long an answer takes, from the decision to send. A request whose deadline is
	// no later than that ends as expired, and is not sent. If zero, it is what 95 % of the latest
	// answers of its host did not exceed; nothing is kept back until one was measured. If negative,
	// nothing is ever kept back.
	//
	// If answers take longer than all of a request's time, one such request at a time still goes to
	// its host.
	AnswerTime time.Duration
	// Slow, if not nil, gets a host whose answers take longer than all of the time of a request,
	// from within Next, as with Ended. HostInfo.AnswerTime has the time that answers take.
	Slow func(h HostInfo, whole time.Duration)
	// Ended, if not nil, gets every request that reached an end state, from within Next and Done.
	// It must not call the Dispatcher or the queue.
	Ended func(queue.Ended)
	// Outage, if not nil, gets every host that goes down or is back, from within Done, as with
	// Ended.
	Outage func(HostInfo)
	// Learned, if not nil, gets every key that may have learned more about a wrong limit, as with
	// Ended: see Lessons.
	Learned func(key int)
	// Made, if not nil, gets every Limiter that comes after New, with its owner's name: that of a Shared, and what a
	// Resource returns, with the resource. The owner is a Shared; nil: a key.
	Made func(owner, resource string, l limit.Limiter, s *Shared)
}

// Key describes an API key: a partition of the server's quota. Besides its Limiter, the statements
// of answers count: a Retry-After (Outcome.RetryAfter), and what is left until a reset
// (Outcome.Remaining and Reset). During a Retry-After of more than an hour, one request probes
// after an hour. Requests in flight together are refused together, which is one pause.
type Key struct {
	// Name distinguishes keys in reports. It is not the secret.
	Name string
	// Limiter is the server's rule for this key. If nil, none. It belongs to this key alone, even
	// as a part of an All. If two keys shared it, it would miss requests of one. The Dispatcher
	// finds out whether the limit is wrong. A limit.Fitted over it keeps those findings across a
	// restart.
	Limiter limit.Limiter
	// Shared is the limits of several keys together, in place of a Limiter: give all keys of an
	// organization the same one. A key of unknown owner counts in all possible ones, until
	// Dispatcher.Share decides.
	Shared []*Shared
	// Resource, if not nil, returns the key's limits for the requests of a resource (Request.Resource),
	// in which these count besides; nil: none is known. A resource also learns from answers: see
	// Answer.Resource. Limits of time zones need their epoch: see limit.SetEpoch.
	Resource func(name string) limit.Limiter
	// Apart means that Shared holds for requests without a resource alone.
	Apart bool
	// Nonce, if not nil, numbers the requests of this key.
	Nonce *NonceConfig
	// Gap is the least time between two sends of this key. With Nonce, it is the gap of a
	// limit.Sequence, which allows several in flight. It must then cover the difference between the
	// largest and the smallest one-way latency, and the longest delay of a write after its
	// decision. Set Outcome.Misordered for every bad nonce: after it requests go one at a time for
	// a while.
	Gap time.Duration
	// LearnGap lets the Sequence learn Gap from the round trips. Not with Gap or InFlight.
	LearnGap bool
	// InFlight is the most attempts in flight. If zero, it is 1 with Nonce and without Gap, since
	// no other number keeps their order under every latency. Otherwise there is no bound.
	InFlight int
	// Late is how long an attempt of unknown outcome still counts as in flight. If zero, 5 s; if
	// negative, not at all.
	Late time.Duration
	// Slow lets load begin slowly after each refusal, and not only after the second in a row. One
	// request goes first, and each answer makes room for one more. It is for servers of unknown
	// limits.
	Slow bool
	// First is for how long the first requests of the key go few at a time, and more as they are served. So a limit that is wrong costs few refusals. If zero, there is no such time.
	First time.Duration
	// Trial is for how long the first request of the key goes alone. It ends earlier with an answer
	// other than a denial of the key or a refusal. So a wrong key costs one request, and a key that
	// is refused for good costs one at a time. If zero, there is no trial.
	Trial time.Duration
	// Pause is how long the key stays away after a refusal without a stated time. It doubles with
	// each further refusal in a row, up to 10 min or Pause, and then one request goes first. A
	// stated time counts for twenty refusals in a row. If zero, 1 s; if negative, the key does not
	// stay away.
	Pause time.Duration
	// Use is the part of the key's limits that is used, and Ramp the time in which the load rises to
	// it: see limit.Headroom. Use also holds for what the server says is left. If zero, all, and at
	// once.
	Use  float64
	Ramp time.Duration
}

const longestPause = 10 * time.Minute

// KeyState says whether a key is in use.
type KeyState uint8

const (
	OK      KeyState = iota
	Cooling          // refused, or asked to stay away: not before KeyInfo.Until
	Banned           // refused for good; Resume brings it back
)

func (s KeyState) String() string {
	return [...]string{"ok", "cooling", "banned"}[s]
}

// Attempt is one try at sending a request. Pass it back to Done, once.
type Attempt struct {
	Ticket    queue.Ticket
	Request   queue.Request
	Number    int // the first is 1
	Key       int // index in Config.Keys
	Nonce     uint64
	Submitted mono.Time // when the request was submitted
	At        mono.Time // when the attempt was admitted

	pass scheduler.Pass
	part *part
	host *host
	era  uint64 // of its key: see keyring.Ring.Ban
	life uint64 // queue.Info.Seq of its request
}

// Host returns the name of the host of the attempt, by queue.Config.Host.
func (a *Attempt) Host() string {
	if a.host == nil {
		return ""
	}
	return a.host.name
}

// Answer is the end of an attempt. The zero Answer is the safest: unknown, to be tried again.
type Answer struct {
	limit.Outcome
	// Invalid: the request itself was refused, and would be again. It is dead at once.
	Invalid bool
	// Banned: the key was refused for good. The request goes on with another key, and this attempt
	// is not counted.
	Banned bool
	// Denied: the server says that the key may not do this. Only another key can show whether the
	// key may do anything at all.
	//
	// With Invalid and several keys in use, the attempt is not counted, and the request goes on. It
	// is dead when another key has denied it too, or the same key for the sixth time because no
	// other could be asked.
	//
	// When two requests in a row have died so, with nothing served between, the keys are at fault.
	// Further denials are then not counted, and the requests go on. Such a request is dead only if
	// it is denied again after something was served. A key that denies three in a row stays away as
	// after refusals; if it has ever served anything, for 10 s at most.
	Denied bool
	// Returned: this side broke the attempt off. It is not counted, and the request waits again.
	Returned bool
	// More: the server has accepted a part of the request, such as a page, and there is a further
	// part. The request waits in its place to be sent again, in its form by then, with its own
	// attempts. Only with Result Accepted.
	More bool
	// Capacity is, for each unit that the server counts in a bucket, the size of the bucket. Reset
	// is then when it will be full again, and there is more before. Where it is zero, an earlier
	// answer's holds.
	Capacity limit.Cost
	// Stated is the answer's statements about limits, for a Limiter that learns from them: see ability.State.
	Stated []limit.Rule
	// Slow lets the limits of the key begin slowly: one request first, and each that is answered makes room for one
	// more. It is for an answer that shows that the server counts more than was known.
	Slow bool
	// Resource is what the answer says to the limits of the request's resource; without one, to the Shared
	// of a key that is Apart. The Outcome is then for the key alone. If nil, the Outcome is for the key
	// and its Shared, and the answer says nothing of a resource.
	Resource *limit.Outcome
	// Reason is for the dead letter, or for the state of the key. If empty, the Result's name.
	Reason string
	// Out is the state of a Banned key: a constant of package observe. If empty, observe.KeyBanned.
	Out string
}

// Dispatcher is several keys behind one queue. A driver calls Next until there is nothing to send,
// and Done for each Attempt that ended. New makes it. Not safe for concurrent use: a driver has a
// lock, as pool.Pool does.
type Dispatcher struct {
	queue   *queue.Queue
	backoff backoff.Policy
	rand    *rand.Rand
	ended   func(queue.Ended)
	learned func(key int)
	made    func(owner, resource string, l limit.Limiter, s *Shared)
	keys    []key
	hosts   hosts

	// The line decides which key is next. It has one lane for each part, with a way for each key. A lane
	// has one ticket, with the cost of the part's first request in the queue.
	line  *scheduler.Scheduler
	parts []*part
	order []*part          // the same, by the places of their heads
	of    map[string]*part // by resource

	ring    *keyring.Ring // which key is next the line decides
	denied  map[queue.Ticket]keyring.Denials
	outcome limit.Outcome // of the present Done
}

type key struct {
	name     string
	stack    *stack.Stack // closed while the key is banned
	limit    *scheduler.Limit
	shared   []*Shared          // in place of its own limit; never changed, but replaced
	stacks   []*stack.Stack     // its own, then the shared ones
	way      []*scheduler.Limit // of the same
	resource func(string) limit.Limiter
	part     stack.Config // of its resources
	apart    bool
	nonce    *Nonce
	inFlight int
	sent     uint64
	pauses   bool // whether the key stays away after refusals without a stated time
	tally    limit.Tally
	learned  uint64 // how many lessons of its stack were passed to Config.Learned
	out      string // its state, if it is banned; empty: observe.KeyBanned
}

// New checks the configuration and returns a Dispatcher that has sent nothing. An error names the
// wrong field and its key.
func New(c Config) (*Dispatcher, error) {
	if c.Queue == nil {
		return nil, errors.New("dispatch: Queue is nil")
	}
	if len(c.Keys) == 0 {
		return nil, errors.New("dispatch: Keys is empty")
	}
	if err := c.Backoff.Check(); err != nil {
		return nil, fmt.Errorf("dispatch: Backoff: %w", err)
	}
	d := &Dispatcher{queue: c.Queue, backoff: c.Backoff, rand: c.Rand, ended: c.Ended,
		line: scheduler.New(scheduler.Config{}), ring: keyring.New(len(c.Keys), keyring.Pause),
		denied: map[queue.Ticket]keyring.Denials{}}
	if d.ended == nil {
		d.ended = func(queue.Ended) {}
	}
	if c.Outage == nil {
		c.Outage = func(HostInfo) {}
	}
	if d.learned = c.Learned; d.learned == nil {
		d.learned = func(int) {}
	}
	d.made = func(_, _ string, _ limit.Limiter, _ *Shared) {}
	if c.Slow == nil {
		c.Slow = func(HostInfo, time.Duration) {}
	}
	d.hosts = hosts{
		queue: c.Queue, rand: c.Rand, told: c.Outage, all: map[string]*host{}, most: fewHosts,
		answerTime: c.AnswerTime, slow: c.Slow,
	}
	for i, k := range c.Keys {
		if whose := d.has(k.Limiter, nil); whose != "" {
			return nil, fmt.Errorf("dispatch: Keys[%d] %q: Limiter is that of %s; what keys have together is given as Shared",
				i, k.Name, whose)
		}
		if err := d.add(c.Epoch, k); err != nil {
			return nil, fmt.Errorf("dispatch: Keys[%d] %q: %w", i, k.Name, err)
		}
	}
	if c.Made != nil {
		d.made = c.Made
	}
	usual := &part{}
	usual.head.Deadline = limit.Never
	d.lay(usual)
	d.parts, d.of = []*part{usual}, map[string]*part{"": usual}
	return d, nil
}

func (d *Dispatcher) add(epoch time.Time, k Key) error {
	g, err := stack.New(stack.Config{
		Limiter: k.Limiter, InFlight: k.InFlight, Gap: k.Gap, Ordered: k.Nonce != nil, LearnGap: k.LearnGap, Late: k.Late,
		Slow: k.Slow, SlowAgain: true, Trial: k.Trial, First: k.First,
		Pause: pauses(k.Pause), Use: k.Use, Ramp: k.Ramp,
	})
	if err != nil {
		return err
	}
	made := key{name: k.Name, stack: g, limit: d.line.Limit(g, scheduler.Sharing{}), pauses: k.Pause >= 0,
		resource: k.Resource, apart: k.Apart,
		part: stack.Config{Slow: k.Slow, SlowAgain: true, Pause: pauses(k.Pause), Use: k.Use, Ramp: k.Ramp}}
	if err := d.shares(&made, k.Shared); err != nil {
		return err
	}
	if k.Nonce != nil {
		if made.nonce, err = NewNonce(epoch, *k.Nonce); err != nil {
			return err
		}
	}
	d.keys = append(d.keys, made)
	return nil
}

// Next returns the attempt to send now. If there is none, wake is when to ask again, unless Submit
// or Done come first. wake is an instant, or limit.AfterSettle if only Done or Refresh can help, or
// limit.Never if only Submit or Resume can.
//
// Requests whose deadline has passed end here, and so do those that cannot be answered before it:
// see Config.AnswerTime. Requests that cost more than any key in use allows
// become dead letters, since they would hold up all behind them.
func (d *Dispatcher) Next(now mono.Time) (a Attempt, wake mono.Time, ok bool) {
	waiting, inFlight := d.queue.Open()
	none := waiting == 0 && len(d.parts) == 1 // then nothing goes, and no deadline passes
	if !none {
		d.expire(now)
	}
	d.hosts.release(now)
	ready := limit.Never
	if !none && d.ring.InUse() > 0 {
		p, at := d.goes(now)
		if p != nil {
			d.send(now, p, &a)
			return a, 0, true
		}
		ready = at
	}
	ready = min(ready, d.hosts.wake())
	if ready == limit.Never && inFlight > 0 {
		ready = limit.AfterSettle
	}
	if none {
		return a, ready, false
	}
	if t, ok := d.queue.Wake(now); ok {
		ready = min(ready, t)
	}
	return a, ready, false
}

// Expire is for a driver that may not send now. It ends overdue requests, as Next would, and
// returns when to ask again unless Submit or Done come first.
func (d *Dispatcher) Expire(now mono.Time) (wake mono.Time) {
	d.expire(now)
	if t, ok := d.queue.Wake(now); ok {
		return t
	}
	if d.queue.Counts().InFlight > 0 {
		return limit.AfterSettle
	}
	return limit.Never
}

func (d *Dispatcher) expire(now mono.Time) {
	for d.queue.Expires(now) {
		if e, _ := d.queue.Expire(now); e.State.Ended() {
			d.ended(e)
		}
	}
}

func (d *Dispatcher) tooDear(cost limit.Cost) string {
	if banned := len(d.keys) - d.ring.InUse(); banned > 0 {
		return fmt.Sprintf("cost %s exceeds what any key in use allows (%d of %d are banned)", cost, banned, len(d.keys))
	}
	return fmt.Sprintf("cost %s exceeds what any key allows", cost)
}

// send begins the attempt of the head of a part, which the line and its host let go.
func (d *Dispatcher) send(now mono.Time, p *part, a *Attempt) {
	a.Ticket, a.Request, a.Submitted, a.host, a.life, a.part = p.next, *p.request, p.submitted, p.host, p.life, p
	a.At, a.pass, a.Key = now, p.head.Pass, p.head.Pass.Way.Index
	p.head.State = scheduler.None
	k := &d.keys[a.Key]
	sent := d.line.Sent(a.pass)
	a.era = d.ring.Era(keyring.Key(a.Key))
	a.host.admit(sent)
	if k.nonce != nil {
		a.Nonce = k.nonce.Next(now)
	}
	a.Number = d.queue.Take(now, a.Ticket)
	k.inFlight++
	k.sent++
	if p.alone {
		d.hosts.goesAlone(p.host, p.next)
	}
}

// Fresh reports whether an attempt that is not Done may still be sent, by the limits of its key:
// see ability.Fresh.
func (d *Dispatcher) Fresh(a *Attempt) bool { return d.line.Fresh(a.pass) }

// Done settles an attempt at now and moves its request on: done, waiting for another attempt,
// expired, or dead. It returns the zero Ended if the request was killed meanwhile.
func (d *Dispatcher) Done(now mono.Time, a Attempt, ans Answer) (e queue.Ended) {
	k := &d.keys[a.Key]
	if ans.Denied || ans.Banned {
		k.stack.Try()
	}
	if len(ans.Stated) > 0 && (a.part.limits == nil || !k.apart) {
		for _, g := range k.limits() {
			ability.State(g, now, ans.Stated)
		}
	}
	refused := k.stack.Refusals() > 0
	sent := d.settle(now, k, &a, &ans)
	learned, contains := uint64(0), ans.Capacity != limit.Cost{}
	for _, g := range k.limits() {
		if ans.Slow {
			g.Begin(now)
		}
		switch {
		case !contains:
		case a.part.limits == nil:
			g.Contain(now, ans.Capacity, ans.ofLimits())
		case !k.apart:
			g.Contain(now, ans.Capacity, &ans.Outcome)
		}
		learned += g.Learned()
	}
	if contains && a.part.limits != nil {
		own := ans.ofResource()
		for _, g := range a.part.ofKey(d, a.Key) {
			g.Contain(now, ans.Capacity, &own)
		}
	}
	k.tally.Settled(&ans.Outcome)
	k.inFlight--
	if learned != k.learned {
		k.learned = learned
		d.learned(a.Key)
	}
	if ans.Reason == "" && ans.Result != limit.Accepted {
		ans.Reason = ans.Result.String()
	}
	free := d.hosts.settle(now, &a, sent, &ans)
	if ans.Banned {
		k.out = ans.Out
		d.ban(a.Key, a.era, ans.Reason)
	}
	blamed := d.blames(now, &a, &ans, refused)
	e = d.moveOn(now, &a, &ans, blamed, free, blamed != nobody && d.mayAnother(now, &a))
	if e.State.Ended() {
		d.ended(e)
	}
	return e
}

// asked returns the earliest instant at which a key in use is asked again for requests of a part: now
// if one is not paused.
func (d *Dispatcher) asked(now mono.Time, p *part) mono.Time {
	at := limit.Never
	for i := range d.keys {
		if d.isBanned(i) {
			continue
		}
		next, paused := d.pausedFor(now, i, p)
		if !paused {
			return now
		}
		at = min(at, next)
	}
	if d.ring.InUse() == 0 {
		return now
	}
	return at
}

// lives reports whether a request is still in the life of its attempt. A kill ends a life, even if
// the request was then requeued and is in flight again.
func (d *Dispatcher) lives(a *Attempt) bool {
	info := d.queue.Info(a.Ticket)
	return info.State == queue.InFlight && info.Seq == a.life
}

// moveOn moves a request on after an attempt. free means that the attempt is not counted, since the
// request was not at fault; nor is it if another is to blame. atOnce means that the request need not wait, since
// another key can take it.
func (d *Dispatcher) moveOn(now mono.Time, a *Attempt, ans *Answer, blamed culprit, free, atOnce bool) (e queue.Ended) {
	switch free = free || blamed != nobody; {
	case !d.lives(a):
		return e
	case ans.Invalid && !free:
		return d.queue.Kill(now, a.Ticket, ans.Reason)
	case ans.Banned || ans.Returned || atOnce:
		return d.queue.Return(now, a.Ticket, now)
	case blamed == thatBan:
		return d.queue.Return(now, a.Ticket, d.asked(now, a.part))
	case free:
		// The request waits until after the first key is asked again. So a request at fault does
		// not go round and round, and other requests find out whether the key serves.
		wait := d.backoff.Delay(d.queue.Info(a.Ticket).Returned+1, d.rand)
		if ans.Denied && blamed != theBan {
			wait = max(wait, d.othersFirst(a))
		}
		return d.queue.Return(now, a.Ticket, d.asked(now, a.part).Add(wait))
	case ans.Result == limit.Accepted && ans.More:
		return d.queue.More(now, a.Ticket)
	case ans.Result == limit.Accepted:
		return d.queue.Done(now, a.Ticket)
	}
	return d.queue.Retry(now, a.Ticket, now.Add(d.backoff.Delay(a.Number, d.rand)), ans.Reason)
}

// ban takes a key out of use, by the answer to an attempt of that era.
func (d *Dispatcher) ban(key int, era uint64, reason string) {
	if d.ring.Ban(keyring.Key(key), era, reason) {
		d.keys[key].stack.Close()
		d.touch(key)
	}
}

func (d *Dispatcher) isBanned(key int) bool {
	_, out := d.ring.Out(keyring.Key(key))
	return out
}

// Ban takes a key out of use. Its attempts in flight are settled as they come.
func (d *Dispatcher) Ban(key int, reason string) {
	d.keys[key].out = ""
	d.ban(key, d.ring.Era(keyring.Key(key)), reason)
}

// Resume brings a banned key back, and forgets its denials: somebody says that it is in order.
func (d *Dispatcher) Resume(key int) {
	if d.ring.Return(keyring.Key(key)) {
		d.keys[key].stack.Open()
		d.touch(key)
	}
}

// Hold keeps a key away until t, as a Retry-After would.
func (d *Dispatcher) Hold(now mono.Time, key int, t mono.Time) {
	d.keys[key].stack.Hold(now, t)
	d.touch(key)
}

// Lift ends the pause of a cooling key, whatever its cause. It also forgets the server's
// remainders, those of shared limits too.
func (d *Dispatcher) Lift(now mono.Time, key int) {
	for _, g := range d.keys[key].stacks {
		g.Lift(now)
	}
	for _, p := range d.parts[1:] {
		for _, g := range p.ofKey(d, key) {
			g.Lift(now)
		}
	}
	d.touch(key)
}

// Rest stops a key until t, whatever answers say: a user wants it. limit.Never stops it until the
// next call, and mono.Min ends it.
func (d *Dispatcher) Rest(now mono.Time, key int, t mono.Time) {
	d.keys[key].stack.Rest(now, t)
	d.touch(key)
}

// Refresh asks every key again. Call it after a limiter was changed from outside (SetLimit,
// SetWindow).
func (d *Dispatcher) Refresh() {
	for i := range d.keys {
		d.touch(i)
	}
}

// KeyInfo is the state of a key.
type KeyInfo struct {
	Name  string
	State KeyState
	Until mono.Time // while Cooling
	Next  mono.Time // while Cooling: when a probe may go; at the latest Until
	// Guessed says that no answer named Until: the key was refused or denied, and is tested then.
	Guessed bool
	Reason  string // of a ban
	Out     string // of a ban: see Answer.Out
	// Rests says that a user stopped the key until Until: see Rest. limit.AfterSettle: without an end.
	Rests    bool
	InFlight int
	Sent     uint64
	Nonce    uint64 // the last one used
	// The ends of the attempts that are no longer in flight.
	limit.Tally
	// Refusals and Denials count those in a row, with nothing served between. Refusals of requests
	// in flight together count as one. From the second on, one request at a time probes, more and
	// more rarely.
	Refusals, Denials int
	// Nonces is how many nonces in a row the key refused although they rose, and no later one can
	// have overtaken them.
	Nonces int
	// Misfits are the limits that are wrong, as far as is known, and their replacements.
	Misfits []limit.Misfit
	// Retreats are the opt-ins of its limits that proved wrong, and are not relied on for a while.
	Retreats []limit.Retreat
	// Shared is its limits together with other keys. Misfits and Retreats are then theirs.
	Shared []*Shared
}

// Cooling reports whether the key was refused, or asked to stay away: not before Until.
func (i KeyInfo) Cooling() bool { return i.State == Cooling }

// Banned reports whether the key was refused for good. Resume brings it back.
func (i KeyInfo) Banned() bool { return i.State == Banned }

// KeyInfo returns the state of a key at now.
func (d *Dispatcher) KeyInfo(now mono.Time, key int) KeyInfo {
	k := &d.keys[key]
	info := KeyInfo{Name: k.name, InFlight: k.inFlight, Sent: k.sent, Tally: k.tally, Shared: k.shared}
	if k.nonce != nil {
		info.Nonce = k.nonce.Last()
	}
	for _, g := range k.limits() {
		info.Retreats, info.Misfits = append(info.Retreats, limit.Retreats(g, now)...), append(info.Misfits, g.Misfits()...)
	}
	info.Refusals = k.stack.Refusals()
	info.Denials, info.Nonces = d.ring.InARow(keyring.Key(key))
	if why, out := d.ring.Out(keyring.Key(key)); out {
		info.State, info.Reason, info.Out = Banned, why, k.out
	} else if p, ok := k.paused(now); ok {
		info.State, info.Until, info.Next = Cooling, p.Until, p.Next
		info.Guessed = p.Why == stack.Guessed || p.Why == stack.Held && !d.ring.Trusted(keyring.Key(key))
	}
	if until, on := k.stack.Rests(now); on && info.State != Banned && until >= info.Until {
		info.State, info.Until, info.Next, info.Rests = Cooling, until, until, true
	}
	return info
}

// Explain returns when a key may be used for a cost, and what binds until then. That is a limit by
// its name, or one of these words. "pause": the key stays away. "rest": a user stopped it. "hint":
// the server stated what is left. "trial": the answer to the key's first request is missing.
// "beginning": load begins slowly.
func (d *Dispatcher) Explain(now mono.Time, key int, cost limit.Cost) (at mono.Time, b limit.Rule) {
	at, b = d.keys[key].stack.Explain(now, cost)
	for _, s := range d.keys[key].shared {
		if its, binds := s.stack.Explain(now, cost); its > at {
			at, b = its, binds
		}
	}
	return at, b
}

// Expect estimates when the last of n requests of that cost goes, if all of them go with one key
// and no others come. The result is limit.AfterSettle or limit.Never if no instant is known.
func (d *Dispatcher) Expect(now mono.Time, key, n int, cost limit.Cost) mono.Time {
	ahead := cost.Least()
	for u := range ahead {
		ahead[u] *= int64(n - 1)
	}
	ready, goes := now, now
	for _, g := range d.keys[key].stacks {
		ready = max(ready, g.Ready(now, cost))
		goes = max(goes, limit.Expected(g, now, n-1, ahead, cost))
	}
	if ready >= limit.AfterSettle {
		return ready
	}
	return max(goes, ready) // a pause may end at once, but that is not expected
}

// AppendUsage appends the usage of a key's own limits: see limit.AppendUsage. For shared limits, see
// Shared.AppendUsage.
func (d *Dispatcher) AppendUsage(to []limit.Usage, now mono.Time, key int) []limit.Usage {
	return limit.AppendUsage(to, d.keys[key].stack, now)
}

// Lessons returns what a key has learned about limits that were wrong, since it was refused within
// them. After a restart they are for a limit.Fitted: the key's Limiter, or that of the first
// Shared.
func (d *Dispatcher) Lessons(key int) []limit.Lesson {
	for _, g := range d.keys[key].limits() {
		return g.Lessons()
	}
	return nil
}

// ErrExhausted: every key is out of use. The requests still wait.
var ErrExhausted = errors.New("every key is out of use")

// Exhausted returns nil while a key is not banned. Otherwise it returns an ErrExhausted with the
// keys and the reasons.
func (d *Dispatcher) Exhausted() error {
	if d.ring.InUse() > 0 {
		return nil
	}
	reasons := make([]error, len(d.keys))
	for i := range d.keys {
		why, _ := d.ring.Out(keyring.Key(i))
		reasons[i] = fmt.Errorf("key %s: %s", d.keys[i].name, why)
	}
	return fmt.Errorf("%w: %w", ErrExhausted, errors.Join(reasons...))
}
