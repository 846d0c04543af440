package eventlog

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/limit/mono"
)

// Check finds out whether a closed window of a log held more than the limit: more events, or more of their
// amounts. Each key has windows of its own. Its memory is bounded by the events of two windows, and by the last events of
// each key in them, as many as exceed the limit. Use NewCheck. Not safe for concurrent use.
type Check struct {
	limit  rule.RollingConfig
	keys   map[string]*windows
	sweep  int // with so many keys, those with empty windows are forgotten
	last   Event
	first  int64
	began  bool
	result Result
}

// windows are those of one key.
type windows struct {
	witness rule.Witness
	key     string
	last    int64   // the instant of the last event
	recent  []Event // the last events, no more than it takes to exceed the limit; not kept after a breach
	sum     int64   // their amounts
}

// Result is what a Check found.
type Result struct {
	// Events is the number of events that count, and Amount how much they count in all.
	Events int
	Amount int64
	// Fullest is the most in any window. FullestAt is the event at which such a window first
	// ended.
	Fullest   int64
	FullestAt Event
	// Breach has the first and the last event of the first window that held more than the limit.
	// nil: there is none.
	Breach *[2]Event
}

// farthest is the longest log that package rule can judge: 73 years.
const farthest = 1 << 61

// NewCheck returns a Check of an empty log, for at most so much in any window.
func NewCheck(limit int64, window time.Duration) (*Check, error) {
	c := rule.RollingConfig{Limit: limit, Window: window, Tick: -1}
	if _, err := c.Witness(); err != nil {
		return nil, err
	}
	return &Check{limit: c, keys: map[string]*windows{}, sweep: 1024}, nil
}

// Add counts the next event. Events that are not in order are an error.
func (c *Check) Add(e Event) error {
	switch {
	case !c.began:
		c.first, c.began = e.At, true
	case e.At < c.last.At:
		return atLine(e.Line, fmt.Errorf("%s is before line %d, %s: expected events in order (--sort orders them)",
			Instant(e.At), c.last.Line, Instant(c.last.At)))
	case uint64(e.At)-uint64(c.first) >= farthest:
		return atLine(e.Line, fmt.Errorf("%s is not within 73 years of the first event, %s", Instant(e.At),
			Instant(c.first)))
	}
	c.last = e
	if e.Amount == 0 {
		return nil
	}
	c.result.Events++
	c.result.Amount += e.Amount
	w, err := c.of(e)
	if err != nil {
		return err
	}
	e.Key = w.key // which does not hold on to the line of the log
	w.witness.Hear(mono.Time(e.At-c.first), e.Amount, true)
	found := w.witness.Finding()
	if found.Most > c.result.Fullest {
		c.result.Fullest, c.result.FullestAt = found.Most, e
	}
	if c.result.Breach != nil {
		return nil
	}
	w.keep(e, c.limit.Limit)
	if !found.Kept() {
		c.result.Breach = &[2]Event{w.recent[0], e}
	}
	return nil
}

// of returns the windows of an event's key.
func (c *Check) of(e Event) (*windows, error) {
	w := c.keys[e.Key]
	if w == nil {
		if len(c.keys) >= c.sweep {
			for key, w := range c.keys {
				if e.At-w.last > int64(c.limit.Window) {
					delete(c.keys, key)
				}
			}
			c.sweep = max(1024, 2*len(c.keys))
		}
		witness, err := c.limit.Witness()
		if err != nil {
			return nil, err
		}
		w = &windows{witness: witness, key: strings.Clone(e.Key)}
		c.keys[w.key] = w
	}
	w.last = e.At
	return w, nil
}

// keep keeps the last events: one less would be within the limit.
func (w *windows) keep(e Event, limit int64) {
	w.recent = append(w.recent, e)
	for w.sum += e.Amount; w.sum-w.recent[0].Amount > limit; w.recent = w.recent[1:] {
		w.sum -= w.recent[0].Amount
	}
}

// Result returns what was found. A log without events is an error: it proves nothing.
func (c *Check) Result() (Result, error) {
	if c.result.Events == 0 {
		return Result{}, errors.New("no events that count: expected one or more")
	}
	return c.result, nil
}

// Sort sorts events by their instants. Those of one instant stay in the order of the log.
func Sort(events []Event) {
	slices.SortStableFunc(events, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
}

// Instant writes an instant of an Event.
func Instant(at int64) string { return time.Unix(0, at).UTC().Format(time.RFC3339Nano) }
