package nodesim_test

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/lab/nodesim"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// shared are the kinds of which nodes get parts: windows that are short and long beside a turn.
func shared() []kind {
	short, long := rolling(200, time.Second), rolling(600, 10*time.Second)
	return need.Fewer([]kind{short}, []kind{short, long})
}

// given is how long nodes are counted, after 34 s. Both ends are between bursts, which windows of 10 s begin with.
func given() time.Duration { return need.Fewer(120*time.Second, 300*time.Second) }

// Where all want more than there is, each gets by its weight; what one with a large weight does not want is the others', and one with a small
// weight has its least share however many large ones there are.
func TestWeights(t *testing.T) {
	for _, c := range []struct {
		name    string
		weights []float64
	}{
		{"one, two, three, four", []float64{1, 2, 3, 4}},
		{"one small among large", []float64{0.25, 4, 4, 4}},
		{"even", []float64{5, 5, 5, 5}},
	} {
		for _, k := range shared() {
			s := base(k, len(c.weights), 3)
			s.Weights, s.Warm, s.Length = c.weights, 34*time.Second, 34*time.Second+given()
			r, alone := nodesim.Run(s), nodesim.Alone(s)
			all, weights := 0.0, 0.0
			for i, w := range c.weights {
				all, weights = all+r.ByNode[i], weights+w
			}
			t.Logf("%s, %s: %.0f of weights %v, %.1f%% of one process", k.name, c.name, r.ByNode, c.weights, 100*r.Rate/alone.Rate)
			if r.Refused > 0 || r.Rate < 0.99*alone.Rate {
				t.Errorf("%s, %s: %.1f a second of %.1f, %d refused", k.name, c.name, r.Rate, alone.Rate, r.Refused)
			}
			for i, w := range c.weights {
				if part := r.ByNode[i] / all * weights / w; part < 0.93 || part > 1.07 {
					t.Errorf("%s, %s: the one of weight %v got %.2f of its share", k.name, c.name, w, part)
				}
			}
		}
	}
	s := base(rolling(200, time.Second), 3, 3)
	s.Weights, s.Only, s.Warm = []float64{1, 1, 100}, 2, 20*time.Second // the third wants nothing
	if r, alone := nodesim.Run(s), nodesim.Alone(s); r.Refused > 0 || r.Rate < 0.97*alone.Rate || r.ByNode[2] > 0 {
		t.Errorf("where one of weight 100 wants nothing, %.1f a second of %.1f: %v", r.Rate, alone.Rate, r.ByNode)
	}
}

// Whatever weights and numbers others have, a node has its least part of the whole, and what it does not want of that is theirs.
func TestLeastParts(t *testing.T) {
	for _, c := range []struct {
		name            string
		weights, leasts []float64
		want            []float64 // parts of the whole
	}{
		{"one of eight", nil, []float64{0.4, 0, 0, 0, 0, 0, 0, 0}, []float64{0.4, .6 / 7, .6 / 7, .6 / 7, .6 / 7, .6 / 7, .6 / 7, .6 / 7}},
		{"two, and weights", []float64{1, 1, 4, 4}, []float64{0.2, 0.3, 0, 0}, []float64{0.2, 0.3, 0.25, 0.25}},
		{"less than its weight gives", []float64{3, 1}, []float64{0.5, 0.1}, []float64{0.75, 0.25}},
		{"more than there is", nil, []float64{0.95, 0.95, 0}, []float64{0.475, 0.475, 0.05}},
	} {
		for _, k := range shared() {
			s := base(k, len(c.leasts), 3)
			s.Weights, s.Leasts, s.Warm, s.Length = c.weights, c.leasts, 34*time.Second, 34*time.Second+given()
			r, alone := nodesim.Run(s), nodesim.Alone(s)
			all := 0.0
			for _, n := range r.ByNode {
				all += n
			}
			t.Logf("%s, %s: %.0f, %.1f%% of one process", k.name, c.name, r.ByNode, 100*r.Rate/alone.Rate)
			if r.Refused > 0 || r.Rate < 0.99*alone.Rate {
				t.Errorf("%s, %s: %.1f a second of %.1f, %d refused", k.name, c.name, r.Rate, alone.Rate, r.Refused)
			}
			for i, want := range c.want {
				if part := r.ByNode[i] / all; part < 0.93*want || part > 1.07*want {
					t.Errorf("%s, %s: node %d has %.3f of all, want %.3f", k.name, c.name, i, part, want)
				}
			}
		}
	}
	s := base(rolling(200, time.Second), 3, 3)
	s.Leasts, s.Only, s.Warm = []float64{0, 0, 0.9}, 2, 20*time.Second // the third wants nothing
	if r, alone := nodesim.Run(s), nodesim.Alone(s); r.Refused > 0 || r.Rate < 0.97*alone.Rate || r.ByNode[2] > 0 {
		t.Errorf("where one of 0.9 at least wants nothing, %.1f a second of %.1f: %v", r.Rate, alone.Rate, r.ByNode)
	}
}

