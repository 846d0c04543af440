package bench

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Lateness is how late the machine woke a goroutine that slept, beside the rows of a live run. A
// client that waits for a processor sends late, and its rate says more of the machine than of it.
type Lateness struct {
	// P99 is the lateness of one sleep in a hundred, in milliseconds.
	P99 float64 `json:"p99_ms"`
	// Slow means that this is more than LiveSlack, which the paths of the rows are allowed.
	Slow bool `json:"slow"`
}

// String says what a slow machine does to the figures; empty: it is not slow.
func (l Lateness) String() string {
	if !l.Slow {
		return ""
	}
	return fmt.Sprintf("This machine was too slow: one sleep in a hundred ended %.0f ms late, and %v is what clients "+
		"allow for. "+
		"Rates are lower and refusals more than the clients' own. Run fewer rows side by side (--row), or nothing else "+
		"beside them.",
		l.P99, LiveSlack)
}

// lateBy returns the lateness that sleeps show.
func lateBy(late []time.Duration) Lateness {
	if len(late) == 0 {
		return Lateness{}
	}
	slices.Sort(late)
	p99 := late[len(late)*99/100]
	return Lateness{P99: float64(p99) / float64(time.Millisecond), Slow: p99 > LiveSlack}
}

// asleep sleeps again and again until ctx ends, and returns how late each sleep ended.
func asleep(ctx context.Context) (late []time.Duration) {
	const nap = 5 * time.Millisecond
	for ctx.Err() == nil {
		began := time.Now()
		time.Sleep(nap)
		late = append(late, time.Since(began)-nap)
	}
	return late
}
