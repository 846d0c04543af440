package limit

import (
	"fmt"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// Keeper is a Limiter whose memory can be written and read back, also in another process. Package
// share keeps the limits of several machines so. Rolling, Calendar, Anchored, Bucket, Weighted,
// Produced and Cooldown are Keepers. All, Named and Fitted are if their parts are: Keeps reports
// it.
type Keeper interface {
	Limiter

	// AppendState appends to b the memory of settled requests, and the changes by SetLimit,
	// SetWindow, SetBurst and Extend. It leaves out open requests and the knowledge of a Fitted (see
	// Lessons). Instants are on the driver's scale. It changes nothing. It panics if Keeps has an
	// error.
	AppendState(b []byte) []byte

	// Restore reads that state into a new Limiter with the same configuration. The caller first
	// admits the open requests, at their instants and in their order. After Restore, no Admit
	// counts as earlier than the last change. Then every method answers as that of the first
	// limiter, to the nanosecond.
	//
	// The error names the place of the damage, or says that the state is of something else. After
	// an error, do not use this limiter.
	Restore(state []byte) error

	// Configuration returns the present configuration as a line: "Rolling: 20 requests per 1s,
	// margin 1.2ms". Limiters with equal configurations return equal lines, and others return other
	// lines.
	Configuration() string

	// Span is how long a settled request counts at most after the upper bound of its arrival, by
	// the present configuration. A pause that a server asked for may be longer.
	Span() time.Duration
}

// Keeps reports whether the state of l, with everything in it, can be written. It returns nil, or
// an error that names the part that cannot. OneWayMax and LearnLead rest on round trips that one
// process measured, so their state is not kept.
func Keeps(l Limiter) error {
	var err error
	visit(l, nil, func(l Limiter, _ *string) bool {
		if err != nil {
			return true
		}
		k, special := l.(interface{ keeps() error })
		_, is := l.(wrapper)
		_, ok := l.(Keeper)
		switch {
		case special:
			err = k.keeps()
		case !ok:
			err = fmt.Errorf("limit: the state of a %T cannot be kept", l)
		default:
			return !is
		}
		return true
	})
	return err
}

// AsKeeper returns l as a Keeper. ok is false if a part of l cannot be kept. Keeps has the reason.
func AsKeeper(l Limiter) (k Keeper, ok bool) {
	k, ok = l.(Keeper)
	return k, ok && Keeps(l) == nil
}

// mustKeep panics if Keeps has an error. The caller has to check Keeps first.
func mustKeep(l Limiter) {
	if err := Keeps(l); err != nil {
		panic(err.Error())
	}
}

func configuration(l Limiter) string {
	if k, ok := l.(Keeper); ok {
		return k.Configuration()
	}
	return fmt.Sprintf("%T", l)
}

// restored is a state that was read and is not yet in use.
type restored struct {
	last   mono.Time
	limit  int64
	window int64
}

func span(l Limiter) time.Duration {
	if k, ok := l.(Keeper); ok {
		return k.Span()
	}
	return 0
}
