package nodesim

import (
	"math/rand/v2"

	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// Alone simulates one process with the plain limiter that has all the demand, on the same path:
// what is reached at best.
func Alone(c Config) *Report {
	w := &world{Config: c, rng: rand.New(rand.NewPCG(c.Seed, 18)), server: map[limit.Unit]rule.Server{}}
	w.server = c.Server()
	if w.Cost == nil {
		w.Cost = func(*rand.Rand) limit.Cost { return limit.One }
	}
	l, head, wake, number := c.Limit(), w.Cost(w.rng), mono.Max, uint64(0)
	now := func() mono.Time { return Base.Add(w.now().Sub(0)) }
	var serve func()
	serve = func() {
		at := l.Ready(now(), head)
		for ; at <= now(); at = l.Ready(now(), head) {
			number++
			sent := &limit.Sent{At: now(), Number: number, Cost: head}
			l.Admit(sent)
			w.after(w.Way(w.rng), func() {
				if !w.arrive(sent.Cost) {
					w.report.Refused++
				}
				if w.now() >= mono.Time(w.Warm) {
					w.report.Sent++
					plus(&w.report.Units, &sent.Cost)
				}
				w.after(w.Way(w.rng), func() {
					l.Settle(now(), sent, &limit.Outcome{Result: limit.Accepted})
					serve()
				})
			})
			head = w.Cost(w.rng)
		}
		if at < limit.AfterSettle && at < wake {
			wake = at
			w.after(at.Sub(now()), func() {
				wake = mono.Max
				serve()
			})
		}
	}
	serve()
	end := mono.Time(0).Add(c.Length)
	for f, ok := w.loop.Next(end); ok; f, ok = w.loop.Next(end) {
		f()
	}
	w.report.Rate = float64(w.report.Sent) / (c.Length - c.Warm).Seconds()
	return &w.report
}
