package line_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/line"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/mono"
)

const ms = mono.Time(time.Millisecond)

// watched is a limiter that knows whether it was asked before it admitted.
type watched struct {
	limit.Limiter
	id   int
	net  *net
	open int
}

func (w *watched) Admit(now mono.Time, c limit.Cost) limit.Lease {
	if at := w.Ready(now, c); at > now {
		w.net.fail("limit %d: admitted at %v what is ready at %v", w.id, now, at)
	}
	w.open++
	return w.Limiter.Admit(now, c)
}

func (w *watched) Settle(now mono.Time, l limit.Lease, o limit.Outcome) {
	w.open--
	w.Limiter.Settle(now, l, o)
}

func (w *watched) ReadyAfter(now mono.Time, first, c limit.Cost) mono.Time {
	return w.Limiter.(limit.Foreseer).ReadyAfter(now, first, c)
}

// net is limits, lanes and tickets at random, and what is known of them without the Line.
type net struct {
	line   *line.Line
	fill   int
	limits []*line.Limit
	lanes  []*line.Lane
	ways   [][][]int
	now    mono.Time
	waits  []*guest // all that wait, in the order of places
	open   []*guest
	ended  int
	made   int
	err    error
}

type guest struct {
	line.Ticket
	n     int
	lane  int
	until mono.Time // settled then
}

func (n *net) fail(format string, args ...any) {
	if n.err == nil {
		n.err = fmt.Errorf("at %v: "+format, append([]any{n.now}, args...)...)
	}
}

func newNet(rng *rand.Rand, limits, lanes, ways int, fill int) *net {
	n := &net{line: line.New(line.Config{Fill: fill}), fill: fill}
	for i := range limits {
		var l limit.Limiter
		if rng.IntN(3) == 0 {
			l, _ = limit.NewConcurrency(limit.ConcurrencyConfig{Limit: int64(rng.IntN(3) + 1), Late: -1})
		} else {
			l, _ = limit.NewRolling(limit.RollingConfig{Limit: int64(rng.IntN(6) + 3), Window: time.Duration(rng.IntN(40)+5) * time.Millisecond, Margin: -1})
		}
		n.limits = append(n.limits, n.line.Limit(&watched{Limiter: l, id: i, net: n}, line.Sharing{}))
	}
	for range lanes {
		var all [][]*line.Limit
		var ids [][]int
		for range rng.IntN(ways) + 1 {
			var way []*line.Limit
			var id []int
			for _, i := range rng.Perm(limits)[:rng.IntN(min(limits, 3))+1] {
				way, id = append(way, n.limits[i]), append(id, i)
			}
			all, ids = append(all, way), append(ids, id)
		}
		n.lanes, n.ways = append(n.lanes, n.line.Lane(line.LaneConfig{}, all...)), append(n.ways, ids)
	}
	return n
}

// could tells whether g may go now by one of its ways.
func (n *net) could(g *guest) bool {
	for _, way := range n.ways[g.lane] {
		all := true
		for _, i := range way {
			all = all && n.limits[i].Limiter.Ready(n.now, g.Cost) <= n.now
		}
		if all {
			return true
		}
	}
	return false
}

func (n *net) share(a, b int) bool {
	for _, v := range n.ways[a] {
		for _, w := range n.ways[b] {
			for _, i := range v {
				if slices.Contains(w, i) {
					return true
				}
			}
		}
	}
	return false
}

func (n *net) enter(rng *rand.Rand) {
	g := &guest{n: n.made, lane: rng.IntN(len(n.lanes))}
	n.made++
	g.Cost, g.Place, g.Deadline = limit.Cost{limit.Requests: int64(rng.IntN(3) + 1)}, n.now, limit.Never
	if n.fill == 0 && rng.IntN(4) == 0 {
		g.Place -= mono.Time(rng.IntN(30)) * ms // a head start
	}
	g.Least, g.Of = g.Cost, g
	switch s := n.line.Enter(n.now, n.lanes[g.lane], &g.Ticket); s {
	case line.Granted:
		n.granted(rng, g)
	case line.Waiting:
		n.waits = append(n.waits, g)
	default:
		n.fail("%d was refused: %d", g.n, s)
	}
	n.drain(rng)
}

// later tells whether a comes after b.
func later(a, b *guest) bool { return a.Place > b.Place || a.Place == b.Place && a.n > b.n }

