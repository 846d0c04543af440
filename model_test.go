package paceline_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// FuzzGate runs a program of waits, cancellations, settles and changes of the limit on a Gate and
// on a model of it. The model is a list, a formula and no lock. Both must serve the same requests
// in the same order at the same instants. Both must fail the same ones with the same reason at the
// same instants. No window may hold more than the largest limit in force.
//
// With Fill, the model lets one of the next go ahead if the head can then go no later than before.
// So unless the limit falls, the head goes no later than was foreseen when another went. No request
// is overtaken more than Fill times.
func FuzzGate(f *testing.F) {
	f.Add([]byte("\x01\x05\x01\x06\x01\x12\x00\x03\x04\x00\x01\x30\x01\x4f\x00\x0b\x02\x03"), byte(0))
	f.Add([]byte("wait settle wait update wait try cancel settle advance"), byte(0))
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 7))
		program := make([]byte, 160)
		for i := range program {
			program[i] = byte(rng.Uint32())
		}
		f.Add(program, byte(seed%5))
	}
	f.Fuzz(func(t *testing.T, program []byte, fill byte) {
		synctest.Test(t, func(t *testing.T) { runProgram(t, program[:min(len(program), 400)], int(fill%8)) })
	})
}

// seer is a witness of a Limiter that foresees.
type seer struct{ *witness }

func (w seer) ReadyAfter(now mono.Time, first, cost limit.Cost) mono.Time {
	return limit.ReadyAfter(w.Limiter, now, first, cost)
}

func (w seer) NotBefore(now mono.Time, n int, ahead, cost limit.Cost) mono.Time {
	return limit.NotBefore(w.Limiter, now, n, ahead, cost)
}

