package limit_test

import (
	"fmt"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// number counts the requests of these examples. Each driver has a count of its own.
var number uint64

// send admits a request at now. The driver keeps its record until the answer.
func send(l limit.Limiter, now time.Duration, cost limit.Cost) *limit.Sent {
	number++
	sent := &limit.Sent{At: mono.Time(now), Number: number, Cost: cost}
	l.Admit(sent)
	return sent
}

// answered sends a request at now. Its answer is read took later.
func answered(l limit.Limiter, now, took time.Duration, cost limit.Cost) {
	sent := send(l, now, cost)
	l.Settle(mono.Time(now+took), sent, &limit.Outcome{Result: limit.Accepted, RTT: took})
}

// ready returns when one more request may go, as of now.
func ready(l limit.Limiter, now time.Duration, cost limit.Cost) string {
	switch t := l.Ready(mono.Time(now), cost); t {
	case limit.AfterSettle:
		return "after an answer"
	case limit.Never:
		return "never"
	default:
		return t.String()
	}
}

// The server takes 2 requests in any second. The second of a request begins when its answer was
// read.
func ExampleRolling() {
	l := limit.MustRolling(2, time.Second)
	answered(l, 0, 30*time.Millisecond, limit.One)
	open := send(l, 100*time.Millisecond, limit.One)
	fmt.Println(ready(l, 100*time.Millisecond, limit.One))
	l.Settle(mono.Time(140*time.Millisecond), open, &limit.Outcome{Result: limit.Accepted})
	fmt.Println(ready(l, 140*time.Millisecond, limit.One))
	// Output:
	// 1.0312s
	// 1.0312s
}

// 2 requests per minute of the clock. The next minute has its own, however late the requests of
// this one went.
func ExampleCalendar() {
	epoch := time.Date(2026, 3, 1, 12, 0, 40, 0, time.UTC) // the driver's instant 0
	l, err := limit.NewCalendar(limit.CalendarConfig{
		Limit: 2, Window: time.Minute,
		Phase: mono.Of(epoch, epoch.Truncate(time.Minute)), // minutes begin with those of the clock
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	answered(l, 18*time.Second, 30*time.Millisecond, limit.One)
	answered(l, 19*time.Second, 30*time.Millisecond, limit.One)
	fmt.Println(ready(l, 19100*time.Millisecond, limit.One)) // 50 ms of Skew after 12:01
	// Output: 20.05s
}

// 2 messages per interval. An interval begins with the first message after the last interval. At
// its end all are free at once.
func ExampleAnchored() {
	l, err := limit.NewAnchored(limit.AnchoredConfig{Limit: 2, Window: time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}
	answered(l, 0, 30*time.Millisecond, limit.One)
	answered(l, 900*time.Millisecond, 30*time.Millisecond, limit.One)
	fmt.Println(ready(l, 950*time.Millisecond, limit.Cost{limit.Requests: 2}))
	// Output: 1.0312s
}

// nginx with rate=10r/s burst=4: five at once, then one each 100 ms.
func ExampleBucket() {
	l, err := limit.NewBucket(limit.BucketConfig{Limit: 10, Window: time.Second, Burst: 5})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 5 {
		answered(l, 0, 0, limit.One)
	}
	fmt.Println(ready(l, 0, limit.One))
	fmt.Println(ready(l, 0, limit.Cost{limit.Requests: 2}))
	fmt.Println(ready(l, 0, limit.Cost{limit.Requests: 6}))
	// Output:
	// 101.120001ms
	// 201.140002ms
	// never
}

// Cloudflare's window: requests of the minute before count in proportion to the part of it that is
// still in the window.
func ExampleWeighted() {
	l, err := limit.NewWeighted(limit.WeightedConfig{Limit: 4, Window: time.Minute})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 4 {
		answered(l, 0, 0, limit.One)
	}
	fmt.Println(ready(l, time.Second, limit.One))
	fmt.Println(ready(l, time.Second, limit.Cost{limit.Requests: 4}))
	// Output:
	// 1m15.0086s
	// 2m0.0131s
}

// 8,000 tokens of output a minute, which count as the server produces them. Nothing is reserved for
// the largest answer. So a second and a third prompt of up to 4,096 go beside the first.
func ExampleProduced() {
	l, err := limit.NewProduced(limit.ProducedConfig{Limit: 8000, Window: time.Minute})
	if err != nil {
		fmt.Println(err)
		return
	}
	most := limit.Cost{limit.Output: 4096}
	for range 2 {
		send(l, 0, most)
	}
	fmt.Println(ready(l, 0, most))
	// Output: 0s
}

// 100 requests and 1,000 tokens a minute. A request must fit both limits. The answer states the
// used tokens, and these count.
func ExampleAll() {
	tokens, err := limit.NewRolling(limit.RollingConfig{Limit: 1000, Window: time.Minute, Unit: limit.Tokens})
	if err != nil {
		fmt.Println(err)
		return
	}
	l := limit.NewAll(limit.MustRolling(100, time.Minute), tokens)
	prompt := limit.Cost{limit.Requests: 1, limit.Tokens: 600} // an estimate
	sent := send(l, 0, prompt)
	fmt.Println(ready(l, 0, prompt))
	l.Settle(mono.Time(2*time.Second), sent, &limit.Outcome{
		Result: limit.Accepted, Metered: true, Actual: limit.Cost{limit.Requests: 1, limit.Tokens: 250},
	})
	fmt.Println(ready(l, 2*time.Second, prompt))
	// Output:
	// after an answer
	// 2s
}

// At most 2 in flight. A request of unknown outcome may still be in progress.
func ExampleConcurrency() {
	l, err := limit.NewConcurrency(limit.ConcurrencyConfig{Limit: 2, Late: 3 * time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}
	send(l, 0, limit.One)
	second := send(l, 0, limit.One)
	fmt.Println(ready(l, 0, limit.One))
	l.Settle(mono.Time(time.Second), second, &limit.Outcome{}) // it timed out
	fmt.Println(ready(l, time.Second, limit.One))
	// Output:
	// after an answer
	// 4s
}

// No two sends within 100 ms.
func ExampleSpacing() {
	l, err := limit.NewSpacing(100 * time.Millisecond)
	if err != nil {
		fmt.Println(err)
		return
	}
	send(l, 30*time.Millisecond, limit.One)
	fmt.Println(ready(l, 50*time.Millisecond, limit.One))
	// Output: 130ms
}

// Nonces must rise on arrival, and the latency varies by less than 20 ms. Then the next may go
// 20 ms after the last, answered or not.
func ExampleSequence() {
	l, err := limit.NewSequence(limit.SequenceConfig{Gap: 20 * time.Millisecond})
	if err != nil {
		fmt.Println(err)
		return
	}
	sent := send(l, 0, limit.One)
	fmt.Println(ready(l, 0, limit.One))
	l.Settle(mono.Time(25*time.Millisecond), sent, &limit.Outcome{Result: limit.Failed, Misordered: true})
	send(l, 25*time.Millisecond, limit.One)
	fmt.Println(ready(l, 25*time.Millisecond, limit.One)) // the path is not as said: after the answer, or in ten minutes
	// Output:
	// 20ms
	// 10m0.025s
}

// A refusal with a pause, and one without.
func ExampleCooldown() {
	pause, err := limit.NewCooldown(5 * time.Second)
	if err != nil {
		fmt.Println(err)
		return
	}
	l := limit.NewAll(limit.MustRolling(20, time.Second), pause)
	sent := send(l, 0, limit.One)
	l.Settle(0, sent, &limit.Outcome{Result: limit.Limited, RetryAfter: 2 * time.Second})
	fmt.Println(ready(l, 0, limit.One))
	sent = send(l, 2*time.Second, limit.One)
	l.Settle(mono.Time(2*time.Second), sent, &limit.Outcome{Result: limit.Limited})
	fmt.Println(ready(l, 2*time.Second, limit.One))
	// Output:
	// 2s
	// 7s
}

// The capacity of the server is not known. While answers stay quick, more requests may be in
// flight. After refusals for overload, fewer may.
func ExampleAdaptive() {
	l, err := limit.NewAdaptive(limit.AdaptiveConfig{Initial: 4})
	if err != nil {
		fmt.Println(err)
		return
	}
	now := time.Duration(0)
	round := func(o limit.Outcome) (sent int) { // sends as many as may go, and has all answered in 20 ms
		var open []*limit.Sent
		for l.Ready(mono.Time(now), limit.One) <= mono.Time(now) {
			open = append(open, send(l, now, limit.One))
		}
		now += 20 * time.Millisecond
		o.RTT = 20 * time.Millisecond
		for _, one := range open {
			l.Settle(mono.Time(now), one, &o)
		}
		return len(open)
	}
	for range 4 {
		fmt.Println(round(limit.Outcome{Result: limit.Accepted}))
	}
	round(limit.Outcome{Result: limit.Limited, Overloaded: true}) // of 64
	fmt.Println(round(limit.Outcome{Result: limit.Accepted}))
	// Output:
	// 4
	// 8
	// 16
	// 32
	// 54
}

// A program that leaves a quarter of the limit to others who use the same key.
func ExampleNewHeadroom() {
	l, err := limit.NewHeadroom(limit.HeadroomConfig{Limiter: limit.MustRolling(4, time.Second), Use: 0.75})
	if err != nil {
		panic(err)
	}
	n := 0
	for ; l.Ready(0, limit.One) == 0; n++ {
		l.Admit(&limit.Sent{Number: uint64(n), Cost: limit.One})
	}
	fmt.Println(n, "go at once")
	// Output: 3 go at once
}
