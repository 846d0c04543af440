package screen

import (
	"fmt"
	"sync"
	"time"
)

// Share is the progress of work whose end is known.
type Share struct {
	// Forms say how much is done, as the Forms of a Part.
	Forms []string
	// Done is how much of all the work, from 0 to 1, was done in Elapsed.
	Done    float64
	Elapsed time.Duration
	// More is shown beside it.
	More []Part
}

// Line says how far the work is, and how long the rest takes if it goes on as it did.
func (s Share) Line() Line {
	l := Line{{Forms: s.Forms, Rank: 0, Keep: true}, {Forms: []string{fmt.Sprintf("%.0f %%", 100*s.Done)}, Rank: 2}}
	switch {
	case s.Done >= 1:
	case s.Done <= 0:
		l = append(l, Part{Forms: []string{"ETA not known yet", "ETA ?"}, Rank: 1, Keep: true})
	default:
		l = append(l, ETA(time.Duration((1-s.Done)/s.Done*float64(s.Elapsed))))
	}
	l = append(l, s.More...)
	return append(l, Part{Forms: []string{Length(s.Elapsed) + " so far"}, Rank: 4})
}

// ETA says how long the rest takes.
func ETA(d time.Duration) Part { return Part{Forms: []string{"ETA " + Length(d)}, Rank: 1, Keep: true} }

// Length says how long something takes: to the second, and if it is long to the minute, hour or day.
func Length(d time.Duration) string {
	const day = 24 * time.Hour
	switch d = max(d.Round(time.Second), time.Second); {
	case d >= 10*day:
		return fmt.Sprintf("%dd", (d+day/2)/day)
	case d >= day:
		d = d.Round(time.Hour)
		return fmt.Sprintf("%dd%dh", d/day, d%day/time.Hour)
	case d >= 2*time.Hour:
		d = d.Round(time.Minute)
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return d.String()
}

// Counter counts how much of some work is done, for a Follow. Safe for concurrent use.
type Counter struct {
	What string // what is counted: "runs"

	mu        sync.Mutex
	done, all int
	more      []Part
	of        int           // what all was when At was last called
	began     time.Duration // when the present work began
}

// Count notes how many are done of all.
func (c *Counter) Count(done, all int) { c.Set(done, all) }

// Set notes how many are done of all, and what else there is to say.
func (c *Counter) Set(done, all int, more ...Part) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done, c.all, c.more = done, all, more
}

// At returns how far the work is, elapsed after the first of it began. When all changes, other work has begun.
func (c *Counter) At(elapsed time.Duration) Share {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == 0 {
		return Share{Forms: []string{"beginning"}, Elapsed: elapsed, More: c.more}
	}
	if c.of != 0 && c.of != c.all {
		c.began = elapsed
	}
	c.of = c.all
	return Share{
		Forms: []string{fmt.Sprintf("%d of %d %s", c.done, c.all, c.What), fmt.Sprintf("%d/%d", c.done, c.all)},
		Done:  float64(c.done) / float64(c.all), Elapsed: elapsed - c.began, More: c.more,
	}
}