func runProgram(t *testing.T, program []byte, fill int) {
	const window = 20 * ms
	start := time.Now()
	r := rolling(t, 8, window)
	w := &witness{Limiter: r, t: t}
	g, err := paceline.NewGateWith(paceline.GateConfig{Limiter: seer{w}, Fill: fill})
	try(t, err)
	var mu sync.Mutex
	got := map[int64]string{}
	m := &model{t: t, limit: 8, span: mono.Time(window), open: map[int64]int64{}, fill: fill}
	m.got = func(id int64) string {
		mu.Lock()
		defer mu.Unlock()
		return got[id]
	}

	all, stop := context.WithCancel(bg) // a failed test must end, too
	defer synctest.Wait()
	defer stop()

	permits := map[int64]paceline.Permit{}
	note := func(id int64, p paceline.Permit, err error) {
		mu.Lock()
		defer mu.Unlock()
		got[id] = fmt.Sprintf("%v %s", time.Since(start), ending(start, err))
		if err == nil {
			permits[id] = p
		}
	}
	most := int64(8)
	admitted, settled, sent := map[int64]mono.Time{}, map[int64]mono.Time{}, map[int64]int64{}
	settle := func(k int, result limit.Result) {
		mu.Lock()
		ids := make([]int64, 0, len(permits))
		for id := range permits {
			ids = append(ids, id)
		}
		slices.Sort(ids)
		if len(ids) == 0 {
			mu.Unlock()
			return
		}
		id := ids[k%len(ids)]
		p := permits[id]
		delete(permits, id)
		mu.Unlock()
		if result != limit.Unsent {
			settled[id], sent[id] = m.now, m.open[id]
		}
		p.Settle(limit.Outcome{Result: result})
		synctest.Wait()
		m.settle(id, result)
	}
	advance := func(d time.Duration) {
		time.Sleep(d)
		synctest.Wait()
		m.advance(m.now.Add(d))
	}

	id := int64(0)
	for ; len(program) >= 2; program = program[2:] {
		op, arg := program[0]%8, int(program[1])
		switch op {
		case 0, 1:
			advance(time.Duration(arg%12) * ms)
		case 2, 3, 4:
			id++
			cost := int64(arg % 10)
			// Contexts end at instants of their own, so that no two things happen at once.
			after := time.Duration(arg/40*4)*ms + time.Duration(id)*time.Microsecond
			ctx, cancel := context.WithCancel(all)
			q := &queued{id: id, cost: cost, deadline: limit.Never, cancel: limit.Never, foreseen: limit.Never}
			switch arg % 3 {
			case 0:
				ctx, cancel = context.WithTimeout(all, after)
				q.deadline = m.now.Add(after)
			case 1:
				time.AfterFunc(after, cancel)
				q.cancel = m.now.Add(after)
			}
			go func() {
				defer cancel()
				p, err := g.Wait(ctx, weight(q.id, cost))
				note(q.id, p, err)
			}()
			synctest.Wait()
			m.wait(q)
		case 5:
			id++
			cost := int64(arg % 10)
			p, retry, ok := g.TryWait(weight(id, cost))
			at := m.turn(cost)
			want := time.Duration(at)
			if at < limit.AfterSettle {
				want = at.Sub(m.now)
			}
			if ok != (want == 0) || retry != want {
				t.Fatalf("%v: TryWait(%d): ok %v, retry %v; want retry %v", m.now, cost, ok, retry, want)
			}
			if ok {
				note(id, p, nil)
				m.admit(id, cost)
			}
		case 6:
			settle(arg/4, [...]limit.Result{limit.Accepted, limit.Accepted, limit.Unknown, limit.Unsent}[arg%4])
		case 7:
			n := int64(3 + arg%7)
			most = max(most, n)
			g.Update(func(now mono.Time) {
				if err := r.SetLimit(now, n); err != nil {
					t.Error(err)
				}
			})
			m.limit = n
			synctest.Wait()
			for _, q := range m.line {
				q.foreseen = limit.Never
			}
			m.review()
		}
		synctest.Wait()
		if g.Waiting() != len(m.line) {
			t.Fatalf("%v: %d wait, want %d", m.now, g.Waiting(), len(m.line))
		}
	}
	for len(m.line) > 0 || len(m.open) > 0 {
		for n := len(m.open); n > 0; n-- {
			settle(0, limit.Accepted)
			synctest.Wait()
		}
		if advance(window); m.now > mono.Time(time.Hour) {
			t.Fatalf("%d wait, %d open, and no end", len(m.line), len(m.open))
		}
	}
	if g.Armed() {
		t.Error("nobody waits and the timer is set")
	}

	if !slices.Equal(w.log, m.log) {
		t.Fatalf("served\n%v, want\n%v", w.log, m.log)
	}
	for id, want := range m.ended {
		if got[id] != want {
			t.Errorf("request %d: %s, want %s", id, got[id], want)
		}
	}
	if len(got) != len(m.ended) {
		t.Errorf("%d ended, want %d", len(got), len(m.ended))
	}

	for _, a := range w.log {
		admitted[a.id] = a.at
	}
	var arrivals []admission // id here is the cost
	for id, to := range settled {
		// Anywhere between sending and answer.
		from := admitted[id]
		arrivals = append(arrivals, admission{sent[id], from + mono.Time(id*id*7919)%(to-from+1)})
	}
	slices.SortFunc(arrivals, func(a, b admission) int { return int(a.at - b.at) })
	for i, a := range arrivals {
		sum := int64(0)
		for _, b := range arrivals[i:] {
			if b.at < a.at.Add(window) {
				sum += b.id
			}
		}
		if sum > most {
			t.Errorf("%d arrive in the window from %v, want at most %d", sum, a.at, most)
		}
	}
}

// model is a Gate on a rolling window without clock, lock or timer.
type model struct {
	now   mono.Time
	limit int64
	span  mono.Time
	open  map[int64]int64
	past  []admission // costs and when their answers were read
	line  []*queued
	log   []admission
	ended map[int64]string

	t    testing.TB
	fill int
	got  func(id int64) string // what has become of one
}

type queued struct {
	id, cost         int64
	deadline, cancel mono.Time
	foreseen         mono.Time // when it was to go when another went ahead of it as the head of the line
	passed           int
}