func (n *net) granted(rng *rand.Rand, g *guest) {
	n.ended++
	g.until = n.now + mono.Time(rng.IntN(25))*ms
	n.open = append(n.open, g)
}

func (n *net) drain(rng *rand.Rand) {
	for t := n.line.Next(n.now); t != nil; t = n.line.Next(n.now) {
		g := t.Of.(*guest)
		if t.State != line.Granted {
			n.fail("%d got verdict %d", g.n, t.State)
		}
		for i, w := range n.waits {
			if w == g {
				n.waits = append(n.waits[:i], n.waits[i+1:]...)
				n.granted(rng, g)
				break
			}
			if i == len(n.waits)-1 {
				n.fail("%d went twice", g.n)
			}
		}
	}
	for _, g := range n.waits {
		if !n.could(g) {
			continue
		}
		held := false
		for _, w := range n.waits {
			held = held || w != g && !later(w, g) && (w.lane == g.lane || n.share(w.lane, g.lane))
		}
		if !held {
			n.fail("%d waits and could go, and nobody is before it", g.n)
		}
	}
}

// settle closes what has been answered by now.
func (n *net) settle(rng *rand.Rand) {
	for i := 0; i < len(n.open); {
		if g := n.open[i]; g.until <= n.now {
			n.open = append(n.open[:i], n.open[i+1:]...)
			n.line.Settle(n.now, g.Pass, &accepted)
			n.drain(rng)
		} else {
			i++
		}
	}
}

func runNet(seed uint64, limits, lanes, ways, fill int) error {
	rng := rand.New(rand.NewPCG(seed, 1))
	n := newNet(rng, limits, lanes, ways, fill)
	for step := 0; step < 400 && n.err == nil; step++ {
		switch rng.IntN(6) {
		case 0, 1, 2:
			n.enter(rng)
		case 3:
			if len(n.waits) > 0 {
				i := rng.IntN(len(n.waits))
				g := n.waits[i]
				n.waits = append(n.waits[:i], n.waits[i+1:]...)
				if !n.line.Leave(n.now, &g.Ticket) {
					n.fail("%d could not leave", g.n)
				}
				n.ended++
				n.drain(rng)
			}
		default:
			n.step(rng)
		}
	}
	for i := 0; len(n.waits) > 0 && n.err == nil; i++ {
		if n.step(rng); i > 100_000 {
			n.fail("%d wait for ever", len(n.waits))
		}
	}
	if n.err == nil && n.ended != n.made {
		n.fail("%d came and %d ended", n.made, n.ended)
	}
	return n.err
}

// step goes to the next instant at which anything happens.
func (n *net) step(rng *rand.Rand) {
	at := n.line.Wake()
	for _, g := range n.open {
		at = min(at, max(g.until, n.now))
	}
	if at == limit.Never {
		if len(n.waits) > 0 {
			n.fail("%d wait, and nobody knows for what", len(n.waits))
		}
		n.now += ms
		return
	}
	n.now = max(n.now, at)
	n.drain(rng)
	n.settle(rng)
}

// Laws 1, 3, 4 and 6 in random nets: nobody goes but with leave of all limits, nobody waits who could go unless an earlier one waits
// for one of its limits, and everybody gets one end.
func TestNets(t *testing.T) {
	for seed := range uint64(600) {
		for _, c := range [][4]int{{1, 1, 1, 0}, {3, 4, 1, 0}, {4, 6, 3, 0}, {5, 1, 5, 0}, {1, 1, 1, 4}, {3, 3, 1, 4}} {
			if err := runNet(seed, c[0], c[1], c[2], c[3]); err != nil {
				t.Fatalf("seed %d, %d limits, %d lanes, %d ways, fill %d: %v", seed, c[0], c[1], c[2], c[3], err)
			}
		}
	}
}

func FuzzNets(f *testing.F) {
	f.Add(uint64(1), uint8(3), uint8(4), uint8(2), uint8(0))
	f.Add(uint64(2), uint8(1), uint8(1), uint8(1), uint8(8))
	f.Fuzz(func(t *testing.T, seed uint64, limits, lanes, ways, fill uint8) {
		if err := runNet(seed, int(limits%8)+1, int(lanes%8)+1, int(ways%6)+1, int(fill%16)); err != nil {
			t.Fatal(err)
		}
	})
}
