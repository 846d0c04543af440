package limit

import (
	"time"

	"github.com/paceline-go/paceline/mono"
)

// Lesson is what a Fitted has learned of one rate, for another that takes its place after a restart: a limit that is wrong is found out
// once, and not once in each process, since a server that bans counts the refusals of all. What it says to people is in Misfit; the rest
// is Fitted's own affair, and here to be encoded (encoding/json will do). Comparable.
type Lesson struct {
	Index int  `json:"-"`    // the index of Rate in Rates
	Rate  Rate `json:"rate"` // as configured

	State    uint8         `json:"state,omitempty"`
	Fits     int64         `json:"fits,omitempty"`
	Times    int           `json:"times,omitempty"`
	Refusals int           `json:"refusals,omitempty"`
	Gap      time.Duration `json:"gap,omitempty"`
	Step     int64         `json:"step,omitempty"`
	Low      int64         `json:"low,omitempty"`
	High     int64         `json:"high,omitempty"`
	Careful  bool          `json:"careful,omitempty"`

	// These are about the doubt whether refusals have to do with the rate.
	Most    int64 `json:"most,omitempty"`
	Kept    int64 `json:"kept,omitempty"`
	Sudden  int   `json:"sudden,omitempty"`
	Served  int   `json:"served,omitempty"`
	Refused int   `json:"refused,omitempty"`

	Began    mono.Time `json:"began,omitempty"`
	Until    mono.Time `json:"until,omitempty"`
	Since    mono.Time `json:"since,omitempty"`
	Latest   mono.Time `json:"latest,omitempty"`
	Answered mono.Time `json:"answered,omitempty"`
	Deaf     mono.Time `json:"deaf,omitempty"`
}

// Moved returns l with every instant later by d, as on a scale that began earlier by d.
func (l Lesson) Moved(d time.Duration) Lesson {
	for _, t := range []*mono.Time{&l.Began, &l.Until, &l.Since, &l.Latest, &l.Answered, &l.Deaf} {
		*t = t.Add(d)
	}
	return l
}

// Learned counts how often what Lessons returns may have changed.
func (f *Fitted) Learned() uint64 { return f.news }

// Lessons returns what was learned about each rate within which requests were refused; usually nothing.
func (f *Fitted) Lessons() (all []Lesson) {
	for i := range f.fits {
		if t := &f.fits[i]; t.state != free || t.times > 0 || t.most > 0 || t.deaf > mono.Min {
			all = append(all, t.lesson(f.began))
		}
	}
	return all
}

// lesson has no instant before began: what ended before that has no effect, and those that never were do not overflow.
func (t *fit) lesson(began mono.Time) Lesson {
	l := Lesson{
		Index: t.index, Rate: t.rate, State: uint8(t.state), Times: t.times, Refusals: t.refusals, Gap: t.gap, Step: t.step, Low: t.low, High: t.high,
		Careful: t.careful, Most: t.most, Kept: t.kept, Sudden: t.sudden, Served: t.served, Refused: t.doubt.refused, Began: began,
		Until: max(t.until, began), Since: max(t.since, began), Latest: max(t.latest, began), Answered: max(t.answered, began), Deaf: max(t.deaf, began),
	}
	if t.state != free {
		l.Fits = t.n
	}
	return l
}

// Recall has f go on from a lesson that another has learned, and reports whether it is of a rate of f's and makes sense; if not,
// nothing changes. f has admitted nothing yet but by Count.
func (f *Fitted) Recall(now mono.Time, l Lesson) bool {
	rates, _ := Rates(f.own)
	for i := range f.fits {
		t := &f.fits[i]
		if t.index != l.Index || rates[t.index] != l.Rate || t.rate != l.Rate || !l.makesSense() {
			continue
		}
		f.last = max(now, f.last)
		l.until(now)
		if f.began == mono.Min || l.Began < f.began {
			f.began = l.Began
		}
		t.recall(&l)
		f.bound = f.bound || t.state != free
		f.deaf = f.deaf || l.Deaf > l.Began
		return true
	}
	return false
}

// until moves instants that cannot be, since clocks differ: nothing past may be later than now, and nothing to come later than it ever
// is.
func (l *Lesson) until(now mono.Time) {
	for _, t := range []*mono.Time{&l.Began, &l.Since, &l.Latest, &l.Answered} {
		*t = min(*t, now)
	}
	last := now.Add(cautionPause << (cautionTimes - 1))
	l.Until, l.Deaf = min(l.Until, last), min(l.Deaf, last)
}

// makesSense refuses what no Fitted would say.
func (l *Lesson) makesSense() bool {
	if l.Times < 0 || l.Times > cautionTimes || min(l.Refusals, l.Sudden, l.Served, l.Refused) < 0 || min(l.Most, l.Kept, int64(l.Gap)) < 0 {
		return false
	}
	if fitState(l.State) == free {
		return true
	}
	ok := l.Fits >= 1 && l.Fits <= l.Rate.N && l.Step >= 0 && l.Step <= MaxCost && l.Gap <= longGap && (l.Gap == 0 || l.Fits == 1)
	switch fitState(l.State) {
	case trial:
		return ok && l.Step > 0
	case held:
		return ok
	case searching:
		return ok && l.Low >= 1 && l.Low <= l.Fits && l.Fits < l.High
	case growing:
		return ok && l.Step > 0 && l.Low >= 1 && l.Low <= l.Fits
	}
	return false
}

func (t *fit) recall(l *Lesson) {
	t.stage = stage{
		state: fitState(l.State), n: l.Fits, caution: caution{until: l.Until, times: l.Times}, refusals: l.Refusals, since: l.Since, gap: l.Gap,
		step: l.Step, low: l.Low, high: l.High, careful: l.Careful,
	}
	t.doubt = doubt{most: l.Most, kept: l.Kept, sudden: l.Sudden, served: l.Served, refused: l.Refused, deaf: l.Deaf}
	t.latest = max(t.latest, l.Latest)
	if t.answered <= l.Since { // before that it did not look
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

// Count tells f of a request that another process admitted before it, and that is to be settled with o, as of now. The caller tells
// the Limiter in it. It is evidence of nothing, but what was accepted lately is known by it.
func (f *Fitted) Count(now mono.Time, cost Cost, o Outcome) {
	if f.front == nil {
		return
	}
	f.last = max(now, f.last)
	f.front.Settle(now, f.front.Admit(now, cost), o)
	for i := range f.fits {
		switch t := &f.fits[i]; {
		case cost.of(t.rate.Unit) == 0:
		case o.Result == Unknown: // of the others the lesson knows when they were sent
			t.latest = max(t.latest, now)
		case o.Result == Accepted || o.Result == Failed:
			t.answered = max(t.answered, now)
		}
	}
}
