// Command pacing sends to a server without latency, in real time and one request after the other,
// as fast as a limit allows, and prints how much of the limit was used, the most in any window, and
// how late requests went.
//
// The requests of the first window are spread evenly, by this program if a limiter does not do that
// itself. So each later request has to wait, and no two wait for the same instant. "Used" is the
// time that the limit demands divided by the time that it took: from request N on, the requests of
// k windows in k windows are 100 %. A window can hold too many if requests before and after a late
// one are less than a window apart. "Late" is the time from the instant that the limiter named
// until its call returned; the limiter of uber names no instant.
package main

import (
	"context"
	"flag"
	"fmt"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	uber "go.uber.org/ratelimit"
	"golang.org/x/time/rate"
)

var long = flag.Duration("for", 6*time.Second, "how long for each row")

// sender sends one request: it waits, calls send, and returns the instant that it waited for, or 0 if it is not known.
type sender func(send func()) (due time.Duration)

type contender struct {
	name    string
	spreads bool
	make    func(base time.Time, n int, window time.Duration) sender
}

// due notes the instant to which the limiter has put off the request that it admits next.
type due struct {
	limit.Limiter
	at mono.Time
}

func (d *due) Ready(now mono.Time, cost limit.Cost) mono.Time {
	at := d.Limiter.Ready(now, cost)
	if at > now {
		d.at = at
	}
	return at
}

func gate(precise bool) func(time.Time, int, time.Duration) sender {
	return func(base time.Time, n int, window time.Duration) sender {
		// A nanosecond, for windows are closed; the server's clock is ours.
		r, err := limit.NewRolling(limit.RollingConfig{Limit: int64(n), Window: window, Margin: 1})
		if err != nil {
			panic(err)
		}
		d := &due{Limiter: r}
		g, err := paceline.NewGateWith(paceline.GateConfig{Limiter: d, Precise: precise})
		if err != nil {
			panic(err)
		}
		var epoch time.Duration // of the Gate, on our scale
		g.Update(func(now mono.Time) { epoch = time.Since(base) - time.Duration(now) })
		ctx := context.Background()
		return func(send func()) time.Duration {
			d.at = 0
			p, err := g.Wait(ctx, limit.One)
			if err != nil {
				panic(err)
			}
			send()
			at := d.at
			p.Settle(limit.Outcome{Result: limit.Accepted})
			if at == 0 {
				return 0
			}
			return epoch + time.Duration(at)
		}
	}
}

var contenders = []contender{
	{"Gate, plain sleep", false, gate(false)},
	{"Gate, precise wait", false, gate(true)},
	{"x/time/rate, burst 1", true, func(base time.Time, n int, window time.Duration) sender {
		l := rate.NewLimiter(rate.Every(window/time.Duration(n)), 1)
		return func(send func()) time.Duration {
			r := l.Reserve()
			d := r.Delay() // Wait does the same, but does not tell for how long
			at := time.Since(base) + d
			time.Sleep(d)
			send()
			if d == 0 {
				return 0
			}
			return at
		}
	}},
	{"uber, without slack", true, func(base time.Time, n int, window time.Duration) sender {
		l := uber.New(n, uber.Per(window), uber.WithoutSlack)
		return func(send func()) time.Duration {
			l.Take()
			send()
			return 0
		}
	}},
	{"uber", true, func(base time.Time, n int, window time.Duration) sender {
		l := uber.New(n, uber.Per(window))
		return func(send func()) time.Duration {
			l.Take()
			send()
			return 0
		}
	}},
}

func main() {
	flag.Parse()
	fmt.Printf("%d cores, Go %s, %v each\n", runtime.GOMAXPROCS(0), runtime.Version()[2:], *long)
	fmt.Printf(row, "limit", "", "used %", "most in a window", "windows over", "late p50 µs", "p99 µs", "max µs", "CPU %")
	for _, l := range []struct {
		n      int
		window time.Duration
	}{{20, 100 * time.Millisecond}, {100, time.Second}, {1000, time.Second}} {
		for _, c := range contenders {
			run(c, l.n, l.window)
		}
	}
}

// row is printed as soon as it is known.
const row = "%10s  %-20s  %8s  %16s  %12s  %11s  %8s  %9s  %5s\n"

func run(c contender, n int, window time.Duration) {
	base := time.Now()
	var went, late []time.Duration
	send := c.make(base, n, window)
	before := cpu()
	for {
		at := send(func() { went = append(went, time.Since(base)) })
		now := went[len(went)-1]
		if at > 0 && len(went) > n {
			late = append(late, now-at)
		}
		if now-went[0] > *long+window && len(went)%n == 1 {
			break
		}
		if !c.spreads && len(went) < n {
			time.Sleep(time.Duration(len(went))*window/time.Duration(n) - (now - went[0]))
		}
	}
	spent := cpu() - before
	worst, over := 0, 0
	oldest := 0
	for i, t := range went {
		for t-went[oldest] > window {
			oldest++
		}
		in := i - oldest + 1
		worst = max(worst, in)
		if in > n {
			over++
		}
	}
	last := len(went) - 1
	used := float64((last-n)/n) * float64(window) / float64(went[last]-went[n])
	micros := func(q float64) string {
		if len(late) == 0 {
			return "-"
		}
		slices.Sort(late)
		return fmt.Sprintf("%.2f", float64(late[int(q*float64(len(late)-1))])/1e3)
	}
	fmt.Printf(row, fmt.Sprintf("%d/%v", n, window), c.name, fmt.Sprintf("%.4f", 100*used),
		fmt.Sprintf("%d of %d", worst, n),
		fmt.Sprint(over), micros(0.5), micros(0.99), micros(1),
		fmt.Sprintf("%.0f", 100*float64(spent)/float64(time.Since(base))))
}

func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
