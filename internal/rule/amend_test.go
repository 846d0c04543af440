package rule_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/limit/mono"
)

// A minute of 60 tokens as a bucket and as a rolling window: instant, action, and the rest.
func TestAmend(t *testing.T) {
	const s = mono.Time(time.Second)
	bucket := must(rule.NewBucket(rule.BucketConfig{Limit: 60, Window: time.Minute}))
	rolling := must(rule.NewRolling(rule.RollingConfig{Limit: 60, Window: time.Minute}))
	for _, step := range []struct {
		now                   mono.Time
		arrive                int64
		passed                mono.Time // of the amended request
		by                    int64
		leftBucket, leftRolls int64
	}{
		{now: 0, arrive: 60},
		{now: 10 * s, leftBucket: 10},
		{now: 10 * s, passed: 0, by: -40, leftBucket: 50, leftRolls: 40},   // the answer was short
		{now: 11 * s, arrive: 30, leftBucket: 21, leftRolls: 10},           //
		{now: 12 * s, passed: 11 * s, by: 25, leftBucket: 0, leftRolls: 0}, // longer than reserved: 3 and 15 overdrawn
		{now: 15 * s, leftBucket: 0},
		{now: 16 * s, leftBucket: 1},
		{now: 60 * s, leftBucket: 45},
		{now: 61 * s, leftBucket: 46, leftRolls: 5}, // the first has left the window
		{now: 61 * s, passed: 0, by: 7, leftBucket: 39, leftRolls: 5},
		{now: 61 * s, passed: 11 * s, by: -50, leftBucket: 60, leftRolls: 55}, // no more than full
		{now: 300 * s, leftBucket: 60, leftRolls: 60},
	} {
		for i, r := range []rule.Amendable{bucket, rolling} {
			if step.arrive > 0 && !r.Arrive(step.now, step.arrive) {
				t.Fatalf("at %v: %d was refused", step.now, step.arrive)
			}
			if step.by != 0 {
				r.Amend(step.now, step.passed, step.by)
			}
			want := []int64{step.leftBucket, step.leftRolls}[i]
			if left := rule.Left(r, step.now, 60, 0); left != want {
				t.Errorf("at %v: %T has %d left, want %d", step.now, r, left, want)
			}
		}
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("no panic for RefusedCount")
			}
		}()
		must(rule.NewRolling(rule.RollingConfig{Limit: 1, Window: 1, RefusedCount: true})).Amend(0, 0, 1)
	}()
}

// sent is a request of the definition: its present cost, and whether it was amended.
type sent struct {
	at, cost int64
	amended  bool
}

// model is the definition, in ticks: the sum of a closed window, or the missing part of a bucket,
// in 1/window.
type model struct {
	limit, window int64
	rolling       bool
	log           []sent
	short, at     int64
}

func (m *model) fits(t, cost int64) bool {
	if !m.rolling {
		return cost <= m.limit && max(0, m.short-(t-m.at)*m.limit)+cost*m.window <= m.limit*m.window
	}
	for _, s := range m.log {
		if t-s.at <= m.window {
			cost += s.cost
		}
	}
	return cost <= m.limit
}

func (m *model) flow(t int64) {
	m.short, m.at = max(0, m.short-(t-m.at)*m.limit), t
}

// FuzzAmend: after any amendments, both rules decide by their definition, and know when more will
// pass. Their witnesses find nothing wrong until their log contains a lie.
func FuzzAmend(f *testing.F) {
	for seed := range uint64(40) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		rng := rand.New(rand.NewPCG(seed, 1))
		tick := time.Duration(1 + rng.Int64N(3))
		m := model{limit: 1 + rng.Int64N(12), window: 1 + rng.Int64N(9), rolling: seed%2 == 0}
		window := time.Duration(m.window) * tick
		var r rule.Amendable
		var honest, lied rule.Witness
		if m.rolling {
			c := rule.RollingConfig{Limit: m.limit, Window: window, Tick: tick}
			r, honest, lied = must(rule.NewRolling(c)), must(c.Witness()), must(c.Witness())
		} else {
			c := rule.BucketConfig{Limit: m.limit, Window: window, Tick: tick}
			r, honest, lied = must(rule.NewBucket(c)), must(c.Witness()), must(c.Witness())
		}
		now, lies := int64(0), false
		for range 120 {
			now += rng.Int64N(4)
			at := mono.Time(now * int64(tick))
			m.flow(now)
			if i := rng.IntN(3*len(m.log) + 1); i < len(m.log) && !m.log[i].amended {
				s := &m.log[i]
				by := rng.Int64N(2*m.limit) - m.limit
				by = max(by, -s.cost)
				s.cost += by
				s.amended = true
				m.short = max(0, m.short+by*m.window)
				passed := mono.Time(s.at * int64(tick))
				r.Amend(at, passed, by)
				honest.(rule.AmendedWitness).Amend(at, passed, by)
				lied.(rule.AmendedWitness).Amend(at, passed, by)
				continue
			}
			cost := 1 + rng.Int64N(m.limit)
			fits := m.fits(now, cost)
			ready, ok := r.Ready(at, cost)
			if back := int64(ready) / int64(tick); !ok || ready%mono.Time(tick) != 0 || !m.fits(back, cost) || back > now && m.fits(back-1, cost) || fits != (back == now) {
				t.Fatalf("at %v, cost %d of %+v: ready at %v, %v", at, cost, m, ready, ok)
			}
			if passed := r.Arrive(at, cost); passed != fits {
				t.Fatalf("at %v, cost %d of %+v: passed %v", at, cost, m, passed)
			}
			honest.Hear(at, cost, fits)
			if !lies { // one lie is enough
				lied.Hear(at, cost, true)
			}
			if !fits {
				lies = true
				continue
			}
			m.log = append(m.log, sent{at: now, cost: cost})
			m.short += cost * m.window
		}
		if found := honest.Finding(); !found.Kept() || found.Needless > 0 {
			t.Fatalf("seed %d: %+v", seed, found)
		}
		if lies && lied.Finding().Kept() {
			t.Fatalf("seed %d: a lie was not found: %+v", seed, lied.Finding())
		}
		if _, ok := r.Ready(mono.Time(now), m.limit+1); ok {
			t.Error("more than the limit will pass")
		}
	})
}
