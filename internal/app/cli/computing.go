package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/paceline-go/paceline/internal/app/screen"
)

// Every is the interval between progress lines of a computing verb, if no line can be rewritten.
const Every = 5 * time.Second

// Computing shows the progress of a computing verb on w, until stop is called. After the first
// second a terminal shows one line that is rewritten. Elsewhere a line is printed every five
// seconds.
func Computing(w io.Writer, what string) (c *screen.Counter, stop func()) {
	c = &screen.Counter{What: what}
	return c, Following(screen.New(w, screen.Config{Every: Every, After: time.Second}), c.At)
}

// Following shows on s the progress of work that begins now, until stop is called.
func Following(s *screen.Screen, at func(elapsed time.Duration) screen.Share) (stop func()) {
	began := time.Now()
	return s.Follow(func() []screen.Line { return []screen.Line{at(time.Since(began)).Line()} })
}

// OfTime is the progress of work of length all that has reached at, both by the work's own clock.
// elapsed is by the wall clock.
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
