package transport

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/observe"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/tokens"
)

// Stats counts what a Transport has done.
type Stats struct {
	Attempts   int64 // attempts that the Base got
	Resent     int64 // of those, not the first of their request
	Refused    int64 // answers that refused because of a limit
	Pauses     int64 // pauses begun by refusals: one for all requests in flight at the time
	Hedged     int64 // of the Attempts, copies of slow ones: see Hedge
	HedgesWon  int64 // of those, answered first
	Partitions int   // combinations of host, key, model and route that are at hand now
}

// Stats returns the counts so far.
func (t *Transport) Stats() Stats {
	t.mu.Lock()
	n := len(t.leaves)
	t.mu.Unlock()
	s := Stats{Attempts: t.attempts.Load(), Resent: t.resent.Load(), Refused: t.refused.Load(), Pauses: t.pauses.Load(),
		Partitions: n}
	s.Hedged, s.HedgesWon = t.hedges.counts()
	return s
}

// Ask returns the instant at which a request could go if it came now, and how many requests of its
// partition wait. The instant is not later than the true one, if those before it stay. The zero
// Time: at once, or unknown. The cost is one request and the result of Config.Cost; the body is not
// read. The error is an *Error: the request never fits, or no request may wait now.
func (t *Transport) Ask(r *http.Request) (at time.Time, ahead int, err error) {
	if r.URL == nil {
		return time.Time{}, 0, errNoURL
	}
	c := call{t: t, req: r, priced: priced{cost: limit.One}}
	defer c.leave()
	p, said := c.partition()
	if err := c.place(p, said, tokens.Body{}); err != nil {
		return time.Time{}, 0, err
	}
	if err := c.leaf.look(); err != nil {
		return err.Ready, 0, err
	}
	at, ahead, err = c.leaf.lane.Ask(c.cost)
	if err != nil {
		e := c.leaf.node(err).refuse(err, c.cost)
		e.Client = c.leaf.partition.Client
		err = e
	}
	return at, ahead, err
}

// PartitionStats are the counts of one partition.
type PartitionStats struct {
	Partition Partition // all fields of a request
	observe.Stats
	// Most is how many requests may be in flight to the host and model now, with Config.Adaptive.
	// If 0, there is no bound.
	Most int64
	// Pauses keep the partition's requests away now: pauses of its route, model, key and host.
	Pauses []Pause
}

// Pause is the pause of one partition.
type Pause struct {
	// Partition is what the pause concerns, with its Scope set. Lift accepts it.
	Partition Partition
	Since     time.Time
	Until     time.Time
	Next      time.Time        // when a request may go: Until, or earlier to find out whether the pause still holds
	Refusal   provider.Refusal // the reason
	// Down means that nothing reaches the host. Until is then unknown.
	Down bool
	Err  error // the last error, if the host is down
}

// Partitions returns the state of all remembered partitions, in the order of their names, each as
// of one instant.
func (t *Transport) Partitions() []PartitionStats {
	t.mu.Lock()
	leaves := make([]*leaf, 0, len(t.leaves))
	for _, l := range t.leaves {
		l.active.Add(1) // to prevent that it is forgotten meanwhile
		leaves = append(leaves, l)
	}
	t.mu.Unlock()
	all := make([]PartitionStats, len(leaves))
	for i, l := range leaves {
		all[i] = PartitionStats{Partition: l.partition, Stats: l.lane.Stats(), Most: t.most(l), Pauses: t.pausesOf(l)}
		l.release()
	}
	slices.SortFunc(all, func(a, b PartitionStats) int { return cmp.Compare(a.Partition.String(), b.Partition.String()) })
	return all
}

func (t *Transport) pausesOf(l *leaf) (all []Pause) {
	t.group.Update(func(now mono.Time) {
		for n := range l.distinct {
			if p, on := n.stack.Paused(now); on {
				all = append(all, Pause{Partition: *n.in(), Since: t.group.Time(p.Since), Until: t.group.Time(p.Until),
					Next: t.group.Time(p.Next), Refusal: n.refusal})
			}
			if n.health == nil {
				continue
			}
			if s := n.health.State(now); s.Down {
				all = append(all, Pause{Partition: *n.in(), Since: t.group.Time(s.Since), Next: t.group.Time(s.Next),
					Down: true, Err: n.cause})
			}
		}
	})
	return all
}

// Lift ends the pause of a partition, named as in Partitions, with its Scope set. It is for a
// caller that knows better than the server's last answer. It reports whether there was a pause. A
// request in flight may begin another.
func (t *Transport) Lift(p Partition) (lifted bool) {
	t.mu.Lock()
	n := t.nodes[p]
	if n == nil {
		lifted = t.cold.lift(t, p, t.made)
	}
	t.mu.Unlock()
	if p.Scope == ScopeClient {
		n, lifted = t.clients.lift(t, p)
	}
	if n == nil {
		return lifted
	}
	t.group.Update(func(now mono.Time) {
		_, lifted = n.stack.Paused(now)
		n.stack.Lift(now)
		n.shutIf(false)
	}, n.limit)
	return lifted
}
