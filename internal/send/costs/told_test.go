package costs_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/send/costs"
	"github.com/paceline-go/paceline/internal/testkit/golden"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/provider/classify"
)

// asked is an attempt in flight.
type asked struct {
	seen    *costs.Seen
	is      costs.Charged
	cost    limit.Cost
	key     int
	arrives int
	ends    int
	said    classify.Verdict
}

// history sends requests of three routes with two keys to a server whose routes weigh something else than is charged.
// The server states what is used of a minute, for the key or for the address. history returns all that is learned and
// said.
func history(seed uint64, atOnce int, scope provider.Scope, charged bool) (said string) {
	var n costs.Notices
	var b strings.Builder
	var open []*asked
	rng, begin := rand.New(rand.NewPCG(seed, 1)), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	routes, weights := []string{"GET /depth", "GET /ticker", "POST /order"}, []int64{5, 1, 2}
	all := []costs.Configured{
		{Scope: provider.Key, Rules: []limit.Rule{{Unit: limit.Requests, N: 600, Per: time.Minute}, {Name: "day", Unit: limit.Requests, N: 9000, Per: 24 * time.Hour}}},
		{Scope: provider.IP, Rules: []limit.Rule{{Unit: limit.Requests, N: 400, Per: time.Minute}}}}
	if charged {
		all[1].Rules = append(all[1].Rules, limit.Rule{Unit: limit.Weight, N: 1200, Per: time.Minute}, limit.Rule{Unit: limit.Weight, N: 900, Per: time.Minute})
	}
	used := map[string]int64{}
	for step := range 900 {
		for len(open) < atOnce && rng.IntN(3) == 0 {
			route, key, cost := rng.IntN(3), rng.IntN(2), limit.One
			if charged {
				cost[limit.Weight] = 1
			}
			is := costs.Charged{Host: "api.test", Route: routes[route], On: []string{"GET /*", "", "POST /order?kind=1"}[route]}
			taught, resource := n.Taught(is)
			for u := range cost {
				cost[u] = max(cost[u], taught[u])
			}
			fmt.Fprintln(&b, step, is, cost, resource, n.Reads("api.test"), n.HasTaught(), n.Lessons())
			arrives := step + rng.IntN(4)
			open = append(open, &asked{seen: n.Began("api.test", fmt.Sprint("key ", key), cost, 4), is: is, cost: cost, key: key, arrives: arrives, ends: arrives + rng.IntN(4)})
		}
		minute := step / 300
		for _, a := range open {
			if a.arrives != step {
				continue
			}
			whose := fmt.Sprint(minute)
			if scope == provider.Key {
				whose += fmt.Sprint(" key ", a.key)
			}
			used[whose] += weights[slices.Index(routes, a.is.Route)]
			a.said.Result = []limit.Result{limit.Accepted, limit.Accepted, limit.Accepted, limit.Accepted, limit.Accepted, limit.Accepted, limit.Accepted, limit.Limited}[rng.IntN(8)]
			l := provider.ServiceLimit{Policy: "1m", Unit: provider.Weight, Scope: scope, Reset: begin.Add(time.Duration(minute+1) * time.Minute), Used: provider.Count{N: used[whose], OK: true}}
			if rng.IntN(3) == 0 {
				l.Remaining = provider.Count{N: 1200 - used[whose], OK: true}
			}
			if a.said.Said.Limits = append(a.said.Said.Limits, l); rng.IntN(4) == 0 {
				a.said.Said.Limits = append(a.said.Said.Limits, provider.ServiceLimit{Unit: provider.Orders, Scope: scope, Remaining: provider.Count{N: 9000 - used[whose], OK: true}})
			}
			a.said.Said.Policies = []provider.Policy{{Name: "1m", Unit: provider.Weight, Window: time.Minute}}
		}
		open = slices.DeleteFunc(open, func(a *asked) bool {
			if a.ends > step {
				return false
			}
			if rng.IntN(12) == 0 { // its answer is lost
				n.Ends(a.seen)
				return true
			}
			fmt.Fprintln(&b, step, n.FirstUse("api.test", &a.said))
			remarks, slow := n.Compares(a.seen, &a.said, all)
			for _, r := range remarks {
				fmt.Fprintln(&b, r.Limit(), "|", r.Says(), "|", r.Mends(), "|", r.Charge())
			}
			wrong := n.Answered(a.seen, a.is, &a.said, &a.cost, a.is.On == "" && rng.IntN(2) == 0)
			fmt.Fprintln(&b, slow, wrong, a.is.Mends(), a.said.Metered, a.said.Actual, a.said.Known, a.said.Remaining, a.seen.IsOpen())
			if rng.IntN(40) == 0 {
				fmt.Fprintln(&b, n.Moves(a.is, []string{"search", ""}[rng.IntN(2)]))
			}
			return true
		})
	}
	return b.String()
}

// What is learned of a server that states its use, and said of it, is as before: requests one by one and many at once,
// with limits of a key and of the address, with charges and without.
func TestWhatIsSaidOfAUse(t *testing.T) {
	var b strings.Builder
	for _, atOnce := range []int{1, 2, 8} {
		for _, scope := range []provider.Scope{provider.Key, provider.IP} {
			for _, charged := range []bool{false, true} {
				for seed := range uint64(2) {
					said := history(seed, atOnce, scope, charged)
					fmt.Fprintf(&b, "%d at once, of the %s, charged %t: %d lines, %s\n", atOnce, scope, charged, strings.Count(said, "\n"), golden.Sum(said))
				}
			}
		}
	}
	golden.CompareFloats(t, "said.golden", b.String())
}
