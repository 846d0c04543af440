package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/paceline-go/paceline/internal/app/screen"
)

// Every is how often a computing verb prints its progress where no line can be rewritten.
const Every = 5 * time.Second

// Computing shows on w how far a computing verb is, until stop is called. If the verb takes more than a second, a
// terminal shows one line that is rewritten; elsewhere a line is printed every five seconds.
func Computing(w io.Writer, what string) (c *screen.Counter, stop func()) {
	c = &screen.Counter{What: what}
	return c, Following(screen.New(w, screen.Config{Every: Every, After: time.Second}), c.At)
}

// Following shows on s how far work that begins now has come, until stop is called.
func Following(s *screen.Screen, at func(elapsed time.Duration) screen.Share) (stop func()) {
	began := time.Now()
	return s.Follow(func() []screen.Line { return []screen.Line{at(time.Since(began)).Line()} })
}

// OfTime is the progress of work that lasts for all and has come to at, both by the work's own clock. elapsed is by the
// wall clock.
func OfTime(at, all, elapsed time.Duration) screen.Share {
	at = min(at, all)
	return screen.Share{
		Forms: []string{
			fmt.Sprintf("%s of %s", screen.Length(at), screen.Length(all)),
			fmt.Sprintf("%s/%s", screen.Length(at), screen.Length(all)),
		},
		Done: float64(at) / float64(all), Elapsed: elapsed,
	}
}
