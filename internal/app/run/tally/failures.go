package tally

import (
	"cmp"
	"slices"
	"time"
)

// Failure counts the attempts that failed in the same way.
type Failure struct {
	What     string `json:"what"`              // the status of the answer, or why there was none: "503", "timeout"
	Attempts int    `json:"attempts"`          // how many attempts failed in this way
	Dead     int    `json:"dead"`              // how many of them ended as a dead letter; the others go again
	Example  string `json:"example,omitempty"` // the first of these attempts, in words
	// Open is how many requests have failed in this way at last, and go again.
	Open int `json:"-"`
}

const (
	// "Lately" means the last minute, which is counted in slots.
	failureSlots = 6
	failureSlot  = 10 * time.Second
	// mostFailures bounds the memory. Further ways to fail are counted together as otherFailures.
	mostFailures  = 50
	otherFailures = "others"
)

// failures counts failed attempts by their way to fail. The tally's lock guards it. The zero value
// is empty.
type failures struct {
	of map[string]*failure
}

type failure struct {
	Failure
	slots [failureSlots]struct {
		at             int64 // the number of the slot, as slotOf has it
		attempts, dead int
	}
}

func (f *failures) named(what string) *failure {
	if f.of == nil {
		f.of = map[string]*failure{}
	}
	is := f.of[what]
	if is == nil {
		if len(f.of) >= mostFailures {
			what = otherFailures
		}
		if is = f.of[what]; is == nil {
			is = &failure{Failure: Failure{What: what}}
			f.of[what] = is
		}
	}
	return is
}

// count adds failed attempts, and attempts after which their request became a dead letter.
func (f *failures) count(now time.Time, what, example string, attempts, dead int) {
	is := f.named(what)
	is.Attempts, is.Dead = is.Attempts+attempts, is.Dead+dead
	is.Example = cmp.Or(is.Example, example)
	at := slotOf(now)
	s := &is.slots[at%failureSlots]
	if s.at != at {
		s.at, s.attempts, s.dead = at, 0, 0
	}
	s.attempts, s.dead = s.attempts+attempts, s.dead+dead
}

// goesAgain moves a request from those that failed in one way at last to those that failed in another. An empty
// way is none.
func (f *failures) goesAgain(from, to string) {
	if from != "" {
		f.named(from).Open--
	}
	if to != "" {
		f.named(to).Open++
	}
}

func slotOf(now time.Time) int64 { return now.Unix() / int64(failureSlot/time.Second) }

// Lately returns the failures of the last minute, the most frequent first.
func (f *failures) Lately(now time.Time) (all []Failure) {
	at := slotOf(now)
	for _, is := range f.of {
		some := Failure{What: is.What, Example: is.Example, Open: is.Open}
		for _, s := range is.slots {
			if s.at > at-failureSlots {
				some.Attempts, some.Dead = some.Attempts+s.attempts, some.Dead+s.dead
			}
		}
		if some.Dead = min(some.Dead, some.Attempts); some.Attempts > 0 {
			all = append(all, some)
		}
	}
	return mostFirst(all)
}

func (f *failures) All() (all []Failure) {
	for _, is := range f.of {
		all = append(all, is.Failure)
	}
	return mostFirst(all)
}

func mostFirst(all []Failure) []Failure {
	slices.SortFunc(all, func(a, b Failure) int {
		return cmp.Or(cmp.Compare(b.Attempts, a.Attempts), cmp.Compare(a.What, b.What))
	})
	return all
}
