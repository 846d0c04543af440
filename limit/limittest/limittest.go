package limittest

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// Spec says which laws a kind of Limiter must obey, and how.
type Spec struct {
	// New returns a fresh Limiter, always configured alike.
	New func() limit.Limiter
	// Costs are the costs of requests. Laws 4, 6 and 7 are tried on all of them. If empty,
	// limit.One.
	Costs []limit.Cost
	// Scale is the typical time of the Limiter (its window). Steps of time are drawn around it. If
	// zero, 1 s.
	Scale time.Duration
	// ClosedLoop checks law 8 in place of 3, 4 and 6. Burst is then the most Admits at one instant.
	ClosedLoop bool
	Burst      int
	// Late is how long after an unknown outcome a request may arrive. If zero, 5 s.
	Late time.Duration
	// OneWayMax and RejectsFree are those of limit.Arrivals.
	OneWayMax   time.Duration
	RejectsFree bool
	// Lapses says that a verdict may lapse, since an open cost grows with its age. Law 2 is then
	// that of News.
	Lapses bool
	// SeenSteps sets the driver's clock back only so that the next change is earlier than the last
	// one. It is for a limiter that relies on the length of a window. NoSteps never sets it back, for
	// one that relies on the beginning of a window. By default it goes back at any time, seen or not.
	SeenSteps, NoSteps bool
	// Change, if not nil, changes the configuration (SetLimit, SetWindow) by b. Promise is then one
	// that all configurations keep: of the largest limit, and of the shortest window.
	Change func(l limit.Limiter, now mono.Time, b byte)
	// News, if not nil, gives l knowledge from elsewhere, by b. Laws 2 and 5 are then those of a
	// limiter whose truth is elsewhere. After enough calls, every cost that can ever go must be
	// ready.
	News func(l limit.Limiter, now mono.Time, b byte)
	// Promise judges all arrivals of a run, in order of arrival. If nil, law 9 is not checked.
	Promise func(arrivals []Arrival) error
	// Bounded says that something else than the used part may delay requests, such as a pause. Rough
	// says that a request settled without Actual may count as less than its cost, and that Used stops
	// at Allowed. Law 15 then asks less.
	Bounded, Rough bool
	// Programs is the number of programs in Laws. If zero, 300, or 30 under the race detector.
	Programs int
}

// Arrival is a request as the server saw it.
type Arrival struct {
	At   mono.Time
	Cost limit.Cost // as admitted, or the actual cost if that is less
}

