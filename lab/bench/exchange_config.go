package bench

import (
	"cmp"
	"fmt"
	"time"

	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/ratetest/latency"
)

// Exchange describes the exchange that the clients of the table send to, and how long their
// requests are of use. All fields but Latency may be zero; that is the exchange on which the
// published clients were measured, and it bans keys.
type Exchange struct {
	Latency latency.Law // each way: before the server's check, and after it
	// Keys is how many keys there are. Each has a limit of Limit requests per Window. If zero, 5, 20 and 1 s.
	Keys   int
	Limit  int
	Window time.Duration
	// TTL is how long a request is worth sending. If zero, 1 s.
	TTL time.Duration
	// Retries is how often a failed request is tried again by the clients that do so a number of
	// times. If zero, as often as each does by itself: 5 times as published, 4 times by ours;
	// negative: never.
	Retries int
	// BanAfter is how many refusals ban a key. If zero, 10; negative: none is banned.
	BanAfter int
}

func (e Exchange) filled() Exchange {
	e.Keys = cmp.Or(e.Keys, 5)
	e.Limit = cmp.Or(e.Limit, 20)
	e.Window = cmp.Or(e.Window, time.Second)
	e.TTL = cmp.Or(e.TTL, time.Second)
	e.BanAfter = cmp.Or(e.BanAfter, 10)
	return e
}

func (e Exchange) rule() rule.ExchangeConfig {
	return rule.ExchangeConfig{Keys: e.Keys, Limit: e.Limit, Window: e.Window, BanAfter: e.BanAfter}
}

// Check returns an error if a field has an impossible value.
func (e Exchange) Check() error {
	e = e.filled()
	if e.TTL < 0 {
		return fmt.Errorf("a TTL of %v is not positive", e.TTL)
	}
	if e.Keys < 0 || e.Limit < 0 || e.Keys > mostSlots || e.Limit > mostSlots || e.Keys*e.Limit > mostSlots {
		return fmt.Errorf("%d keys with %d requests each: want 1 of each at least, and %d in all at most", e.Keys, e.Limit,
			mostSlots)
	}
	if e.Window < time.Millisecond || e.Window > time.Hour {
		return fmt.Errorf("a window of %v is not from 1ms to 1h", e.Window)
	}
	_, err := rule.NewExchange(e.rule())
	return err
}

// mostSlots bounds the memory of a run: an exchange and its clients hold some 100 bytes per key and slot.
const mostSlots = 1_000_000

// attempts returns how often a queue tries a request. own is how often it does so if Retries does not say.
func (e Exchange) attempts(own int) int {
	if e.Retries == 0 {
		return own
	}
	return 1 + max(e.Retries, 0)
}

// String describes it in a line.
func (e Exchange) String() string {
	e = e.filled()
	ban := "no ban"
	if e.BanAfter > 0 {
		ban = fmt.Sprintf("banned at refusal %d", e.BanAfter)
	}
	return fmt.Sprintf("%d keys × %d per %v (refused when now − t[k−%d] ≤ %d ms, %s), latency %v each way, TTL %v, "+
		"timeout %v",
		e.Keys, e.Limit, e.Window, e.Limit, e.Window.Milliseconds(), ban, e.Latency, e.TTL, timeout)
}
