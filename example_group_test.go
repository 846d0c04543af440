package paceline_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
)

// At most one goroutine waits; a further one is refused at once. A cost above the limit never goes.
func ExampleNewGateWith() {
	gate, err := paceline.NewGateWith(paceline.GateConfig{
		Limiter: limit.MustRolling(1, time.Hour), MaxWaiting: 1, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	permit, _ := gate.Wait(ctx, limit.One)
	waits := make(chan error)
	go func() {
		_, err := gate.Wait(ctx, limit.One)
		waits <- err
	}()
	for gate.Stats().Waiting == 0 { // until the goroutine has come
		runtime.Gosched()
	}

	_, err = gate.Wait(ctx, limit.One)
	fmt.Println(errors.Is(err, paceline.ErrFull))
	_, err = gate.Wait(ctx, limit.Cost{limit.Requests: 2})
	fmt.Println(errors.Is(err, paceline.ErrNever))
	cancel()
	fmt.Println(errors.Is(<-waits, context.Canceled))
	permit.Settle(limit.Outcome{Result: limit.Accepted})
	// Output:
	// true
	// true
	// true
}

// Two customers share a limit, one with twice the weight. Each has lanes of its own, and a View shows
// one customer alone.
func ExampleClass() {
	group, err := paceline.NewGroup(paceline.GroupConfig{MaxWaiting: 1000})
	if err != nil {
		fmt.Println(err)
		return
	}
	account := group.Limit(paceline.LimitConfig{Limiter: limit.MustRolling(500, time.Minute), Fair: true})
	gold := group.Class(paceline.ClassConfig{Weight: 2})
	view := group.View()
	chat := group.Lane(paceline.LaneConfig{Share: gold, View: view, Client: "gold"}, []*paceline.Limit{account})
	group.Lane(paceline.LaneConfig{Client: "plain"}, []*paceline.Limit{account})

	// The request came with a queue from elsewhere, and waits no longer than a second.
	turn := paceline.Turn{Came: time.Now(), MaxWait: time.Second}
	permit, stats, err := chat.WaitTurn(context.Background(), limit.One, turn)
	if err != nil {
		fmt.Println(err)
		return
	}
	permit.Settle(limit.Outcome{Result: limit.Accepted})
	var held []paceline.LimitWait = stats.Limits // what it waited for
	fmt.Println(len(held), gold.Waiting())
	for _, c := range view.Snapshot().Clients {
		fmt.Println(c.Name, c.Sent)
	}
	// Output:
	// 0 0
	// gold 1
}