// Laws runs random programs against the Limiter. It fails t with the seed of the first program that
// breaks a law.
func Laws(t *testing.T, s Spec) {
	t.Helper()
	const steps = 400
	programs := s.Programs
	switch {
	case programs > 0:
	case testing.Short():
		programs = 30
	default:
		programs = 300
	}
	for seed := range uint64(programs) {
		rng := rand.New(rand.NewPCG(seed, 0))
		program := make([]byte, 3*steps)
		for i := range program {
			program[i] = byte(rng.Uint32())
		}
		if err := Run(s, program); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// Fuzz is the body of a fuzz target: programs as bytes.
func Fuzz(f *testing.F, s Spec) {
	f.Add([]byte{1, 0, 0, 1, 0, 0, 3, 0, 0, 2, 0, 0})
	f.Add([]byte("\x01\x00\x00\x00\x80\x40\x03\x01\x00\x02\x01\x00\x03\x02\x07\x02\x02\x02"))
	f.Fuzz(func(t *testing.T, program []byte) {
		if err := Run(s, program[:min(len(program), 3000)]); err != nil {
			t.Fatal(err)
		}
	})
}

// Run interprets a program, three bytes a step. It returns the first broken law.
func Run(s Spec, program []byte) error {
	if len(s.Costs) == 0 {
		s.Costs = []limit.Cost{limit.One}
	}
	s.Scale = cmp.Or(s.Scale, time.Second)
	s.Late = cmp.Or(s.Late, 5*time.Second)
	r := run{Spec: s, subject: s.New(), twin: s.New(), gauge: gauge{kept: true}, changed: mono.Min, latest: mono.Min, burstAt: mono.Min, never: map[limit.Cost]bool{}}
	r.refuses = len(program) > 0 && program[0]&1 == 0
	if len(program) > 1 && program[1]&1 == 0 { // the driver chooses the zero of the scale
		r.now = mono.Time(0).Add(-100 * s.Scale)
	}
	for i := 0; i+2 < len(program); i += 3 {
		if err := r.step(program[i], program[i+1], program[i+2]); err != nil {
			return fmt.Errorf("step %d at %v: %w", i/3, r.now, err)
		}
	}
	if err := r.restore(byte(len(program))); err != nil {
		return fmt.Errorf("at the end, at %v: %w", r.now, err)
	}
	if err := r.judge(); err != nil {
		return err
	}
	if err := r.relieve(); err != nil {
		return err
	}
	if err := r.idle(); err != nil {
		return err
	}
	return r.forecast(program)
}

// run drives a subject and its twin. The twin differs only in the estimated costs of its requests.
type run struct {
	Spec
	subject, twin limit.Limiter
	now           mono.Time     // by the driver's clock
	lost          time.Duration // how far that clock is behind
	changed       mono.Time     // when the subject last changed
	latest        mono.Time     // the latest instant of a change
	open          []sent
	arrivals      []Arrival
	never         map[limit.Cost]bool
	refuses       bool // the program may refuse requests, which ends an opt-in
	burst         int
	burstAt       mono.Time
	gauge         gauge
}

type sent struct {
	sent      *limit.Sent // At is by the driver's clock
	truly     mono.Time
	twin      *limit.Sent
	estimates bool // the twin has another cost
}

func (r *run) step(op, a, b byte) error {
	cost := r.Costs[int(a)%len(r.Costs)]
	if r.Change != nil && op == 255 {
		r.gauge.kept = false
		r.Change(r.subject, r.now, b)
		r.Change(r.twin, r.unstepped(), b)
		r.change()
		clear(r.never)
		return r.laws()
	}
	if r.News != nil && op >= 224 {
		r.tell(b)
		return r.laws()
	}
	if op == 254 {
		if err := r.restore(b); err != nil {
			return err
		}
		return r.laws()
	}
	switch op % 6 {
	case 0: // time passes: from a nanosecond to two windows
		r.now = r.now.Add(time.Duration(float64(r.Scale) * []float64{1e-9, 1e-3, 0.05, 0.5, 2}[int(a)%5] * float64(b) / 255))
	case 1: // send if it may go
		if r.subject.Ready(r.now, cost) <= r.now {
			if err := r.admit(cost, b); err != nil {
				return err
			}
		}
	case 2: // wait for the instant, then send
		t := r.subject.Ready(r.now, cost)
		if t >= limit.AfterSettle {
			break
		}
		if t > r.now && !r.ClosedLoop {
			if u := r.subject.Ready(t-1, cost); u != t {
				return fmt.Errorf("law 3: Ready says %v, a nanosecond before that %v", t, u)
			}
		}
		r.now = t
		switch again := r.subject.Ready(t, cost); {
		case again > t && r.News != nil:
			return r.laws() // the verdict has lapsed
		case again != t:
			return fmt.Errorf("law 3: Ready said %v, and then it says %v", t, again)
		}
		if err := r.admit(cost, b); err != nil {
			return err
		}
	case 3, 4: // an answer, to any of the open ones
		if len(r.open) > 0 {
			i := int(a) % len(r.open)
			s := r.open[i]
			r.open = slices.Delete(r.open, i, i+1)
			if err := r.settle(s, op, b); err != nil {
				return err
			}
		}
	case 5: // the clock goes back
		if a%4 == 0 {
			r.setBack(time.Duration(b) * r.Scale / 256)
			break
		}
		back, now := r.subject.Ready(r.now.Add(-time.Duration(b)*r.Scale/16), cost), r.subject.Ready(r.now, cost)
		if back > now || back < now && r.changed == r.now {
			return fmt.Errorf("law 2: asked at an earlier instant Ready says %v, now %v", back, now)
		}
		if err := r.past(cost, time.Duration(b)*r.Scale/16); err != nil {
			return err
		}
	}
	if err := r.leaving(cost, float64(b)/255); err != nil {
		return err
	}
	return r.laws()
}

// change records that the subject changed.
func (r *run) change() { r.changed, r.latest = r.now, max(r.now, r.latest) }

// unstepped returns the instant that now counts as, for a limiter that may miss steps. The two
// limiters behind an opt-in do not get a Trust.
func (r *run) unstepped() mono.Time {
	if !r.SeenSteps && !r.NoSteps && r.OneWayMax == 0 {
		return max(r.now, r.latest)
	}
	return r.now
}

// past checks that an instant before the last change counts as that of the change.
func (r *run) past(cost limit.Cost, d time.Duration) error {
	if r.latest == mono.Min {
		return nil
	}
	said := func(now mono.Time) (all [4]mono.Time) {
		all[0] = r.subject.Ready(now, cost)
		all[1], _ = limit.Explain(r.subject, now, cost)
		if limit.Foresees(r.subject) {
			all[2] = limit.ReadyAfter(r.subject, now, cost, cost)
		}
		if limit.Forecasts(r.subject) {
			all[3] = limit.NotBefore(r.subject, now, 1, cost, cost)
		}
		return all
	}
	if back, then := said(r.latest.Add(-d)), said(r.latest); back != then {
		return fmt.Errorf("law 1: asked %v before the last change Ready, Explain, ReadyAfter and NotBefore say %v; at the change, at %v, %v", d, back, r.latest, then)
	}
	return nil
}

// setBack sets the driver's clock back.
func (r *run) setBack(d time.Duration) {
	if r.NoSteps {
		return
	}
	if r.SeenSteps {
		if d += r.now.Sub(r.changed); r.changed == mono.Min {
			return
		}
	}
	r.now = r.now.Add(-d)
	r.lost += d
	if r.SeenSteps {
		for _, l := range []limit.Limiter{r.subject, r.twin} {
			l.Settle(r.now, Admit(l, r.now, limit.Cost{}), &limit.Outcome{Result: limit.Unsent})
		}
	}
}

// tell makes an Update.
func (r *run) tell(b byte) {
	r.News(r.subject, r.now, b)
	r.News(r.twin, r.now, b) // the news may depend on now
	r.change()
}

// relieve checks, at the end of a program, that news makes the waiting costs ready.
func (r *run) relieve() error {
	for told := 0; r.News != nil; told++ {
		if !slices.Contains(r.readiness(r.subject), limit.AfterSettle) {
			break
		}
		if told == 256 {
			return fmt.Errorf("law 5: at %v costs wait for a settle, and no news help: %v", r.now, r.readiness(r.subject))
		}
		for _, s := range r.open {
			r.subject.Settle(r.now, s.sent, &limit.Outcome{})
			r.twin.Settle(r.now, s.twin, &limit.Outcome{})
		}
		r.open = nil
		r.now = r.now.Add(r.Scale)
		r.tell(byte(told))
	}
	return nil
}

// foresee returns when each cost would be ready after an Admit of first, if the subject
// foresees.
func (r *run) foresee(first limit.Cost) (ts []mono.Time) {
	if !limit.Foresees(r.subject) {
		return nil
	}
	for _, c := range r.Costs {
		ts = append(ts, limit.ReadyAfter(r.subject, r.now, first, c))
	}
	return ts
}

func (r *run) admit(cost limit.Cost, b byte) error {
	foreseen, leaving := r.foresee(cost), r.foreseeLeaving(&cost)
	s := sent{truly: r.now.Add(r.lost), sent: lent(Admit(r.subject, r.now, cost))}
	for i, t := range foreseen {
		if at := r.subject.Ready(r.now, r.Costs[i]); at > t {
			return fmt.Errorf("law 11: after cost %v, cost %v is ready at %v; %v was foreseen", cost, r.Costs[i], at, t)
		}
	}
	if err := r.sawLeaving(leaving); err != nil {
		return err
	}
	estimate := cost
	if s.estimates = b%3 == 0; s.estimates {
		for u := range estimate {
			estimate[u] *= 2
		}
	}
	s.twin = Admit(r.twin, r.unstepped(), estimate)
	r.open = append(r.open, s)
	if at := max(r.now, r.changed); at > r.burstAt { // an instant before the last change counts as that of the change
		r.burst, r.burstAt = 0, at
	}
	r.burst++
	r.change()
	return nil
}

func (r *run) settle(s sent, op, b byte) error {
	o := limit.Outcome{Result: limit.Result(b % 5)}
	if r.OneWayMax > 0 && o.Result == limit.Limited && !r.refuses {
		o.Result = limit.Failed // otherwise the opt-in would be off for the rest of the program
	}
	portion := func(d time.Duration) time.Duration { return time.Duration(float64(d) * float64(b>>4) / 15) }
	now, wrote := r.now.Add(r.lost), s.truly
	if r.OneWayMax > 0 && b&8 == 0 { // the write was some time after the Admit
		wrote = wrote.Add(now.Sub(wrote) / 2)
		o.RTT = now.Sub(wrote)
	}
	latest := now
	if o.Result == limit.Unknown {
		latest = now.Add(r.Late)
	}
	if o.RTT > 0 {
		latest = min(latest, wrote.Add(r.OneWayMax))
	}
	at := wrote.Add(portion(latest.Sub(wrote)))
	if op/6%4 == 3 { // the server stated the arrival
		o.ArrivedAgo = now.Sub(at)
	}
	if r.ClosedLoop && o.Result == limit.Limited && op%2 == 0 {
		o.RetryAfter = r.Scale / 8
	}
	if o.Metered = s.estimates || op/24%4 == 3; o.Metered {
		o.Actual = s.sent.Cost
		if op/24%4 == 3 {
			for u := range o.Actual {
				o.Actual[u] = o.Actual[u] * int64(b>>4%3) / 2 // none, half or the same
				if op >= 192 {
					o.Actual[u] *= 3 // or none, 1.5 times or thrice as much
				}
			}
		}
	}
	if o.Result != limit.Unsent && !(o.Result == limit.Limited && r.RejectsFree) {
		arrived := Arrival{at, s.sent.Cost}
		for u := range arrived.Cost {
			if o.Metered {
				arrived.Cost[u] = min(arrived.Cost[u], o.Actual[u])
			}
		}
		r.arrivals = append(r.arrivals, arrived)
	}
	r.gauge.settled(r, s.sent.Cost, &o)
	before := r.readiness(r.subject)
	stepped := r.SeenSteps && r.now < r.changed // now the subject sees the step, and is careful
	if err := settleLent(r.subject, r.now, s.sent, o); err != nil {
		return err
	}
	r.twin.Settle(r.unstepped(), s.twin, &o)
	r.change()
	if r.ClosedLoop || stepped || r.OneWayMax > 0 && o.Result == limit.Limited || o.Metered && !atMost(o.Actual, s.sent.Cost) {
		return nil
	}
	for i, t := range r.readiness(r.subject) {
		if t > before[i] {
			return fmt.Errorf("law 6: a settle (%v) made cost %v ready at %v instead of %v", o.Result, r.Costs[i], t, before[i])
		}
	}
	return nil
}

func (r *run) readiness(l limit.Limiter) []mono.Time {
	ts := make([]mono.Time, len(r.Costs))
	for i, c := range r.Costs {
		ts[i] = l.Ready(r.now, c)
	}
	return ts
}

// told checks law 13.
func (r *run) told(ready []mono.Time) error {
	if n := limit.Unsettled(r.subject); n > 0 && n != len(r.open) {
		return fmt.Errorf("law 13: %d are unsettled, where %d are open", n, len(r.open))
	}
	for i, c := range r.Costs {
		at, b := limit.Explain(r.subject, r.now, c)
		if at != ready[i] || at > r.now && b.Name == "" {
			return fmt.Errorf("law 13: cost %v is ready at %v; what is explained is %v, by %+v", c, ready[i], at, b)
		}
	}
	return nil
}

func (r *run) laws() error {
	ready := r.readiness(r.subject)
	if err := r.told(ready); err != nil {
		return err
	}
	if err := r.gauged(ready); err != nil {
		return err
	}
	for i, c := range r.Costs {
		t := ready[i]
		switch {
		case t < r.now:
			return fmt.Errorf("law 1: cost %v is ready at %v, before now", c, t)
		case t == limit.AfterSettle && len(r.open) == 0 && r.News == nil:
			return fmt.Errorf("law 5: cost %v waits for a settle, and no request is open", c)
		}
		if was, seen := r.never[c]; seen && was != (t == limit.Never) {
			return fmt.Errorf("law 5: Never for cost %v was %v, and is no more", c, was)
		}
		r.never[c] = t == limit.Never
		for _, d := range []time.Duration{1, r.Scale / 3, 3 * r.Scale} {
			if u, least := r.subject.Ready(r.now.Add(d), c), max(t, r.now.Add(d)); u != least && (r.News == nil && !r.Lapses || u < least) {
				return fmt.Errorf("law 2: cost %v is ready at %v, but asked %v later at %v", c, t, d, u)
			}
		}
		if r.ClosedLoop {
			continue
		}
		for j, dearer := range r.Costs {
			if atMost(c, dearer) && ready[j] < t {
				return fmt.Errorf("law 4: cost %v is ready at %v, the dearer %v at %v", c, t, dearer, ready[j])
			}
		}
	}
	if r.ClosedLoop && r.burst > max(r.Burst, 1) {
		return fmt.Errorf("law 8: %d requests admitted at one instant", r.burst)
	}
	for _, s := range r.open {
		if s.estimates {
			return nil
		}
	}
	if twin := r.readiness(r.twin); !slices.Equal(ready, twin) {
		return fmt.Errorf("law 7: all settled alike, ready at %v; estimated dearer and settled alike, at %v", ready, twin)
	}
	return nil
}

func (r *run) judge() error {
	if r.Promise == nil {
		return nil
	}
	for _, s := range r.open { // still under way: the arrival may have been at any time
		r.arrivals = append(r.arrivals, Arrival{r.now.Add(r.lost), s.sent.Cost})
	}
	slices.SortStableFunc(r.arrivals, func(a, b Arrival) int {
		switch {
		case a.At < b.At:
			return -1
		case a.At > b.At:
			return 1
		}
		return 0
	})
	if err := r.Promise(r.arrivals); err != nil {
		return fmt.Errorf("law 9: %w", err)
	}
	return nil
}

func atMost(a, b limit.Cost) bool {
	for u := range a {
		if a[u] > b[u] {
			return false
		}
	}
	return true
}
