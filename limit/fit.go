package limit

import (
	"math"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// fit is the stricter limit for one rate.
type fit struct {
	index  int // of rate in Rates
	rate   Rule
	ledger *Rolling // the accepted requests; its limit is n
	stage
	doubt
	latest   mono.Time // when a request was last admitted
	answered mono.Time // when a request was last answered without a refusal
	learns   bool      // n comes from the cause, which may still change
	below    int64     // the n before this one
}

// stage is the state of a fit in the picture above.
type stage struct {
	state fitState
	n     int64
	caution
	refusals int
	since    mono.Time     // since when n holds
	gap      time.Duration // for a fit below 1: the least time between two requests
	step     int64         // while growing
	// low and high are for a search and for growth. low was used without a refusal, or is surely
	// safe. high was refused.
	low, high int64
	careful   bool // the second half of n goes one by one
}

// doubt collects evidence that the rate is not the cause of the refusals. They go on although the
// limit was lowered again and again and kept each time, and nearly all requests are served. A
// bucket that is all but empty looks different: it serves few requests, and all within a smaller
// limit.
type doubt struct {
	most    int64     // the most that was accepted in the window before a refusal
	kept    int64     // the cost served since n has its value
	sudden  int       // how often as much as n had been served before a refusal
	served  int       // since the first refusal
	refused int       //
	deaf    mono.Time // until then refusals are no evidence
}

// refuses counts one more refusal at n, after fits had been accepted in the last window. It reports
// whether the refusal has nothing to do with the rate.
func (d *doubt) refuses(n, fits int64) bool {
	kept := d.kept
	if kept >= n {
		d.sudden++
	}
	d.most = max(d.most, fits)
	d.kept = 0
	d.refused++
	// At 1 a bucket with a slower refill may have served some requests before it was empty.
	return d.rare(0) && (n > 1 && n <= d.most/8 && d.sudden >= 3 || n == 1 && kept >= 64)
}

// rare reports whether at most a tenth of the requests is refused. The count leaves out as many
// refusals as but says.
func (d *doubt) rare(but int) bool { return 10*(d.refused-but) <= d.served }

// disbelieves reports whether a refusal is no evidence. If the limit became wrong meanwhile, many
// requests would be refused.
func (t *fit) disbelieves(now mono.Time) bool {
	if now >= t.deaf {
		return false
	}
	t.doubt.refused++
	return t.rare(3)
}

// serve counts an answer that is no refusal. It reports whether the doubt changes: after each
// eighth more, or after all of n.
func (t *fit) serve(now mono.Time, cost int64) (news bool) {
	t.answered = now
	before := t.kept
	t.kept += cost
	t.doubt.served++
	return t.doubt.served%max(t.doubt.served/8, 1) == 0 || before < t.n && t.kept >= t.n
}

// sure reports whether n is known to hold. Otherwise n is a guess: a bucket may have accepted twice
// as much in a window before it was empty.
func (s *stage) sure() bool { return s.state == growing || s.state == held && !s.careful }

type fitState uint8

const (
	free fitState = iota
	trial
	held
	searching
	growing
)

const (
	// try is the shortest time of one try in a search.
	try = time.Minute
	// longTrial is the longest window for which a refusal in the first window is evidence. A wait
	// of a whole day for trust would cost more than a refusal does.
	longTrial = time.Minute
	// longStep is the longest time between two steps of growth.
	longStep = 10 * time.Minute
	// longGap is the longest gap, for a fit below 1.
	longGap = time.Hour
)

// allows returns the cost that may go per window now.
func (t *fit) allows() int64 {
	if t.state == free {
		return t.rate.N
	}
	return min(t.n, t.rate.N)
}

// serves reports whether an answer other than a refusal came lately: in the last window. With a fit
// of 1 it looks at the last eight windows or gaps, whichever take longer.
func (t *fit) serves(now mono.Time) bool {
	if t.ledger.counted(now) > t.ledger.open {
		return true
	}
	return t.state != free && t.n == 1 && now < t.answered.Add(8*max(t.gap, t.rate.Per))
}

// release ends a fit, so that only the configured rate holds.
func (t *fit) release(now mono.Time) {
	t.state, t.learns, t.careful, t.refusals, t.gap, t.doubt = free, false, false, 0, 0, doubt{deaf: t.deaf, most: t.most}
	t.put(now, MaxCost)
}

// follow takes the rate's present configuration. It reports whether the window changed (SetWindow).
// Then the fit no longer holds. The known history stays, and the new window counts as the first.
func (t *fit) follow(now mono.Time, r Rule) bool {
	before := t.rate.Per
	t.rate = r
	if r.Per == before {
		return false
	}
	t.release(now)
	t.ledger.grain = r.Per / 1024
	if span, err := t.ledger.spanOf(r.Per); err == nil { // otherwise the window is too long to matter
		t.ledger.span, t.ledger.window = span, r.Per
	}
	return true
}

// put sets the fit to n from now on.
func (t *fit) put(now mono.Time, n int64) {
	t.n, t.since = n, now
	if err := t.ledger.SetLimit(t.ledger.last, n); err != nil {
		panic(err) // n is between 1 and MaxCost
	}
}

// full reports whether n is used up, as far as that does not depend on open costs. It counts the
// answers of the last window. For a limit of requests it counts those in flight, too. The cost of
// tokens in flight is not known, so half of n is enough.
func (t *fit) full(now mono.Time, open int) bool {
	done := t.ledger.counted(now) - t.ledger.open
	if t.rate.Unit != Requests {
		return 2*done >= t.n
	}
	return done+int64(open) >= t.n
}

// refused takes evidence: a refusal without another explanation.
func (t *fit) refused(now mono.Time, c *cause) {
	t.below = t.allows()
	if t.refuses(t.below, c.fits) {
		t.strike(now, now)
		pause := cautionPause << max(t.times-1, 0)
		t.release(now)
		t.trust(now)
		t.deaf = now.Add(pause)
		return
	}
	t.refusals++
	t.learns, t.careful = false, true
	switch {
	case (t.state == free || t.state == trial) && c.fresh:
		t.state, t.learns, t.step = trial, true, 0
	case t.state == free || t.state == trial:
		t.strike(now, now)
		t.state, t.learns = held, true
	case t.state == growing:
		t.strike(now, now)
		t.state = held
		t.put(now, t.low)
	case t.state == searching && t.n > t.low:
		t.high = t.n
		t.put(now, t.low)
		t.found(now)
	case t.n == 1:
		t.state, t.gap = held, min(max(2*t.gap, 2*t.rate.Per), longGap)
		t.put(now, 1)
		t.until = max(t.until, now.Add(cautionPause<<max(t.times-1, 0)))
	default:
		t.state, t.learns, t.high = searching, true, t.below
	}
	if t.learns {
		t.set(now, c)
	}
}

// set sets the fit by the present knowledge of the cause.
func (t *fit) set(now mono.Time, c *cause) {
	fits := min(c.fits, t.below-1)
	if t.state == searching {
		fits = min((c.fits+1)/2, (t.below+1)/2)
		t.low = max(fits, 1)
	}
	t.put(now, max(fits, 1))
	t.step = max(t.n/16, 1)
}

// move lets the fit grow if it is time. full says that the fit is used up, and so known to hold.
func (t *fit) move(now mono.Time, full bool) {
	if t.state == held && now >= t.until {
		t.state, t.learns, t.careful, t.since, t.low, t.step = growing, false, true, now, t.n, max(t.n/16, 1)
	}
	t.careful = t.careful && (t.state != held || now < t.since.Add(max(try, t.rate.Per)))
	if !full || now < t.since.Add(t.lasts()) {
		return
	}
	t.learns = false
	switch t.state {
	case searching:
		t.low = t.n
		if !t.found(now) {
			t.put(now, t.low+(t.high-t.low)/2)
		}
	case trial, growing:
		if t.gap > 0 {
			if t.gap /= 2; t.gap <= t.rate.Per {
				t.gap = 0
			}
			t.since = now
			return
		}
		n := t.n + t.step
		if n >= t.rate.N {
			t.release(now)
			return
		}
		t.put(now, n)
		t.step *= 2
	}
}

// lasts returns the shortest time for which n keeps its value. After a whole window no counted
// request is older than n.
func (t *fit) lasts() time.Duration {
	switch t.state {
	case trial:
		return t.rate.Per
	case searching:
		return max(try, t.rate.Per)
	case growing:
		return min(max(try, 2*t.rate.Per), longStep)
	}
	return math.MaxInt64
}

// found ends a search whose bounds are close to each other.
func (t *fit) found(now mono.Time) bool {
	if t.high-1-t.low > t.low/10 { // the fit is below high
		return false
	}
	t.state = held
	t.until = max(t.until, now.Add(cautionPause<<max(t.times-1, 0)))
	return true
}

// lesson has no instant before began. An earlier end has no effect, and instants that never were do
// not overflow.
func (t *fit) lesson(began mono.Time) Lesson {
	l := Lesson{
		Index: t.index, Rule: t.rate, State: uint8(t.state), Times: t.times, Refusals: t.refusals, Gap: t.gap, Step: t.step, Low: t.low, High: t.high,
		Careful: t.careful, Most: t.most, Kept: t.kept, Sudden: t.sudden, Served: t.served, Refused: t.doubt.refused, Began: began,
		Until: max(t.until, began), Since: max(t.since, began), Latest: max(t.latest, began), Answered: max(t.answered, began), Deaf: max(t.deaf, began),
	}
	if t.state != free {
		l.Fits = t.n
	}
	return l
}

func (t *fit) recall(l *Lesson) {
	t.stage = stage{
		state: fitState(l.State), n: l.Fits, caution: caution{until: l.Until, times: l.Times}, refusals: l.Refusals, since: l.Since, gap: l.Gap,
		step: l.Step, low: l.Low, high: l.High, careful: l.Careful,
	}
	t.doubt = doubt{most: l.Most, kept: l.Kept, sudden: l.Sudden, served: l.Served, refused: l.Refused, deaf: l.Deaf}
	t.latest = max(t.latest, l.Latest)
	if t.answered <= l.Since { // before l.Since the other Fitted did not look
		if t.answered = mono.Min; l.Answered > l.Began {
			t.answered = l.Answered
		}
	}
	n := t.n
	if t.state == free {
		n = MaxCost
	}
	t.put(t.ledger.last, n)
	t.since = l.Since
}
