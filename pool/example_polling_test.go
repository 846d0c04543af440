package pool_test

import (
	"context"
	"fmt"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/pool"
)

// Prices are asked every 30 ms, within a limit. A symbol whose turn of the round before still waits is skipped: the
// queue has each ID once, so Submit refuses it. The TTL drops what is no longer of use. In a program the interval is
// some seconds.
func ExamplePool_polling() {
	const every, rounds = 30 * time.Millisecond, 3
	symbols := []string{"BTC", "ETH", "SOL"}
	asked := map[string]int{}
	p, err := pool.New(pool.Config{
		Keys: []pool.Key{{Name: "mine", Limiter: limit.MustRolling(100, time.Second)}},
		Send: func(_ context.Context, a pool.Attempt) pool.Answer {
			return pool.Answer{Outcome: limit.Outcome{Result: limit.Accepted}}
		},
		Ended: func(e pool.Ended) { asked[e.Request.ID]++ },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	go func() {
		defer p.Close()
		turns := time.NewTicker(every)
		defer turns.Stop()
		for range rounds {
			for _, s := range symbols {
				_ = p.TrySubmit(pool.Request{ID: s, Cost: limit.One, TTL: every})
			}
			<-turns.C
		}
	}()
	fmt.Println(p.Run(context.Background()))
	for _, s := range symbols { // a turn is skipped if the machine is busy
		fmt.Println(s, asked[s] >= 1 && asked[s] <= rounds)
	}
	// Output:
	// <nil>
	// BTC true
	// ETH true
	// SOL true
}