func (m *model) end(id int64, how string) {
	if m.ended == nil {
		m.ended = map[int64]string{}
	}
	m.ended[id] = fmt.Sprintf("%v %s", time.Duration(m.now), how)
}

func (m *model) ready(cost int64) mono.Time {
	open := cost
	for _, c := range m.open {
		open += c
	}
	fits := func(t mono.Time) bool {
		sum := open
		for _, p := range m.past {
			if p.at+m.span > t {
				sum += p.id
			}
		}
		return sum <= m.limit || cost == 0
	}
	switch {
	case fits(m.now):
		return m.now
	case cost > m.limit:
		return limit.Never
	case open > m.limit:
		return limit.AfterSettle
	}
	at := limit.Never
	for _, p := range m.past {
		if t := p.at + m.span; t > m.now && t < at && fits(t) {
			at = t
		}
	}
	return at
}

// turn is when a newcomer could go.
func (m *model) turn(cost int64) mono.Time {
	at := m.ready(cost)
	if len(m.line) > 0 {
		at = max(at, m.ready(m.line[0].cost))
	}
	return at
}

func (m *model) admit(id, cost int64) {
	m.open[id] = cost
	m.log = append(m.log, admission{id, m.now})
	m.end(id, "ok")
}

// hopeless ends q if it cannot be served any more. Whether it could be served in time is for the Gate to say; it must not be wrong.
func (m *model) hopeless(q *queued, at mono.Time) bool {
	if at == limit.Never {
		m.end(q.id, "never")
		return true
	}
	when, ready := m.refused(q)
	if when != m.now {
		return false
	}
	if true := m.soonest(q); ready <= q.deadline || ready > true {
		m.t.Errorf("%v: request %d, until %v, is refused until %v, and could go at %v", m.now, q.id, q.deadline, ready, true)
	}
	m.end(q.id, fmt.Sprintf("deadline (ready %v)", time.Duration(ready)))
	return true
}

// refused returns when the Gate refused q before its deadline, and until when; limit.Never: it did not.
func (m *model) refused(q *queued) (when, ready mono.Time) {
	at, _, ok := strings.Cut(m.got(q.id), " deadline (ready ")
	w, err := time.ParseDuration(at)
	if !ok || err != nil || mono.Time(w) >= q.deadline {
		return limit.Never, 0
	}
	return mono.Time(w), m.readyOf(q.id)
}

// readyOf returns the Ready of the error of a request whose deadline came first; 0: it has none.
func (m *model) readyOf(id int64) mono.Time {
	_, verdict, ok := strings.Cut(m.got(id), " deadline (ready ")
	if !ok {
		return 0
	}
	r, err := time.ParseDuration(strings.TrimSuffix(verdict, ")"))
	if err != nil {
		m.t.Errorf("request %d: %v", id, err)
	}
	return mono.Time(r)
}

// soonest returns the earliest instant for q. All open requests are answered now, and those before
// q go as soon as they can and are answered at once. With fill the largest of them may come after
// q.
func (m *model) soonest(q *queued) mono.Time {
	after := &model{now: m.now, limit: m.limit, span: m.span, past: slices.Clone(m.past)}
	for _, cost := range m.open {
		after.past = append(after.past, admission{cost, m.now})
	}
	ahead := m.line
	if i := slices.Index(m.line, q); i >= 0 {
		ahead = m.line[:i]
	}
	turn := m.now
	if len(ahead) > 0 && len(ahead) >= 2*m.fill { // the first goes before it: so many may not pass it
		turn = after.ready(ahead[0].cost)
	}
	var costs []int64
	for _, before := range ahead {
		costs = append(costs, before.cost)
	}
	if m.fill > 0 { // it may pass so many
		slices.Sort(costs)
		costs = costs[:max(len(costs)-m.fill, 0)]
	}
	for _, cost := range costs {
		if cost > 0 {
			after.now = max(after.now, after.ready(cost))
			after.past = append(after.past, admission{cost, after.now})
		}
	}
	return max(turn, after.ready(q.cost))
}

