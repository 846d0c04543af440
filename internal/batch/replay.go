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

// newPool replays the history into the limiters: a window that the process before filled still counts.
func (r *Run) newPool() error {
	index := map[string]int{}
	keys := make([]dispatch.Key, len(r.c.Keys))
	for i, k := range r.c.Keys {
		index[k.Name] = i
		keys[i] = dispatch.Key{Name: k.Name, Limiter: r.fitted[i], Gap: r.c.Gap}
		if r.numbered {
			keys[i].Nonce = &dispatch.NonceConfig{Unit: r.c.NonceUnit, After: r.store.history.Nonces[k.Name]}
		}
	}
	r.replay(index)
	r.recall()
	onExpiry := queue.End
	if r.c.Renew {
		onExpiry = queue.Retry
	}
	var err error
	r.pool, err = paceline.NewPool(paceline.PoolConfig{
		Keys: keys, Send: r.send, EndedAll: r.ended, InFlight: r.c.Concurrency, Backoff: r.c.Backoff, Log: r.c.Log, Epoch: r.epoch,
		Queue:     queue.Config{MaxLen: r.c.Queue, MaxAttempts: r.c.Attempts, KeepDead: -1, Host: goesTo, OnExpiry: onExpiry},
		MaxOutage: r.c.MaxOutage, Outage: r.outage, Learned: r.learned,
	})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	r.pool.Update(func(now mono.Time, _ *queue.Queue, d *dispatch.Dispatcher) {
		for name, until := range r.store.history.Holds {
			if i, ours := index[name]; ours && until > r.epoch.UnixNano() {
				d.Hold(now, i, mono.Time(until-r.epoch.UnixNano()))
			}
		}
	})
	return nil
}

// replay has the limiters know what was sent before, by the index of each key.
func (r *Run) replay(index map[string]int) {
	// Of a bucket it is not known what it held when the history begins: at least nothing. The history is long enough for
	// it to have filled since, unless it was used.
	for i := range r.limiters {
		for n, l := range r.limiters[i] {
			if rate := r.c.Limits[n]; rate.Bucket && r.store.history.Last > 0 {
				at := mono.Time(-r.keep)
				var all limit.Cost
				all[rate.Unit] = rate.most()
				l.Settle(at, l.Admit(at, all), limit.Outcome{Result: limit.Failed, Metered: true, Actual: all})
			}
		}
	}
	underway := make([][]int64, len(r.limiters)) // what may still arrive, of each key and limit
	for i := range underway {
		underway[i] = make([]int64, len(r.c.Limits))
	}
	for _, s := range r.store.history.Sends {
		i, ours := index[s.Key]
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
		r.fitted[i].Count(min(counts, 0), s.Cost, o)
		for n, l := range r.limiters[i] {
			cost := s.Cost
			if rate := r.c.Limits[n]; rate.Bucket && !rate.Produced {
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
	r.rooms = make([]int64, len(r.c.Limits))
	for n, rate := range r.c.Limits {
		for i := range r.limiters {
			if rate.Bucket {
				r.rooms[n] += rate.room(r.limiters[i][n], 0)
			}
		}
	}
}
