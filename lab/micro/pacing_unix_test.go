//go:build unix

package micro

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	uber "go.uber.org/ratelimit"
	"golang.org/x/time/rate"
)

// sender sends one request: it waits, calls send, and returns the instant that it waited for, or 0 if it is not known.
type sender func(send func()) (due time.Duration)

type pacer struct {
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

var pacers = []pacer{
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

// BenchmarkPacing sends to a server without latency, in real time and one request after the other, as fast as a limit
// allows. Run it with -benchtime 1x: each takes six seconds. It reports how much of the limit was used, how many windows
// were over it, and how late requests went.
//
// The requests of the first window are spread evenly, by the benchmark if a limiter does not do that itself. So each later
// request has to wait, and no two wait for the same instant. "Used" is the time that the limit demands divided by the
// time that it took: from request N on, the requests of k windows in k windows are 100 %. A window can hold too many if
// requests before and after a late one are less than a window apart. "Late" is the time from the instant that the
// limiter named until its call returned; the limiter of uber names no instant.
func BenchmarkPacing(b *testing.B) {
	for _, l := range []struct {
		n      int
		window time.Duration
	}{{20, 100 * time.Millisecond}, {100, time.Second}, {1000, time.Second}} {
		for _, c := range pacers {
			b.Run(fmt.Sprintf("%d per %v/%s", l.n, l.window, c.name), func(b *testing.B) {
				for b.Loop() {
					c.pace(b, l.n, l.window)
				}
			})
		}
	}
}

func (c pacer) pace(b *testing.B, n int, window time.Duration) {
	const long = 6 * time.Second
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
		if now-went[0] > long+window && len(went)%n == 1 {
			break
		}
		if !c.spreads && len(went) < n {
			time.Sleep(time.Duration(len(went))*window/time.Duration(n) - (now - went[0]))
		}
	}
	b.ReportMetric(100*float64(cpu()-before)/float64(time.Since(base)), "CPU-%")
	over, oldest := 0, 0
	for i, t := range went {
		for t-went[oldest] > window {
			oldest++
		}
		if i-oldest+1 > n {
			over++
		}
	}
	last := len(went) - 1
	b.ReportMetric(100*float64((last-n)/n)*float64(window)/float64(went[last]-went[n]), "used-%")
	b.ReportMetric(float64(over), "windows-over")
	if slices.Sort(late); len(late) > 0 {
		b.ReportMetric(float64(late[len(late)/2])/1e3, "late-p50-µs")
		b.ReportMetric(float64(late[len(late)-1])/1e3, "late-max-µs")
	}
}

func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
