package limit

import (
	"fmt"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// Keeper is a Limiter whose memory can be written down and read back, in another process too: package share keeps limits that many
// machines have in common so. Rolling, Calendar, Anchored, Bucket, Weighted, Produced and Cooldown are; All, Named and Fitted are if what
// they contain is: ask Keeps.
type Keeper interface {
	Limiter

	// AppendState appends to b what is remembered of settled requests, and what SetLimit, SetWindow, SetBurst and Extend have changed. Open
	// leases are not in it; nor is what a Fitted learned, which Lessons tell. Instants are on the driver's scale. It changes nothing. It
	// panics if Keeps has an error.
	AppendState(b []byte) []byte

	// Restore reads that into a Limiter that was just made with the same configuration. What is still open is admitted before, at the
	// instants at which it was, in their order: afterwards no Admit counts as earlier than the last change. Then every method says, to
	// the nanosecond, what that of the first limiter does. The error says where the state is damaged, or of something else; after it
	// this limiter is not to be used.
	Restore(state []byte) error

	// Configuration says in a line how it is configured now: "Rolling: 20 requests per 1s, margin 1.2ms". Limiters that are configured
	// alike say the same, and others something else.
	Configuration() string

	// Span is how long a settled request counts at most after the upper bound of its arrival, as it is configured now. A pause that a
	// server asked for may be longer.
	Span() time.Duration
}

// Keeps says whether the state of l, with everything in it, can be written down: nil, or an error that names what cannot. A OneWayMax and a
// LearnLead rest on round trips that one process has measured, and are not kept.
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

// AsKeeper returns l as a Keeper. ok is false if something in l cannot be kept: Keeps has the reason.
func AsKeeper(l Limiter) (k Keeper, ok bool) {
	k, ok = l.(Keeper)
	return k, ok && Keeps(l) == nil
}

// mustKeep panics where Keeps has an error, which is to be asked before.
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

// restored is the state that keep wrote, read and not yet put to use.
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
