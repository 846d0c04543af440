package pool_test

import (
	"context"
	"fmt"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/pool"
)

// Two keys, and a request that is sent again. Each request ends in exactly one state.
func Example() {
	done := 0
	p, err := pool.New(pool.Config{
		Keys: []pool.Key{
			{Name: "first", Limiter: limit.MustRolling(20, time.Second)},
			{Name: "second", Limiter: limit.MustRolling(20, time.Second)},
		},
		Send: func(_ context.Context, a pool.Attempt) pool.Answer {
			if a.Request.ID == "17" && a.Number == 1 {
				return pool.Answer{Outcome: limit.Outcome{Result: limit.Failed}, Reason: "500"} // again, a little later
			}
			return pool.Answer{Outcome: limit.Outcome{Result: limit.Accepted}}
		},
		Ended: func(e pool.Ended) {
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
		if err := p.Submit(context.Background(), pool.Request{ID: fmt.Sprint(i), Cost: limit.One, TTL: time.Minute}); err != nil {
			fmt.Println(err)
		}
	}
	p.Close() // no more will come: Run returns when all have ended
	fmt.Println(p.Run(context.Background()), done)
	// Output:
	// 17: done after 2 attempts
	// <nil> 30
}