func (m *model) wait(q *queued) {
	own, head := m.ready(q.cost), m.now
	if len(m.line) > 0 {
		head = m.ready(m.line[0].cost)
	}
	near := len(m.line) > 0 && len(m.line) <= m.fill
	switch {
	case max(own, head) <= m.now:
		m.admit(q.id, q.cost)
	case m.hopeless(q, own):
	default:
		m.line = append(m.line, q)
		if near {
			m.pass()
		}
	}
}

func (m *model) serve() {
	for len(m.line) > 0 {
		q := m.line[0]
		at := m.ready(q.cost)
		if at <= m.now {
			if m.now > q.foreseen {
				m.t.Errorf("%v: request %d was to go at %v when another went ahead of it", m.now, q.id, q.foreseen)
			}
			m.admit(q.id, q.cost)
		} else if !m.hopeless(q, at) {
			m.pass()
			return
		}
		m.line = m.line[1:]
	}
}

// pass lets those go ahead of the head that leave it its instant.
func (m *model) pass() {
	head := m.line[0]
	for k := 1; k < len(m.line) && k <= m.fill; k++ { // who moves up is looked at, too
		q := m.line[k]
		at := m.ready(head.cost)
		if head.passed == m.fill || at >= limit.AfterSettle || m.ready(q.cost) > m.now {
			continue
		}
		m.open[q.id] = q.cost
		after := m.ready(head.cost)
		delete(m.open, q.id)
		if after > at {
			continue
		}
		m.admit(q.id, q.cost)
		head.foreseen = min(head.foreseen, at)
		for _, before := range m.line[:k] {
			if before.passed++; before.passed > m.fill {
				m.t.Errorf("%v: request %d is overtaken for the %d. time", m.now, before.id, before.passed)
			}
		}
		m.line = slices.Delete(m.line, k, k+1)
		k--
	}
}

func (m *model) review() {
	m.serve()
	n := len(m.line)
	for k := 0; k < len(m.line); {
		if q := m.line[k]; m.hopeless(q, m.ready(q.cost)) {
			m.line = slices.Delete(m.line, k, k+1)
		} else {
			k++
		}
	}
	if len(m.line) < n && m.fill > 0 { // others have moved up
		m.serve()
	}
}

func (m *model) settle(id int64, result limit.Result) {
	cost := m.open[id]
	delete(m.open, id)
	if result != limit.Unsent {
		m.past = append(m.past, admission{cost, m.now})
	}
	m.serve()
}

func (m *model) advance(to mono.Time) {
	for {
		next := to + 1
		for _, q := range m.line {
			next = min(next, q.deadline, q.cancel)
			if when, _ := m.refused(q); when > m.now {
				next = min(next, when)
			}
		}
		if len(m.line) > 0 {
			next = min(next, m.ready(m.line[0].cost))
			for _, q := range m.line[1:min(len(m.line), m.fill+1)] {
				if at := m.ready(q.cost); at > m.now {
					next = min(next, at)
				}
			}
		}
		if next > to {
			m.now = to
			return
		}
		m.now = next
		turn, latest := m.ready(m.line[0].cost), map[*queued]mono.Time{}
		for _, q := range m.line {
			if q.deadline == next {
				latest[q] = m.soonest(q)
			}
		}
		m.line = slices.DeleteFunc(m.line, func(q *queued) bool {
			switch {
			case q.cancel == next:
				m.end(q.id, "canceled")
			case q.deadline == next:
				ready, first := m.readyOf(q.id), turn
				if first <= next || first >= limit.AfterSettle { // an answer decides
					first = 0
				}
				if ready < first || ready > max(first, latest[q]) {
					m.t.Errorf("%v: request %d gives up, and could go at %v: the first goes at %v, and it at %v", m.now, q.id, ready, turn, latest[q])
				}
				if m.end(q.id, "deadline"); ready > 0 {
					m.end(q.id, fmt.Sprintf("deadline (ready %v)", time.Duration(ready)))
				}
			default:
				return false
			}
			return true
		})
		m.serve()
	}
}
