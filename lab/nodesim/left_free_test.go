package nodesim_test

import (
	"slices"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/lab/nodesim"
	"github.com/paceline-go/paceline/limit"
)

// beside is a batch in some processes that always has more, and leaves a quarter of the limit free. In the
// other processes people send so many requests a second together. If that is 0, they always have more, too.
func beside(k kind, batch, people int, perSecond float64) nodesim.Config {
	c := base(k, batch+people, 34)
	c.Leaves = make([]float64, batch+people)
	for i := range batch {
		c.Leaves[i] = 0.25
	}
	c.Demand, c.Rate, c.Rested = 50, perSecond/float64(people), true
	c.Length, c.Warm = 120*time.Second, 20*time.Second
	return c
}

func quantile(waits []time.Duration, part float64) time.Duration {
	slices.Sort(waits)
	return waits[int(part*float64(len(waits)-1))]
}

// sumOf returns how many requests a second some nodes sent.
func sumOf(c *nodesim.Config, byNode []float64) (n float64) {
	for _, sent := range byNode {
		n += sent
	}
	return n / (c.Length - c.Warm).Seconds()
}

// People in some processes wait for nothing while a batch in others takes all that it may. (What a bucket
// refills evenly is the batch's, if people do not use it.)
func TestReserveOverAStore(t *testing.T) {
	for _, w := range []struct {
		kind          kind
		batch, people int
		perSecond     float64
	}{
		{rolling(20, time.Second), 1, 1, 2},
		{rolling(20, time.Second), 3, 1, 2},
		{rolling(100, time.Second), 2, 3, 10},
		{rolling(600, 10*time.Second), 2, 2, 6},
		{bucket(100, 50, time.Second), 2, 2, 10},
	} {
		c := beside(w.kind, w.batch, w.people, w.perSecond)
		r := nodesim.Run(c)
		batch, people := sumOf(&c, r.ByNode[:w.batch]), sumOf(&c, r.ByNode[w.batch:])
		rest := 0.75*w.kind.full - people
		t.Logf("%-24s %d and %d: people %.2f/s wait %v, %v at 95 %%, %v at most", w.kind.name, w.batch, w.people, people,
			quantile(r.Waits, 0.5), quantile(r.Waits, 0.95), quantile(r.Waits, 1))
		t.Logf("  batch %.2f/s, %.3f of the rest; %.1f turns/s", batch, batch/rest,
			float64(r.Turns)/(c.Length-c.Warm).Seconds())
		half, late := quantile(r.Waits, 0.5), quantile(r.Waits, 0.95)
		if half > 0 || late > 50*ms || batch < 0.95*rest || r.Refused > 0 {
			t.Errorf("%s: people wait %v, %v at 95 %%; batch %.2f/s of %.2f; %d refused", w.kind.name, half, late, batch,
				rest, r.Refused)
		}
	}
}

// Where people want more than all, a reserve takes nothing from anybody: all have what they have without it.
func TestReserveOverAStoreWhereAllWantMore(t *testing.T) {
	with := beside(rolling(100, time.Second), 2, 2, 0)
	with.Leaves[0], with.Leaves[1] = 0.7, 0.7 // more than people hold unsent
	without := with
	without.Leaves = nil
	a, b := nodesim.Run(with), nodesim.Run(without)
	for i := range a.ByNode {
		if was := b.ByNode[i]; a.ByNode[i] < 0.95*was || a.ByNode[i] > 1.05*was {
			t.Errorf("node %d sends %.0f with a reserve, and %.0f without", i, a.ByNode[i], was)
		}
	}
	t.Log(a.ByNode, b.ByNode)
}

// All leave a quarter free: then no window has more than three quarters.
func TestReserveOfAllOverAStore(t *testing.T) {
	c := beside(rolling(100, time.Second), 3, 0, 0)
	c.Server = rolling(75, time.Second).server
	r := nodesim.Run(c)
	if sent := sumOf(&c, r.ByNode); r.Refused > 0 || sent < 0.95*75 {
		t.Errorf("%.1f/s, and %d refused by a server of 75", sent, r.Refused)
	}
}

// The limit holds with a reserve as without, whatever befalls nodes and the store.
func TestReserveOverAStoreInTrouble(t *testing.T) {
	for seed := range need.Fewer[uint64](1, 2) {
		for _, k := range []kind{rolling(40, time.Second), bucket(30, 12, time.Second), weighted(40, 2*time.Second)} {
			for name, trouble := range map[string]nodesim.Trouble{
				"kills":   {Kill: 5 * time.Second, Pause: 9 * time.Second},
				"outages": {Outage: 8 * time.Second, Lose: 0.05, Set: 15 * time.Second},
				"losses":  {Forget: 20 * time.Second, Kill: 9 * time.Second, Stall: 0.01},
			} {
				c := beside(k, 2, 2, 8)
				c.Seed, c.Trouble, c.Length = 100+seed, trouble, 80*time.Second
				if r := nodesim.Run(c); r.Refused > 0 || r.Sent == 0 {
					t.Errorf("%s, %s, seed %d: %d sent, %d refused at %v", k.name, name, seed, r.Sent, r.Refused,
						r.Refusals)
				}
			}
		}
	}
}

// rising is a kind with a ramp of a minute.
func rising(k kind) kind {
	plain := k.limit
	k.limit = func() limit.Limiter {
		return must(limit.NewHeadroom(limit.HeadroomConfig{Limiter: plain(), Ramp: time.Minute}))
	}
	return k
}

// The load of all processes together rises within a minute of the first grant. A process that comes later,
// or takes the place of one that was killed, begins no ramp.
func TestRampOverAStore(t *testing.T) {
	kinds := []kind{rolling(100, time.Second), bucket(100, 50, time.Second), weighted(100, time.Second)}
	for _, k := range need.Fewer(kinds[:1], kinds) {
		for name, change := range map[string]func(c *nodesim.Config){
			"one comes later": func(c *nodesim.Config) { c.Later, c.LaterAt = 1, 45*time.Second },
			"kills":           func(c *nodesim.Config) { c.Kill = 10 * time.Second },
		} {
			c := base(rising(k), 4, 34)
			c.Demand, c.Rested, c.Length = 100, true, 100*time.Second
			change(&c)
			r := nodesim.Run(c)
			sent, most := 0, 0.0
			for i, n := range r.Seconds[:60] {
				sent, most = sent+n, most+k.full*float64(i+1)/60+1
				if float64(sent) > most {
					t.Fatalf("%s, %s: %d until second %d, want %.0f at most: %v", k.name, name, sent, i, most, r.Seconds)
				}
			}
			after := 0
			for _, n := range r.Seconds[60:100] {
				after += n
			}
			t.Logf("%s, %s: %d while it rises, of %.0f; then %.1f/s", k.name, name, sent, 30*k.full, float64(after)/40)
			least := 0.9
			if c.Kill > 0 {
				least = 0.6 // what a node held is given up after 7 s
			}
			if float64(sent) < least*30*k.full || float64(after) < least*40*k.full || r.Refused > 0 {
				t.Errorf("%s, %s: %d while it rises, then %d, %d refused", k.name, name, sent, after, r.Refused)
			}
		}
	}
}
