package share_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/share"
	"github.com/paceline-go/paceline/share/sharetest"
)

// Two processes share one limit in a store: one has twice the weight. Here both are in one program,
// and the store is in memory; sqlite.Open, postgres.Open and redis.Open have others.
func ExampleNew() {
	own := func() limit.Limiter { return limit.MustRolling(20, time.Second) }
	fallback, err := share.ParseFallback("split") // while the store is away: its part of the limit
	if err != nil {
		fmt.Println(err)
		return
	}
	var store sharetest.Memory
	members := make([]*share.Member, 2)
	for i := range members {
		m, err := share.New(share.Config{
			Store: &store, Name: "github", Own: own, Weight: float64(1 + i), Fallback: fallback,
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		defer m.Close(context.Background())
		members[i] = m
	}
	for _, m := range members {
		fmt.Println(m.Join(context.Background())) // a Gate of m does it when somebody waits
	}
	var lister share.Lister = &store
	names, err := lister.Names(context.Background())
	fmt.Println(len(names), err)
	// Output:
	// <nil>
	// <nil>
	// 1 <nil>
}

// Whether all processes can count a limit together is known before any store is open.
func ExampleShareable() {
	steps, _ := limit.NewSequence(limit.SequenceConfig{})
	fmt.Println(share.Shareable(limit.MustRolling(20, time.Second)), share.Shareable(steps) != nil)
	// Output:
	// <nil> true
}

// loop is a driver of one's own, with one goroutine. It asks a limiter again whenever there is news.
type loop struct {
	news    chan struct{}
	limiter limit.Limiter
}

// TestDriver is a test as the author of a driver writes it. A driver of one's own calls two more
// methods of a shared limit: Supply and Fresh.
func TestDriver(t *testing.T) { synctest.Test(t, testDriver) }

func testDriver(t *testing.T) {
	var store sharetest.Memory
	m, err := share.Limiter(&store, "github", func() limit.Limiter { return limit.MustRolling(20, time.Second) })
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close(t.Context())
	d := loop{news: make(chan struct{}, 1), limiter: m}
	again := func() {
		select {
		case d.news <- struct{}{}:
		default:
		}
	}
	var members []*share.Member
	limit.Ask(d.limiter, func(m *share.Member) { // also one in an All
		m.Supply(again, func() (int, float64) { return 1, 0 }, func(kind, text string) { t.Log(kind, text) })
		members = append(members, m)
	})

	for d.limiter.Ready(0, limit.One) > 0 { // grants have to be fetched first
		<-d.news
	}
	sent := &limit.Sent{Number: 1, Cost: limit.One}
	d.limiter.Admit(sent)
	for _, m := range members { // right before the request is written
		if !m.Fresh(sent) {
			t.Error("the grant lapsed at once")
		}
	}
	d.limiter.Settle(0, sent, &limit.Outcome{Result: limit.Accepted})
}
