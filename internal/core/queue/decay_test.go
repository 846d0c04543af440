package queue_test

import (
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/queue"
	"github.com/paceline-go/paceline/limit/mono"
)

// The request with the greatest value goes, at whatever instant that is asked, also among retries.
// The value is computed anew for each, by the formula of the documentation times Decay.
func TestTheMostValuableGoesFirst(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 0))
		decay := time.Duration(1 + rng.IntN(300))
		q := newQueue(t, queue.Config{Decay: decay, HeadStart: time.Hour, MaxAttempts: 3, KeepDead: -1})
		type waiting struct {
			ticket queue.Ticket
			queue.Request
			created mono.Time
			seq     int
		}
		var line []waiting
		now := mono.Time(0)
		value := func(w waiting) *big.Int {
			v := new(big.Int).Mul(big.NewInt(int64(w.Priority)), big.NewInt(int64(decay)))
			return v.Sub(v, big.NewInt(int64(now.Sub(w.created))))
		}
		for seq := range 600 {
			now = now.Add(time.Duration(rng.IntN(50)))
			for range rng.IntN(3) {
				w := waiting{Request: queue.Request{Priority: rng.IntN(7) - 3}, created: now, seq: seq}
				switch rng.IntN(4) {
				case 0: // it was made before
					w.created = now.Add(-time.Duration(rng.IntN(1000)))
					w.Created = w.created
				case 1: // a clock that is ahead gains nothing
					w.Created = now.Add(time.Duration(1 + rng.IntN(1000)))
				}
				var err error
				if w.ticket, err = q.Submit(now, w.Request); err != nil {
					t.Fatal(err)
				}
				line = append(line, w)
			}
			head, _, ok := q.Head(now)
			if ok != (len(line) > 0) {
				t.Fatalf("seed %d: a request is ready: %v, of %d", seed, ok, len(line))
			}
			if !ok {
				continue
			}
			best := slices.MaxFunc(line, func(a, b waiting) int {
				if c := value(a).Cmp(value(b)); c != 0 {
					return c
				}
				return b.seq - a.seq
			})
			i := slices.IndexFunc(line, func(w waiting) bool { return w.ticket == head })
			if value(line[i]).Cmp(value(best)) != 0 || line[i].seq != best.seq {
				t.Fatalf("seed %d at %v: %+v goes before %+v", seed, now, line[i], best)
			}
			q.Take(now, head)
			if rng.IntN(3) == 0 && q.Info(head).Attempts < 3 {
				q.Retry(now, head, now, "again")
				continue
			}
			q.Done(now, head)
			line = slices.Delete(line, i, i+1)
		}
	}
}

// A sum that is too large does not wrap round: the most valuable still goes first.
func TestDecayOfALifetime(t *testing.T) {
	q := newQueue(t, queue.Config{Decay: 1 << 62})
	var all []queue.Ticket
	for _, priority := range []int{-1 << 60, 0, 1 << 60} {
		ticket, err := q.Submit(5, queue.Request{Priority: priority, Created: 3})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, ticket)
	}
	for _, want := range []queue.Ticket{all[2], all[1], all[0]} {
		head, _, _ := q.Head(5)
		if head != want {
			t.Fatalf("%v goes first of %v", head, all)
		}
		q.Take(5, head)
		q.Done(5, head)
	}
}

func TestDecayRefused(t *testing.T) {
	for want, c := range map[string]queue.Config{
		"queue: Decay -1s is negative":     {Decay: -time.Second},
		"queue: Decay 1s with RetriesLast": {Decay: time.Second, RetriesLast: true},
	} {
		if _, err := queue.New(c); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
