package dispatch_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/dispatch"
	"github.com/paceline-go/paceline/internal/core/queue"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/pool/backoff"
)

// If no answer takes as long as AnswerTime, none comes late, whatever is submitted, retried, held or
// killed. Of those with less than AnswerTime in all, one at a time goes to each host. None is left
// behind.
func TestNoAnswerIsLate(t *testing.T) {
	const takes = 300 * ms
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 7))
		q, err := queue.New(queue.Config{Host: initial, OnExpiry: queue.OnExpiry(seed % 2), MaxAttempts: 3})
		if err != nil {
			t.Fatal(err)
		}
		ended := 0
		d, err := dispatch.New(dispatch.Config{
			Queue: q, Backoff: backoff.Policy{}, Rand: rng, AnswerTime: takes,
			Keys:  []dispatch.Key{{Name: "a", Gap: 20 * ms}, {Name: "b", Limiter: perSecond(5), Pause: -1}},
			Ended: func(queue.Ended) { ended++ },
		})
		if err != nil {
			t.Fatal(err)
		}
		type flight struct {
			dispatch.Attempt
			due   time.Duration // its deadline
			back  time.Duration
			alone bool
		}
		var open []flight
		made, sent, lone := 0, 0, 0
		for now := time.Duration(0); now < 20*time.Second || q.Counts().Waiting+q.Counts().InFlight > 0; now += 5 * ms {
			if now > time.Hour {
				t.Fatalf("seed %d: %+v are left, %d in flight", seed, q.Counts(), len(open))
			}
			if now < 15*time.Second && rng.IntN(5) == 0 {
				r := queue.Request{ID: fmt.Sprint([]string{"x", "y"}[rng.IntN(2)], made), Cost: limit.One, Priority: rng.IntN(2)}
				r.TTL = []time.Duration{0, time.Second, 2 * time.Second, 200 * ms, takes, takes + 1}[rng.IntN(6)]
				if ticket, err := q.Submit(at(now), r); err != nil {
					t.Fatal(err)
				} else if made++; rng.IntN(30) == 0 && q.Cancel(at(now), ticket) {
					ended++
				}
			}
			for i := 0; i < len(open); i++ {
				if f := open[i]; f.back <= now {
					open = slices.Delete(open, i, i+1)
					i--
					ans := accepted
					if rng.IntN(4) == 0 {
						ans = dispatch.Answer{Outcome: limit.Outcome{Result: limit.Failed}}
					}
					if e := d.Done(at(now), f.Attempt, ans); e.Late && !f.alone {
						t.Fatalf("seed %d: %s is late at %v", seed, e.Request.ID, now)
					}
				}
			}
			for {
				a, _, ok := d.Next(at(now))
				if !ok {
					break
				}
				sent++
				info := q.Info(a.Ticket)
				f := flight{a, time.Duration(info.Deadline), now + time.Duration(rng.Int64N(int64(takes-10*ms))), a.Request.TTL > 0 && a.Request.TTL <= takes}
				if f.alone {
					lone++
					if slices.ContainsFunc(open, func(o flight) bool { return o.alone && o.Host() == f.Host() }) {
						t.Fatalf("seed %d: at %v two go alone to %s", seed, now, f.Host())
					}
				} else if f.due <= now+takes {
					t.Fatalf("seed %d: at %v %s is sent with %v left", seed, now, a.Request.ID, f.due-now)
				}
				open = append(open, f)
			}
		}
		if c := q.Counts(); ended != made || c.Check() != nil || sent < 50 || lone == 0 {
			t.Errorf("seed %d: %d of %d ended, %d sent, %d alone: %+v", seed, ended, made, sent, lone, c)
		}
	}
}

// A head that waits for its limit ends at the last moment at which it could be answered. Then the
// next may go that costs less.
func TestNextWakesWhenTheHeadIsTooLate(t *testing.T) {
	r := newRig(t, queue.Config{}, dispatch.Key{Name: "a", Limiter: perSecond(3)})
	var err error
	r.Dispatcher, err = dispatch.New(dispatch.Config{
		Queue: r.queue, Keys: []dispatch.Key{{Name: "a", Limiter: perSecond(3)}}, AnswerTime: 100 * ms,
		Ended: func(e queue.Ended) { r.ended = append(r.ended, e.Request.ID+" "+e.State.String()+" "+e.Reason) },
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range []queue.Request{
		{ID: "1", Cost: limit.One}, {ID: "dear", Cost: limit.Cost{limit.Requests: 3}, TTL: 500 * ms}, {ID: "2", Cost: limit.One},
	} {
		if _, err := r.queue.Submit(0, one); err != nil {
			t.Fatal(err)
		}
	}
	as := r.sends(0, at(400*ms), "1/1 on 0")
	r.done(50*ms, as[0], accepted)
	r.sends(50*ms, at(400*ms))
	r.sends(400*ms, limit.AfterSettle, "2/1 on 0")
	r.has("1 done ", "dear expired 100ms are left, and answers take 100ms")
}
