package paceline_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/pool/dispatch"
	"github.com/paceline-go/paceline/pool/queue"
)

// TestExampleSynctest runs the test that is an example: an example's file may have no test.
func TestExampleSynctest(t *testing.T) { testImporter(t) }

// Waits for its turn, sends, settles: on every way out, a panic included. What went wrong with the request is Do's error.
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

// Two keys, and a request that is sent again. Each request ends in exactly one state.
func ExamplePool() {
	done := 0
	pool, err := paceline.NewPool(paceline.PoolConfig{
		Keys: []dispatch.Key{
			{Name: "first", Limiter: limit.MustRolling(20, time.Second)},
			{Name: "second", Limiter: limit.MustRolling(20, time.Second)},
		},
		Send: func(_ context.Context, a dispatch.Attempt) dispatch.Answer {
			if a.Request.ID == "17" && a.Number == 1 {
				return dispatch.Answer{Outcome: limit.Outcome{Result: limit.Failed}, Reason: "500"} // again, a little later
			}
			return dispatch.Answer{Outcome: limit.Outcome{Result: limit.Accepted}}
		},
		Ended: func(e queue.Ended) {
			if done++; e.Request.ID == "17" {
				fmt.Printf("17: %v after %d attempts\n", e.State, e.Attempts)
			}
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range 30 {
		if err := pool.Submit(context.Background(), queue.Request{ID: fmt.Sprint(i), Cost: limit.One, TTL: time.Minute}); err != nil {
			fmt.Println(err)
		}
	}
	pool.Close() // no more will come: Run returns when all have ended
	fmt.Println(pool.Run(context.Background()), done)
	// Output:
	// 17: done after 2 attempts
	// <nil> 30
}
