package batch

import (
	"fmt"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/dispatch"
	"github.com/paceline-go/paceline/internal/journal"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/mono"
	"github.com/paceline-go/paceline/queue"
)

// newPools makes the groups, each with a Pool.
func (r *Run) newPools() error {
	if err := r.divide(); err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	for _, g := range r.groups {
		if err := g.newPool(); err != nil {
			return err
		}
	}
	return nil
}

// newPool replays the history into the limiters: a window that the process before filled still counts.
func (g *group) newPool() error {
	r := g.r
	keys := make([]dispatch.Key, len(r.c.Keys))
	for i, k := range r.c.Keys {
		keys[i] = dispatch.Key{Name: k.Name, Limiter: g.fitted[i], Gap: r.c.Gap, Slow: len(g.limits) == 0}
		if len(keys) > 1 {
			keys[i].Trial = trialPatience
		}
		if r.numbered {
			keys[i].Nonce = &dispatch.NonceConfig{Unit: r.c.NonceUnit, After: r.store.history.Nonces[k.Name]}
		}
	}
	g.replay()
	g.recall()
	onExpiry := queue.End
	if r.c.Renew {
		onExpiry = queue.Retry
	}
	var err error
	g.pool, err = paceline.NewPool(paceline.PoolConfig{
		Keys: keys, Send: g.send, EndedAll: r.ended, InFlight: r.c.Concurrency, Backoff: r.c.Backoff, Log: r.c.Log, Epoch: r.epoch,
		Queue:     queue.Config{MaxLen: r.c.Queue, MaxAttempts: r.c.Attempts, KeepDead: -1, Host: goesTo, OnExpiry: onExpiry},
		MaxOutage: r.c.MaxOutage, Outage: r.outage, Learned: g.learned,
	})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	g.pool.Update(func(now mono.Time, _ *queue.Queue, d *dispatch.Dispatcher) {
		for name, until := range r.store.history.Holds {
			if i, ours := g.key(name); ours && until > r.epoch.UnixNano() {
				r.tellHold(g.called(i), time.Unix(0, until), "by an answer to the run before")
				d.Hold(now, i, mono.Time(until-r.epoch.UnixNano()))
			}
		}
	})
	return nil
}

// replay has the limiters know what was sent before.
func (g *group) replay() {
	r := g.r
	g.rooms = make([]int64, len(g.limits))
	if r.c.Strangers != nil {
		return
	}
	// Of a bucket it is not known what it held when the history begins: at least nothing. The history is long enough for
	// it to have filled since, unless it was used.
	for i := range g.limiters {
		for n, l := range g.limiters[i] {
			if rate := g.limits[n]; rate.Bucket && r.store.history.Last > 0 {
				at := mono.Time(-r.keep)
				var all limit.Cost
				all[rate.Unit] = rate.most()
				l.Settle(at, l.Admit(at, all), limit.Outcome{Result: limit.Failed, Metered: true, Actual: all})
			}
		}
	}
	underway := make([][]int64, len(g.limiters)) // what may still arrive, of each key and limit
	for i := range underway {
		underway[i] = make([]int64, len(g.limits))
	}
	for _, s := range r.store.history.Sends {
		i, ours := g.key(s.Key)
		// Not after the epoch even if the clock was set back since: that would only count longer.
		counts := mono.Time(min(s.Counts-r.epoch.UnixNano(), int64(journal.Late+r.c.Timeout)))
		if !ours || counts < mono.Time(-r.keep) {
			continue // no limit of this run reaches so far back
		}
		o := limit.Outcome{Result: s.Result}
		if counts > 0 {
			o = limit.Outcome{Result: limit.Unknown, ArrivedAgo: -time.Duration(counts)}
		} else if s.Result == limit.Unknown {
			o.Result = limit.Failed // counts is its bound already
		}
		g.fitted[i].Count(min(counts, 0), s.Cost, o)
		for n, l := range g.limiters[i] {
			cost := s.Cost
			if rate := g.limits[n]; rate.Bucket && !rate.Produced {
				// A bucket that let it go was not below empty then. Ours could be, and for hours, where its limit was higher
				// in the run before.
				if w := &cost[rate.Unit]; counts > 0 {
					*w = min(*w, max(rate.most()+int64(rate.perSecond()*time.Duration(counts).Seconds())-underway[i][n], 0))
					underway[i][n] += *w
				} else if *w > 0 && l.Ready(counts, cost) > counts {
					*w = min(*w, rate.room(l, counts))
				}
			}
			o.Metered, o.Actual = true, cost // a limit that goes by the age of requests sees none
			l.Settle(min(counts, 0), l.Admit(min(counts, 0), cost), o)
		}
	}
	for n, rate := range g.limits {
		for i := range g.limiters {
			if rate.Bucket {
				g.rooms[n] += rate.room(g.limiters[i][n], 0)
			}
		}
	}
}
