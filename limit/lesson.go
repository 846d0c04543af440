package limit

import (
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// Lesson is what a Fitted has learned of one rate. A Fitted in the next process continues from it.
// So a wrong limit is found once, and not once in each process: a server that bans counts the
// refusals of all of them. Misfit has the part for people. The rest is private to Fitted, and
// exported for encoding only (encoding/json works). Comparable.
type Lesson struct {
	Index int  `json:"-"`    // the index of Rule in Rates
	Rule  Rule `json:"rate"` // as configured

	State    uint8         `json:"state,omitempty"`
	Fits     int64         `json:"fits,omitempty"`
	Times    int           `json:"times,omitempty"`
	Refusals int           `json:"refusals,omitempty"`
	Gap      time.Duration `json:"gap,omitempty"`
	Step     int64         `json:"step,omitempty"`
	Low      int64         `json:"low,omitempty"`
	High     int64         `json:"high,omitempty"`
	Careful  bool          `json:"careful,omitempty"`

	// These fields are about the doubt whether the rate is the cause of the refusals.
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

// until corrects impossible instants, since clocks differ. No past instant may be later than now.
// No future instant may be later than the longest pause.
func (l *Lesson) until(now mono.Time) {
	for _, t := range []*mono.Time{&l.Began, &l.Since, &l.Latest, &l.Answered} {
		*t = min(*t, now)
	}
	last := now.Add(cautionPause << (cautionTimes - 1))
	l.Until, l.Deaf = min(l.Until, last), min(l.Deaf, last)
}

// makesSense reports whether a Fitted can have produced the lesson.
func (l *Lesson) makesSense() bool {
	if l.Times < 0 || l.Times > cautionTimes || min(l.Refusals, l.Sudden, l.Served, l.Refused) < 0 || min(l.Most, l.Kept, int64(l.Gap)) < 0 {
		return false
	}
	if fitState(l.State) == free {
		return true
	}
	ok := l.Fits >= 1 && l.Fits <= l.Rule.N && l.Step >= 0 && l.Step <= MaxCost && l.Gap <= longGap && (l.Gap == 0 || l.Fits == 1)
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
