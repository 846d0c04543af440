package fairshare_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/paceline-go/paceline/fairshare"
	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/lab/sim/fleet"
	"github.com/paceline-go/paceline/lab/strategy"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// dies is how a process ends.
type dies uint8

const (
	killed  dies = iota // what it wrote when there were news is there, and each request that it sent
	stopped             // it wrote once more at its end
	forgets             // nothing was written
)

func (d dies) String() string { return [...]string{"killed", "stopped", "forgets"}[d] }

// mortal is an Auto behind a stack whose process ends at an instant, and is followed by another after a gap. Answers to what the first had in
// flight reach nobody.
type mortal struct {
	limit.Limiter
	auto   *fairshare.Auto
	made   func() (limit.Limiter, *fairshare.Auto)
	end    mono.Time
	gap    time.Duration
	how    dies
	over   bool
	news   uint64
	memory []byte
	at     mono.Time
	sent   []limit.Past
	book   limit.Book[limit.Limiter] // of each request: that of one process or the other
	fails  func(error)
}

func (m *mortal) lives(now mono.Time) {
	if m.over || now < m.end {
		return
	}
	m.over = true
	if m.how == stopped {
		m.memory, m.at = m.auto.AppendMemory(nil, now), now
	}
	m.Limiter, m.auto = m.made()
	if m.how != forgets {
		if err := m.auto.Recall(m.end.Add(m.gap), m.at, m.memory, m.sent); err != nil {
			m.fails(err)
		}
	}
}

func (m *mortal) Ready(now mono.Time, cost limit.Cost) mono.Time {
	m.lives(now)
	if begins := m.end.Add(m.gap); m.over && now < begins {
		return max(begins, m.Limiter.Ready(begins, cost))
	}
	return m.Limiter.Ready(now, cost)
}

func (m *mortal) Admit(s *limit.Sent) {
	m.lives(s.At)
	m.sent = append(m.sent, limit.Past{Sent: s.At, At: s.At, Cost: s.Cost})
	m.book.Open(s.Number, m.Limiter)
	m.Limiter.Admit(s)
}

func (m *mortal) Settle(now mono.Time, s *limit.Sent, o *limit.Outcome) {
	m.lives(now)
	m.book.Close(s.Number).Settle(now, s, o)
	if n := m.auto.News(); n != m.news && !m.over {
		m.news, m.memory, m.at = n, m.auto.AppendMemory(nil, now), now
	}
}

// broken is what came of a world whose only client was started again: how many were refused, and how much was served, in the minute before
// and in the minute after it was back.
type broken struct {
	before, after autoMinute
}

// breaks has the client of 64 threads end after so long, and come back after a gap. Without one it lives on.
func (w *autoWorld) breaks(t *testing.T, after, gap time.Duration, how dies, lives bool, seed uint64) (b broken) {
	var m *mortal
	law := strategy.Strategy{Name: "auto", NewLimiter: func(p strategy.Params, rng *rand.Rand) (limit.Limiter, error) {
		m = &mortal{end: mono.Time(after), gap: gap, how: how, fails: func(err error) { t.Error(err) }}
		m.made = func() (limit.Limiter, *fairshare.Auto) {
			var a *fairshare.Auto
			l := must(w.lawOf(func(made *fairshare.Auto) { a = made }).NewLimiter(p, rng))
			return l, a
		}
		if lives {
			m.end = mono.Max
		}
		m.Limiter, m.auto = m.made()
		return m, nil
	}}
	f := must(fleet.New(fleet.Scenario{
		Duration: after + gap + minute, Seed: seed, Server: w.server,
		Groups: []fleet.Group{{Strategy: law, Processes: 1, Threads: 64, Link: near, Spread: 3 * time.Second}},
	}))
	at := func(d time.Duration) fleet.Report {
		f.Advance(d)
		return f.Report()
	}
	r := []fleet.Report{at(after - minute), at(after), at(after + gap), at(after + gap + minute)}
	allowed := minute.Seconds() * float64(w.server.Limit) / w.server.Window.Seconds()
	in := func(i, j int) autoMinute {
		return autoMinute{r[j].Limited - r[i].Limited, 100 * float64(r[j].Served-r[i].Served) / allowed}
	}
	return broken{in(0, 1), in(2, 3)}
}

// restartWorlds are those at which a restart was promised to cost nothing: what the server states, a bucket, and refusals alone.
var restartWorlds = []string{"github", "github untold", "gcra", "gcra untold", "rolling", "fixed", "bucket"}

// What was found goes on over a restart: in the minute after it no more is refused than where nothing ended, but for one refusal that may come
// a little sooner or later, and as much is used as before. Without a memory all of that is lost, so the test would notice.
func TestAutoOverRestarts(t *testing.T) {
	seeds := need.Fewer(1.0, 3)
	forgotten := 0
	for _, w := range autoWorlds {
		if !slices.Contains(restartWorlds, w.name) {
			continue
		}
		for _, gap := range []time.Duration{400 * ms, 20 * time.Second, 2 * hour} {
			sum := map[dies]autoMinute{}
			lived := autoMinute{}
			for seed := range uint64(seeds) {
				after := 5*minute + 7*time.Second
				l := w.breaks(t, after, gap, forgets, true, seed)
				lived.refused, lived.percent = lived.refused+l.after.refused, lived.percent+min(l.before.percent, l.after.percent)/seeds
				for _, how := range []dies{killed, stopped, forgets} {
					b := w.breaks(t, after, gap, how, false, seed)
					s := sum[how]
					sum[how] = autoMinute{s.refused + b.after.refused, s.percent + b.after.percent/seeds}
				}
			}
			t.Logf("%s, away for %v: lives on %v; killed %v, stopped %v, forgets %v", w.name, gap, lived, sum[killed], sum[stopped], sum[forgets])
			forgotten += sum[forgets].refused
			for _, how := range []dies{killed, stopped} {
				if got := sum[how]; got.refused > lived.refused+1 || got.percent < lived.percent-3 {
					t.Errorf("%s, %v, away for %v: %d refused in the minute after, and %d where it lives on; %.1f %% used, and %.1f there",
						w.name, how, gap, got.refused, lived.refused, got.percent, lived.percent)
				}
			}
		}
	}
	if forgotten < 25*int(seeds) {
		t.Errorf("%d are refused where nothing was kept: this shows nothing", forgotten)
	}
}
