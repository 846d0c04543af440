package dispatch_test

import (
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/dispatch"
	"github.com/paceline-go/paceline/internal/core/queue"
	"github.com/paceline-go/paceline/internal/testkit/golden"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// history is what a Dispatcher does with keys of every kind, in words.
type history struct {
	*rig
	rng    *rand.Rand
	now    time.Duration
	shared []*dispatch.Shared
	open   []dispatch.Attempt
	trace  strings.Builder
	seen   int // of ended
}

func newHistory(t *testing.T, seed uint64) *history {
	h := &history{rng: rand.New(rand.NewPCG(seed, 4))}
	keys := make([]dispatch.Key, 1+h.rng.IntN(4))
	for range 1 + h.rng.IntN(3) {
		h.shared = append(h.shared, &dispatch.Shared{Limiter: perSecond(int64(2 + h.rng.IntN(4)))})
	}
	together := h.rng.IntN(2) == 0
	for i := range keys {
		k := &keys[i]
		k.Name = fmt.Sprint(i)
		if k.InFlight = h.rng.IntN(3); h.rng.IntN(4) == 0 {
			k.Nonce = &dispatch.NonceConfig{}
		}
		if together {
			k.Shared = append(k.Shared, h.shared[:1+h.rng.IntN(len(h.shared))]...)
		} else {
			k.Limiter = perSecond(int64(1 + h.rng.IntN(4)))
		}
	}
	if !together {
		h.shared = nil
	}
	h.rig = newRig(t, queue.Config{MaxAttempts: 4, MaxLen: 1000}, keys...)
	return h
}

// answer is a random answer. Each key denies everything now and then, and some requests are denied
// by all keys.
func (h *history) answer(a *dispatch.Attempt) dispatch.Answer {
	id := 0
	fmt.Sscan(a.Request.ID, &id)
	if id%5 == 0 || (h.now/(20*time.Second)+time.Duration(a.Key))%3 == 0 && h.rng.IntN(8) > 0 {
		return dispatch.Answer{Outcome: limit.Outcome{Result: limit.Failed}, Invalid: h.rng.IntN(9) > 0, Denied: true}
	}
	switch h.rng.IntN(40) {
	case 0:
		return dispatch.Answer{Banned: true, Reason: "401"}
	case 1, 2:
		return dispatch.Answer{Outcome: limit.Outcome{Result: limit.Limited, RetryAfter: time.Duration(h.rng.IntN(2)) * time.Second}}
	case 3, 4:
		return dispatch.Answer{Outcome: limit.Outcome{Result: limit.Failed, Misordered: true}}
	case 5:
		return dispatch.Answer{Outcome: limit.Outcome{Result: limit.Unknown}}
	case 6:
		return dispatch.Answer{Outcome: limit.Outcome{Result: limit.Unsent}, Returned: true}
	case 7:
		return dispatch.Answer{Invalid: true}
	}
	return accepted
}

func (h *history) step() {
	h.now += time.Duration(h.rng.IntN(3)/2*h.rng.IntN(2500)) * ms
	k := h.rng.IntN(len(h.Dispatcher.KeyInfos(at(h.now))))
	switch n := h.rng.IntN(30); {
	case n == 0 && h.rng.IntN(3) == 0:
		h.Ban(k, "by hand")
	case n < 3:
		h.Resume(k)
	case n == 3:
		h.Lift(at(h.now), k)
	case n == 4 && len(h.shared) > 0:
		var with []*dispatch.Shared
		for _, i := range h.rng.Perm(len(h.shared))[:1+h.rng.IntN(len(h.shared))] {
			with = append(with, h.shared[i])
		}
		fmt.Fprintln(&h.trace, "share", k, len(with), h.Share(at(h.now), k, with...))
	case n == 5 && len(h.open) > 0 && h.queue.Info(h.open[0].Ticket).State == queue.InFlight:
		fmt.Fprintln(&h.trace, "kill", h.queue.Kill(at(h.now), h.open[0].Ticket, "by hand").State)
	case n < 11:
		h.submit(h.now, fmt.Sprint(h.queue.Counts().Submitted))
	case len(h.open) > 0:
		i := h.rng.IntN(len(h.open))
		a := h.open[i]
		h.open = slices.Delete(h.open, i, i+1)
		ans := h.answer(&a)
		fmt.Fprintln(&h.trace, h.now, a.Request.ID, "with", a.Key, ans.Result, ans.Invalid, ans.Denied, ans.Banned)
		h.done(h.now, a, ans)
	}
	for {
		a, wake, ok := h.Next(at(h.now))
		if !ok {
			if wake != mono.Time(h.now) {
				fmt.Fprintln(&h.trace, h.now, "wake", wake)
			}
			break
		}
		fmt.Fprintln(&h.trace, h.now, "sends", a.Request.ID, a.Number, a.Key, a.Nonce)
		h.open = append(h.open, a)
	}
	fmt.Fprintln(&h.trace, h.ended[h.seen:])
	h.seen = len(h.ended)
	for _, k := range h.Dispatcher.KeyInfos(at(h.now)) {
		fmt.Fprintln(&h.trace, k.State, k.Until, k.Next, k.Reason, k.InFlight, k.Sent, k.Refusals, k.Denials, k.Nonces)
	}
	for _, s := range h.shared {
		for _, u := range s.AppendUsage(nil, at(h.now)) {
			fmt.Fprintln(&h.trace, u.Used)
		}
	}
}

// Histories were recorded before keyring decided what keys are. Every decision is as it was: which
// request goes when with which key, how it ends, which key is away or out, and how much of each
// limit is used. Only Resume forgets denials since. A line has a sum of the history after each 50
// steps.
func TestHistories(t *testing.T) {
	var all strings.Builder
	for seed := range uint64(200) {
		h := newHistory(t, seed)
		fmt.Fprint(&all, seed)
		for range 8 {
			for range 50 {
				h.step()
			}
			fmt.Fprintf(&all, " %08x", crc32.ChecksumIEEE([]byte(h.trace.String())))
		}
		c := h.queue.Counts()
		fmt.Fprintln(&all, "", c.Done, c.Dead, c.Waiting)
	}
	golden.Compare(t, "histories", all.String())
}
