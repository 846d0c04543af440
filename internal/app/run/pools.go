package run

import (
	"fmt"
	"time"

	"github.com/paceline-go/paceline/internal/app/journal"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/pool"
)

// newPools makes the groups, and a Pool for each of them.
func (r *Run) newPools() error {
	r.lessons.epoch, r.denials.epoch = r.epoch, r.epoch
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

// newPool makes the group's Pool. It first replays the history into the limiters, since the sends
// of an earlier process still count.
func (g *group) newPool() error {
	r := g.r
	g.apart = r.c.prices.usual(r.intake.homes) != ""
	keys := make([]pool.Key, len(r.c.Keys))
	for i, k := range r.c.Keys {
		keys[i] = pool.Key{Name: k.Name, Limiter: g.of[i].fitted, Gap: r.c.Gap, Slow: g.knowsNothing(),
			Use: r.c.Use, Ramp: r.c.Ramp}
		keys[i].Resource, keys[i].Apart = g.of[i].shared.Resource, g.apart
		if r.organizations.together || keys[i].Apart {
			keys[i].Limiter, keys[i].Resource, keys[i].Shared = nil, nil, g.shares(i)
		}
		if len(keys) > 1 {
			keys[i].Trial = trialPatience
		}
		if r.c.nonces {
			keys[i].Nonce = &pool.NonceConfig{Unit: r.c.NonceUnit, After: r.store.History.Nonces[k.Name]}
		}
	}
	for _, of := range g.allowances {
		g.replay(0, of)
		g.fills(0, of)
	}
	g.recall()
	onExpiry := pool.End
	if r.c.Renew {
		onExpiry = pool.Retry
	}
	var err error
	g.pool, err = pool.New(pool.Config{
		Keys: keys, Send: g.send, EndedAll: r.writer.ended, InFlight: r.flights.most(), Backoff: r.c.Backoff, Log: r.c.Log,
		Epoch: r.epoch,
		Queue: pool.QueueConfig{MaxLen: r.c.Queue, MaxAttempts: r.c.Attempts, KeepDead: -1, Host: goesTo,
			OnExpiry: onExpiry, Decay: r.c.Decay},
		AnswerTime: r.c.AnswerTime, Slow: r.hosts.slow, MaxOutage: r.c.MaxOutage, Outage: r.hosts.outage, Learned: g.learned,
	})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	g.pool.Update(func(now mono.Time, _ *pool.Queue, d *pool.Dispatcher) {
		for name, until := range r.store.History.Holds {
			if i, ours := g.key(name); ours && until > r.epoch.UnixNano() {
				r.TellHold(g.called(i), time.Unix(0, until), "by an answer to the run before")
				d.Hold(now, i, mono.Time(until-r.epoch.UnixNano()))
			}
		}
	})
	return nil
}

// history returns the sends of earlier runs with some keys, and since when these are known.
func (g *group) history(counts func(key int) bool) (sends []limit.Past, since mono.Time) {
	r := g.r
	for _, s := range r.store.History.Sends {
		i, ours := g.key(s.Key)
		// No request arrives later than this after the epoch. If the clock was set back, the
		// journal may have a later time.
		at := mono.Time(min(s.Counts-r.epoch.UnixNano(), int64(journal.Late+r.c.Timeout)))
		if !ours || !counts(i) || at < mono.Time(-r.keep) {
			continue // no limit of this run counts so far back
		}
		sends = append(sends, limit.Past{At: at, Cost: s.Cost, Result: s.Result,
			Sent: mono.Time(s.Sent - r.epoch.UnixNano())})
	}
	if r.store.History.Last > 0 || r.others {
		return sends, mono.Time(-r.keep)
	}
	return sends, mono.Min
}
