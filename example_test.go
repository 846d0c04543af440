package paceline_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// send stands for the request to the server.
func send(context.Context) (limit.Outcome, error) {
	return limit.Outcome{Result: limit.Accepted}, nil
}

// The server takes 20 requests in any second and at most 4 at once. Any number of goroutines may do this.
func ExampleGate() {
	inFlight, err := limit.NewConcurrency(limit.ConcurrencyConfig{Limit: 4})
	if err != nil {
		fmt.Println(err)
		return
	}
	gate := paceline.NewGate(limit.NewAll(limit.MustRolling(20, time.Second), inFlight))

	ctx := context.Background()
	err = gate.Do(ctx, limit.One, func() error {
		_, err := send(ctx)
		return err
	})
	fmt.Println(err)
	// Output: <nil>
}

// Do waits, sends, and settles on every way out, even a panic. It returns the error of the request.
func ExampleGate_Do() {
	gate := paceline.NewGate(limit.MustRolling(20, time.Second))
	err := gate.Do(context.Background(), limit.One, func() error {
		return errors.New("connection reset") // the request, to the last byte of its answer
	})
	fmt.Println(err)
	fmt.Println(gate.Stats().Unknown) // it may have arrived, so it counts
	// Output:
	// connection reset
	// 1
}

// A function that knows how the request ended says so.
func ExampleGate_DoWith() {
	gate := paceline.NewGate(limit.MustRolling(20, time.Second))
	ctx := context.Background()
	err := gate.DoWith(ctx, limit.One, func() (limit.Outcome, error) { return send(ctx) })
	fmt.Println(err)
	// Output: <nil>
}

// Where the request is not a function, Wait returns a Permit that is to be settled on every way out.
func ExampleGate_Wait() {
	gate := paceline.NewGate(limit.MustRolling(20, time.Second))
	request := func(ctx context.Context) error {
		permit, err := gate.Wait(ctx, limit.One)
		if err != nil {
			return err
		}
		// The zero outcome, unknown, is right for every way out that does not know better.
		var outcome limit.Outcome
		defer func() { permit.Settle(outcome) }()
		outcome, err = send(ctx)
		return err
	}
	fmt.Println(request(context.Background()))
	// Output: <nil>
}

// A deadline that cannot be kept fails at once, and the error says when it could have been.
func ExampleWaitError() {
	gate := paceline.NewGate(limit.MustRolling(1, time.Hour))
	permit, _ := gate.Wait(context.Background(), limit.One)
	permit.Settle(limit.Outcome{Result: limit.Accepted})

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, err := gate.Wait(ctx, limit.One)
	var e *paceline.WaitError
	if errors.As(err, &e) && e.Reason == paceline.ErrDeadline {
		fmt.Println("try again in", time.Until(e.Ready).Round(time.Minute))
	}
	// Output: try again in 1h0m0s
}

func ExampleGate_TryWait() {
	gate := paceline.NewGate(limit.MustRolling(1, time.Hour))
	permit, _, ok := gate.TryWait(limit.One)
	fmt.Println(ok)

	_, retry, ok := gate.TryWait(limit.One)
	fmt.Println(ok, retry == paceline.RetryAfterSettle)

	permit.Settle(limit.Outcome{Result: limit.Unsent})
	_, _, ok = gate.TryWait(limit.One)
	fmt.Println(ok)
	// Output:
	// true
	// false true
	// true
}

// A process that restarts does not know what the one before sent a moment ago. Its first request waits until that is out of the window.
func ExampleGate_Update() {
	rate := limit.MustRolling(20, time.Minute)
	gate := paceline.NewGate(rate)
	gate.Update(func(now mono.Time) { limit.ReplayFull(rate, now, time.Minute) })
	_, retry, ok := gate.TryWait(limit.One)
	fmt.Println(ok, retry.Round(time.Second))
	// Output: false 1m0s
}
