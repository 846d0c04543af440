package nodesim_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/golden"
	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/lab/nodesim"
)

// Machines of two versions share one store while a fleet is updated: so a node is to do what it did, on good days and bad ones. Whoever
// changes how a limit is divided writes the file anew, reads what became of each world, and thinks of who does it the old way beside it.
func TestNodesDoWhatTheyDid(t *testing.T) {
	race.Without(t) // one goroutine races with nobody
	if runtime.GOARCH != "amd64" {
		t.Skip("elsewhere a product and a sum may be rounded once")
	}
	slow := func(rng *rand.Rand) time.Duration { return time.Duration(100+rng.IntN(400)) * ms }
	var b strings.Builder
	for _, w := range []struct {
		name   string
		kind   kind
		change func(c *nodesim.Config)
	}{
		{"one", rolling(20, time.Second), func(c *nodesim.Config) { c.Nodes = 1 }},
		{"nine", rolling(20, time.Second), func(c *nodesim.Config) { c.Nodes = 9 }},
		{"three of a window of 30 s", rolling(90, 30*time.Second), func(c *nodesim.Config) { c.Length *= 2 }},
		{"three by the clock", calendar(60, 3*time.Second), func(*nodesim.Config) {}},
		{"three of a bucket", bucket(30, 12, time.Second), func(*nodesim.Config) {}},
		{"three of a weighted window", weighted(40, 2*time.Second), func(*nodesim.Config) {}},
		{"three that count tokens", tokens(10 * time.Second), func(*nodesim.Config) {}},
		{"two of three want any", rolling(40, time.Second), func(c *nodesim.Config) { c.Only = 2 }},
		{"few requests come", rolling(40, time.Second), func(c *nodesim.Config) { c.Demand, c.Rate = 0, 3 }},
		{"forty at a busy store", rolling(80, time.Second), func(c *nodesim.Config) { c.Nodes, c.Work, c.Length = 40, near, c.Length/3 }},
		{"a far store", rolling(40, time.Second), func(c *nodesim.Config) { c.StoreWay = slow }},
		{"a slow server, and a slow store", rolling(40, time.Second), func(c *nodesim.Config) { c.Way, c.Work = slow, near }},
		{"nodes are killed", rolling(40, time.Second), func(c *nodesim.Config) { c.Kill, c.Length = 7*time.Second, 2*c.Length }},
		{"nodes pause, and the store is away", bucket(30, 12, time.Second), func(c *nodesim.Config) {
			c.Pause, c.Outage, c.Short, c.Length = 9*time.Second, 8*time.Second, true, 2*c.Length
		}},
		{"answers are lost, and clocks are set", calendar(60, 3*time.Second), func(c *nodesim.Config) {
			c.Lose, c.Set, c.Length = 0.05, 15*time.Second, 2*c.Length
		}},
		{"the store forgets, and requests come and go", weighted(40, 2*time.Second), func(c *nodesim.Config) {
			c.Forget, c.OnOff, c.Stall, c.Length = 20*time.Second, 4*time.Second, 0.01, 2*c.Length
		}},
	} {
		c := base(w.kind, 3, 11)
		c.Length, c.Demand = 60*time.Second, 50
		w.change(&c)
		r := nodesim.Run(c)
		fmt.Fprintf(&b, "\n%s, %s\n  %d sent, %d refused, %d unsent, of each %v, units %v\n", w.name, w.kind.name, r.Sent, r.Refused, r.Unsent, r.ByNode, r.Units)
		fmt.Fprintf(&b, "  %d turns, %d lost, first after %v and %v, a blob of %d, %d answers told by %d\n", r.Turns, r.Lost, r.First, r.Firsts, r.BlobBytes, r.Answered, r.Told)
		waits := time.Duration(0)
		for _, d := range r.Waits {
			waits += d
		}
		fmt.Fprintf(&b, "  %d waited for %v in all\n", len(r.Waits), waits)
		for _, e := range slices.Sorted(maps.Keys(r.Errors)) {
			fmt.Fprintf(&b, "  %d times: %s\n", r.Errors[e], e)
		}
	}
	golden.Compare(t, "nodes.golden", b.String())
}
