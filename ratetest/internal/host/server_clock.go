package host

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Clock is the clock of a server: the real one, one of another speed, or a virtual one.
type Clock struct {
	base    time.Time
	scale   float64
	virtual *virtualClock // nil: none
}

// ClockConfig describes a Clock.
type ClockConfig struct {
	// Scale is the speed relative to the real clock. If zero, 1. At most 1000.
	Scale float64
	// Clients is the number of clients of a virtual clock. If zero, the clock is not virtual.
	Clients int
	// Latency reports that requests take time, as they cannot by a virtual clock.
	Latency bool
}

func wrong(field, format string, values ...any) error {
	return fmt.Errorf("%s "+format, append([]any{field}, values...)...)
}

// NewClock returns a clock that starts now. A virtual one starts at 1970-01-01 00:00 UTC, so that
// its reading is the Unix time of answers. The error names the field and value.
func NewClock(c ClockConfig) (*Clock, error) {
	scale := cmp.Or(c.Scale, 1)
	switch {
	case !(scale > 0 && scale <= 1000):
		return nil, wrong("Scale", "%v is not above 0 and at most 1000", scale)
	case c.Clients < 0 || c.Clients > MostClients:
		return nil, wrong("VirtualClients", "%d is not from 0 to %d", c.Clients, MostClients)
	case c.Clients > 0 && scale != 1:
		return nil, wrong("Scale", "%v: a virtual clock has no speed", scale)
	case c.Clients > 0 && c.Latency:
		return nil, wrong("Before, After:", "by a virtual clock, clients sleep for the latency")
	case c.Clients > 0:
		return &Clock{base: time.Unix(0, 0), scale: 1, virtual: newVirtualClock(c.Clients)}, nil
	}
	return &Clock{base: time.Now(), scale: scale}, nil
}

// Base returns the instant at which the clock started.
func (c *Clock) Base() time.Time { return c.base }

// Elapsed returns the time since the start, by this clock.
func (c *Clock) Elapsed() time.Duration {
	if c.virtual != nil {
		return c.virtual.now()
	}
	if c.scale == 1 {
		return time.Since(c.base) // exact, as a float64 is not after months
	}
	return time.Duration(float64(time.Since(c.base)) * c.scale)
}

// Real returns how long d by this clock is in real time.
func (c *Clock) Real(d time.Duration) time.Duration { return time.Duration(float64(d) / c.scale) }

// Answers reports whether the request is one to a virtual clock. If true, it has been answered.
func (c *Clock) Answers(w http.ResponseWriter, r *http.Request) bool {
	if c.virtual == nil || !strings.HasPrefix(r.URL.Path, ClockPath) {
		return false
	}
	c.virtual.ServeHTTP(w, r)
	return true
}

// close ends all sleeps. c may be nil.
func (c *Clock) close() {
	if c != nil && c.virtual != nil {
		c.virtual.stop(errors.New("the server is closing"))
	}
}