// later is a server that judges from an instant on.
type later struct {
	rule.Server
	from mono.Time
}

func (s later) Arrive(at mono.Time, n int64) bool { return at < s.from || s.Server.Arrive(at, n) }

// A limit that one node sets for all is what all keep to soon after, and those who come later, too, whose configuration says otherwise: lowered,
// none is refused by a server that counts by the new limit from 5 s after; raised, all of it is used.
func TestSetLimit(t *testing.T) {
	for _, c := range []struct {
		from, to int64
		nodesim.Trouble
	}{
		{200, 50, nodesim.Trouble{}}, {200, 50, nodesim.Trouble{Kill: 6 * time.Second}}, {50, 200, nodesim.Trouble{}},
	} {
		s := base(rolling(c.from, time.Second), 5, 7)
		s.Trouble, s.Length, s.Warm = c.Trouble, 80*time.Second, 30*time.Second
		s.AlterAt, s.Alter = 20*time.Second, func(l limit.Limiter, now mono.Time) error { return l.(*limit.Rolling).SetLimit(now, c.to) }
		judge := later{must(rule.NewRolling(rule.RollingConfig{Limit: c.to, Window: time.Second})), nodesim.Base.Add(25 * time.Second)}
		s.Server = func() map[limit.Unit]rule.Server { return map[limit.Unit]rule.Server{limit.Requests: judge} }
		r := nodesim.Run(s)
		t.Logf("from %d to %d, %+v: %.1f a second, %d refused", c.from, c.to, c.Trouble, r.Rate, r.Refused)
		if least := 0.6 * float64(c.to); r.Refused > 0 || r.Rate < least || c.Kill == 0 && r.Rate < 0.92*float64(c.to) {
			t.Errorf("from %d to %d: %.1f a second, %d refused", c.from, c.to, r.Rate, r.Refused)
		}
	}
}

// removed is a run in which somebody has the store forget the limit, again and again, while nodes pause.
func removed(k kind) nodesim.Config {
	c := base(k, 4, 5)
	c.Trouble = nodesim.Trouble{Remove: 20 * time.Second, Pause: 10 * time.Second}
	c.Length, c.Way = 240*time.Second, sharp
	return c
}

// A limit that somebody has the store forget is quiet until nothing counts that was granted before, and then all go on.
func TestRemoved(t *testing.T) {
	for _, k := range []kind{rolling(200, time.Second), bucket(100, 20, time.Second)} {
		r := nodesim.Run(removed(k))
		t.Logf("%s: %d sent, %d refused", k.name, r.Sent, r.Refused)
		if r.Refused > 0 || float64(r.Sent) < 0.3*k.full*240 {
			t.Errorf("%s: %d sent, %d refused", k.name, r.Sent, r.Refused)
		}
	}
}
