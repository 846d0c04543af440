package sharestore

import (
	"fmt"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// Part returns a function that makes the limits of made as far as they are used, for other users of the
// quota: so much of each number, and of what a bucket holds, rounded down. A limit.Headroom does so for
// one process, and lets a cost that is larger than the part go when all is free. Here it never fits,
// since no process sees that all is free. A use of 0 or 1 is all. It must have no error of CheckPart.
func Part(made func() limit.Limiter, use float64) func() limit.Limiter {
	if use == 0 || use == 1 {
		return made
	}
	return func() limit.Limiter {
		l := made()
		if err := shrink(l, use); err != nil {
			panic("sharestore: " + err.Error()) // CheckPart has found it
		}
		return l
	}
}

// Rising returns a function that makes the limits of made with a ramp, in the store: it begins with the first
// grant, and after a rest of all processes. A ramp of 0 is none.
func Rising(made func() limit.Limiter, ramp time.Duration) func() limit.Limiter {
	if ramp == 0 {
		return made
	}
	return func() limit.Limiter {
		l := made()
		if l == nil {
			return nil
		}
		return &rising{l, ramp}
	}
}

// rising is limits of which those that are shared rise.
type rising struct {
	limit.Limiter
	ramp time.Duration
}

// Unwrap shows the limits in it.
func (r *rising) Unwrap() []limit.Limiter { return []limit.Limiter{r.Limiter} }

// shared returns the shared limits of windows in l as one.
func shared(l limit.Limiter) limit.Limiter {
	d, _ := divided(l) // it was divided before
	one := together(d.windows)
	if r, ok := l.(*rising); ok {
		h, err := limit.NewHeadroom(limit.HeadroomConfig{Limiter: one, Ramp: r.ramp})
		if err != nil {
			panic("sharestore: " + err.Error()) // a ramp is not negative: the command line has checked it
		}
		return h
	}
	return one
}

// CheckPart returns why no such part of the limits in l can be used; nil: it can.
func CheckPart(l limit.Limiter, use float64) error {
	if use == 0 || use == 1 {
		return nil
	}
	return shrink(l, use)
}

// shrink makes the limits in l, which is new, smaller.
func shrink(l limit.Limiter, use float64) error {
	for _, part := range limit.Parts(l) {
		sized, is := part.(interface {
			SetLimit(now mono.Time, n int64) error
		})
		if _, own := part.(*limit.Concurrency); !is || own { // requests in flight are bounded as a whole
			continue
		}
		u := limit.AppendUsage(nil, part, mono.Min)[0]
		n := usedOf(u.PerWindow, use)
		if n == 0 {
			return fmt.Errorf("%g %% of %d per %v is less than 1", use*100, u.PerWindow, u.Window)
		}
		err := sized.SetLimit(mono.Min, n)
		if b, is := part.(*limit.Bucket); is && err == nil {
			err = b.SetBurst(mono.Min, max(usedOf(u.Allowed, use), 1))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// usedOf returns a part of a number, rounded down.
func usedOf(n int64, use float64) int64 { return int64(float64(n) * use * (1 + 1e-12)) }
