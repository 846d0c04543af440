package limit

import (
	"fmt"
	"strings"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// Keeper is a Limiter whose memory can be written and read back, also in another process. Package
// share keeps the limits of several machines so. Rolling, Calendar, Anchored, Bucket, Weighted,
// Produced and Cooldown are Keepers. The functions AppendState and Restore do it for an All, a
// Varying, a Named, a Fitted and a Headroom, too, if their parts are Keepers: Keeps reports it.
type Keeper interface {
	Limiter

	// AppendState appends to b the memory of settled requests, and the changes by SetLimit,
	// SetWindow, SetBurst and Extend. It leaves out open requests. Instants are on the driver's
	// scale. It changes nothing. It panics if Keeps has an error.
	AppendState(b []byte) []byte

	// Restore reads that state into a new Limiter with the same configuration. The caller first
	// admits the open requests, at their instants and in their order. After Restore, no Admit
	// counts as earlier than the last change. Then every method answers as that of the first
	// limiter, to the nanosecond.
	//
	// The error names the place of the damage, or says that the state is of something else. After
	// an error, do not use this limiter.
	Restore(state []byte) error
}

// Keeps reports whether the state of l, with everything in it, can be written. It returns nil, or
// an error that names the part that cannot. OneWayMax and LearnLead rest on round trips that one
// process measured, so their state is not kept.
func Keeps(l Limiter) error {
	parts, ok := inside(l)
	if !ok {
		if k, special := l.(interface{ keeps() error }); special {
			return k.keeps()
		}
		if _, ok := l.(Keeper); !ok {
			return fmt.Errorf("limit: the state of a %T cannot be kept", l)
		}
		if w, is := l.(wrapper); is {
			parts = w.Unwrap()
		}
	}
	for _, part := range parts {
		if err := Keeps(part); err != nil {
			return err
		}
	}
	return nil
}

// inside returns the parts of a wrapper whose state is that of its parts.
func inside(l Limiter) (parts []Limiter, ok bool) {
	if f, is := l.(*Fitted); is {
		return f.made[:], true
	}
	parts, _, ok = conjunction(l)
	return parts, ok
}

// AppendState appends the state of l to b, as Keeper has it. It leaves out the knowledge of a Fitted
// (see Lessons). It panics if Keeps has an error.
func AppendState(b []byte, l Limiter) []byte {
	if err := Keeps(l); err != nil {
		panic(err.Error())
	}
	return appendState(b, l)
}

func appendState(b []byte, l Limiter) []byte {
	switch l := l.(type) {
	case *named:
		return appendState(b, l.Limiter)
	case *Fitted:
		return appendState(b, l.own)
	case *Varying:
		return l.All.appendState(b)
	case *All:
		return l.appendState(b)
	}
	return l.(Keeper).AppendState(b)
}

// Restore reads the state from AppendState into l, as Keeper has it.
func Restore(l Limiter, state []byte) error {
	if err := Keeps(l); err != nil {
		return err
	}
	switch l := l.(type) {
	case *named:
		if err := Restore(l.Limiter, state); err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
		return nil
	case *Fitted:
		return Restore(l.own, state)
	case *Varying:
		return l.All.restore(state)
	case *All:
		return l.restore(state)
	}
	return l.(Keeper).Restore(state)
}

// Configuration returns the present configuration of l as a line: "Rolling: 20 requests per 1s,
// margin 1.2ms". Keepers of this package with equal configurations have equal lines, and others have
// other lines. A Concurrency has its number. Of any other part it is the type.
func Configuration(l Limiter) string {
	switch l := l.(type) {
	case *named:
		return fmt.Sprintf("%q %s", l.name, Configuration(l.Limiter))
	case *Fitted:
		return Configuration(l.own)
	case *All, *Varying:
		var parts []string
		for _, part := range l.(wrapper).Unwrap() {
			parts = append(parts, Configuration(part))
		}
		return "All [" + strings.Join(parts, "; ") + "]"
	case *Headroom:
		return fmt.Sprintf("Headroom: use %g, ramp %v [%s]", l.use, l.ramp, Configuration(l.limiter))
	case *Rolling:
		return l.configured("Rolling") + fmt.Sprintf(", margin %v", l.span-l.window) + when(l.grain > 0, fmt.Sprintf(", grain %v", l.grain))
	case *Calendar:
		if l.zone != nil {
			return l.configured("Calendar") + fmt.Sprintf(", of the clock of %v, skew %v", l.zone.zone, l.skew)
		}
		return l.configured("Calendar") + fmt.Sprintf(", from %v, skew %v", l.begins(), l.skew)
	case *Anchored:
		return l.configured("Anchored") + fmt.Sprintf(", margin %v", l.over-l.window)
	case *Bucket:
		refill := account{unit: l.unit, limit: l.rate.limit, window: l.rate.window, arrivals: l.arrivals}
		return refill.configured("Bucket") + fmt.Sprintf(", burst %d, margin %v", l.limit, l.margin) + when(l.alone, ", alone")
	case *Weighted:
		return l.configured("Weighted") + fmt.Sprintf(", margin %v, drift %v, grain %v", l.margin, l.span-l.window, l.grain) +
			when(l.less > 0, ", rounds down")
	case *Produced:
		refill := account{unit: l.unit, limit: l.rate.limit, window: l.rate.window, arrivals: Arrivals{Late: l.late}}
		return refill.configured("Produced") +
			fmt.Sprintf(", burst %d, margin %v, %d per second, within %v", l.burst, l.margin, l.speed, l.within)
	case *Cooldown:
		return fmt.Sprintf("Cooldown: pause %v", l.pause)
	case *Concurrency:
		return fmt.Sprintf("Concurrency: %d requests at once", l.limit)
	}
	return fmt.Sprintf("%T", l)
}

func when(is bool, text string) string {
	if is {
		return text
	}
	return ""
}

// Span is how long a settled request counts at most in l after the upper bound of its arrival, by
// the present configuration. A pause that a server asked for may be longer. Parts that are no
// Keepers of this package count for 0.
func Span(l Limiter) (longest time.Duration) {
	for _, part := range Parts(l) {
		longest = max(longest, spanOf(part))
	}
	return longest
}

func spanOf(l Limiter) time.Duration {
	switch l := l.(type) {
	case *Rolling:
		return l.span + l.grain
	case *Calendar:
		if l.zone != nil {
			return l.zone.longest() + 2*l.skew
		}
		return l.window + 2*l.skew
	case *Anchored: // an interval may have begun as late as the request
		return l.over
	case *Bucket: // the time in which an empty bucket fills
		return l.times(l.limit) + l.margin
	case *Weighted:
		return 2*l.span + l.margin + l.grain
	case *Produced:
		return l.times(l.burst) + l.margin
	case *Cooldown: // after a refusal without a Retry-After
		return l.pause
	}
	return 0
}

// restored is a state that was read and is not yet in use.
type restored struct {
	last   mono.Time
	limit  int64
	window int64
}
