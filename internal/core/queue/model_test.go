package queue_test

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/queue"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// model is a queue that is slow and plain: a slice of all requests there ever were, searched from end to end.
type model struct {
	config   queue.Config
	now      mono.Time
	seq      int
	deaths   int
	requests []*modelled
	where    []string        // each of them goes
	holds    map[string]bool // hosts
	alone    map[string]bool // hosts whose requests that are aside are held
	late     int
	flying   int // the most that were ever in flight
}

type modelled struct {
	queue.Request
	ticket    queue.Ticket
	state     queue.State
	kept      bool // dead, and not forgotten
	seq       int
	submitted mono.Time
	from      mono.Time // as when it counts in the line
	deadline  *mono.Time
	aside     bool
	notBefore mono.Time
	attempts  int
	returned  int
	host      string // as it was when it began to wait
	death     int
	died      mono.Time
	reason    string
}

func (m *model) held(r *modelled) bool {
	return r.state == queue.Waiting || r.state == queue.InFlight || r.state == queue.Dead && r.kept
}

func (m *model) count(s queue.State) (n int) {
	for _, r := range m.requests {
		if r.state == s {
			n++
		}
	}
	return n
}

func clampedTo(low, high int64, x *big.Int) int64 {
	if x.Cmp(big.NewInt(low)) < 0 {
		return low
	}
	if x.Cmp(big.NewInt(high)) > 0 {
		return high
	}
	return x.Int64()
}

func plus(t mono.Time, d int64) mono.Time {
	return mono.Time(clampedTo(int64(mono.Min), int64(mono.Max), new(big.Int).Add(big.NewInt(int64(t)), big.NewInt(d))))
}

func (m *model) place(r *modelled) mono.Time {
	if m.config.HeadStart < 0 {
		return r.from
	}
	start := m.config.HeadStart
	if start == 0 {
		start = time.Minute
	}
	d := new(big.Int).Mul(big.NewInt(int64(r.Priority)), big.NewInt(int64(start)))
	return plus(r.from, -clampedTo(-math.MaxInt64, math.MaxInt64, d))
}

// first returns the least of the requests that pass, or nil.
func (m *model) first(pass func(*modelled) bool, at func(*modelled) mono.Time) (best *modelled) {
	for _, r := range m.requests {
		if pass(r) && (best == nil || at(r) < at(best) || at(r) == at(best) && r.seq < best.seq) {
			best = r
		}
	}
	return best
}

func (m *model) head(of ...string) *modelled {
	return m.first(func(r *modelled) bool {
		return (len(of) == 0 || r.Resource == of[0]) && r.state == queue.Waiting && r.notBefore <= m.now && !m.holds[r.host] && !(r.aside && m.alone[r.host])
	}, m.place)
}

func (m *model) overdue() *modelled {
	return m.first(func(r *modelled) bool { return r.state == queue.Waiting && r.deadline != nil && *r.deadline <= m.now },
		func(r *modelled) mono.Time { return *r.deadline })
}

func (m *model) wake() (mono.Time, bool) {
	wake, ok := limit.Never, false
	for _, r := range m.requests {
		if r.state != queue.Waiting {
			continue
		}
		if r.notBefore > m.now {
			wake, ok = min(wake, r.notBefore), true
		}
		if r.deadline != nil {
			wake, ok = min(wake, max(*r.deadline, m.now)), true
		}
	}
	return wake, ok
}

func (m *model) begin(r *modelled) {
	m.seq++
	r.seq = m.seq
	r.state, r.attempts, r.returned, r.reason, r.host, r.aside = queue.Waiting, 0, 0, "", m.to(r), false
	r.submitted, r.from, r.notBefore = m.now, m.now, m.now
	m.dueIn(r, r.TTL)
}

func (m *model) to(r *modelled) string {
	if m.config.Host == nil {
		return ""
	}
	return m.where[r.Value.(int)]
}

func (m *model) dueIn(r *modelled, ttl time.Duration) {
	r.deadline = nil
	if r.TTL != 0 {
		d := plus(r.notBefore, int64(ttl))
		r.deadline = &d
	}
}

// hasOne says that a request has one deadline, whatever becomes of it.
func (m *model) hasOne(r *modelled) bool {
	return m.config.OnExpiry == queue.End || r.TTL < 0 || r.Renewal < 0
}

func (m *model) die(r *modelled) {
	m.deaths++
	r.state, r.death, r.died, r.kept = queue.Dead, m.deaths, m.now, m.config.KeepDead >= 0
	if letters := m.letters(); m.config.KeepDead > 0 && len(letters) > m.config.KeepDead {
		letters[0].kept = false
	}
}

func (m *model) letters() (dead []*modelled) {
	for _, r := range m.requests {
		if r.state == queue.Dead && r.kept {
			dead = append(dead, r)
		}
	}
	slices.SortFunc(dead, func(a, b *modelled) int { return cmp.Compare(a.death, b.death) })
	return dead
}

func (m *model) again(r *modelled, notBefore mono.Time) {
	r.aside = false
	r.state, r.notBefore, r.returned, r.host = queue.Waiting, max(notBefore, m.now), 0, m.to(r)
	switch {
	case m.hasOne(r):
	case r.Renewal > 0:
		m.dueIn(r, r.Renewal)
	default:
		m.dueIn(r, r.TTL)
	}
	if m.config.RetriesLast {
		m.seq++
		r.seq, r.from = m.seq, r.notBefore
	}
}

func (m *model) attemptsMax() int {
	if m.config.MaxAttempts == 0 {
		return 5
	}
	return m.config.MaxAttempts
}

func (m *model) retry(r *modelled, notBefore mono.Time, reason string) {
	r.reason = reason
	passes := func(t mono.Time) bool {
		return r.deadline != nil && *r.deadline <= t && m.hasOne(r)
	}
	switch {
	case passes(m.now):
		r.state = queue.Expired
	case r.attempts >= m.attemptsMax():
		m.die(r)
	case passes(notBefore):
		r.state = queue.Expired
	default:
		m.again(r, notBefore)
	}
}

func (m *model) expire(r *modelled) { m.lapse(r, "deadline passed while waiting", r.reason) }

func (m *model) lapse(r *modelled, reason, last string) {
	if m.hasOne(r) {
		r.state, r.reason = queue.Expired, last
		return
	}
	r.attempts++
	r.reason = reason
	if r.attempts >= m.attemptsMax() {
		m.die(r)
	} else {
		m.again(r, r.notBefore)
	}
}

// program is bytes read as choices.
type program []byte

func (p *program) choose(n int) int {
	if len(*p) == 0 {
		return 0
	}
	b := (*p)[0]
	*p = (*p)[1:]
	return int(b) % n
}

func pick[T any](p *program, of ...T) T { return of[p.choose(len(of))] }

func (p *program) config() queue.Config {
	return queue.Config{
		MaxLen:      pick(p, 0, 1, 2, 3, 8),
		MaxAttempts: pick(p, 0, 1, 2, 3),
		HeadStart:   pick[time.Duration](p, 0, time.Second, -1, 1, 1<<62),
		OnExpiry:    pick(p, queue.End, queue.Retry),
		RetriesLast: pick(p, false, true),
		KeepDead:    pick(p, 0, -1, 1, 2),
	}
}

// FuzzModel runs bytes as a program on the queue and on the model, and compares all that can be seen after each step.
func FuzzModel(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x00\x00\x00"))
	// Programs of all kinds of steps, for many configurations; the multipliers have no meaning.
	for i := range 120 {
		program := make([]byte, 6, 300)
		for j := range program {
			program[j] = byte(i * (j*2 + 1) / (j + 1))
		}
		x := uint32(i)*2654435761 + 12345
		for len(program) < 300 {
			x = x*1664525 + 1013904223
			program = append(program, byte(x>>24))
		}
		f.Add(program)
	}
	f.Fuzz(func(t *testing.T, bytes []byte) {
		p := program(bytes[:min(len(bytes), 600)])
		config := p.config()
		m := &model{now: mono.Min, holds: map[string]bool{}, alone: map[string]bool{}}
		if p.choose(3) > 0 {
			config.Host = func(r *queue.Request) string { return m.where[r.Value.(int)] }
		}
		m.config = config
		q := newQueue(t, config)
		trace := []string{fmt.Sprintf("%+v", config)}
		for len(p) > 0 {
			said, err := m.step(q, &p)
			trace = append(trace, said)
			if err == nil {
				err = m.compare(q)
			}
			if err != nil {
				t.Fatalf("%s\n%v", strings.Join(trace, "\n"), err)
			}
		}
	})
}

// step does one thing to both, and returns an error if they answer differently.
func (m *model) step(q *queue.Queue, p *program) (said string, err error) {
	op := p.choose(20)
	// The subject of the step; it may have ended long ago. Mostly it is a recent one, as old ones
	// are mostly gone.
	r := &modelled{}
	if n := len(m.requests); n > 0 {
		r = m.requests[n-1-p.choose(min(n, 8))]
	}
	now := m.now
	switch pick(p, 0, 0, 0, 1, 1, 2, 3) {
	case 1:
		now = plus(now, int64(time.Duration(p.choose(30))*100*time.Millisecond))
	case 2: // backwards
		now = plus(now, -int64(time.Duration(p.choose(30))*100*time.Millisecond))
	case 3:
		if p.choose(64) == 0 {
			now = pick(p, mono.Max-5, mono.Max, limit.Never, mono.Time(time.Hour))
		}
	}
	if m.now == mono.Min && p.choose(16) != 0 {
		now = 0
	}
	m.now = min(max(now, m.now), mono.Max)

	said = fmt.Sprintf("%v: %d on %d: ", now, op, r.seq)
	// attempt runs a transition that must panic unless it is allowed.
	attempt := func(allowed bool, f func() error) (err error) {
		defer func() {
			if broke := recover(); (broke == nil) != allowed {
				err = fmt.Errorf("allowed %v, panic %v", allowed, broke)
			}
		}()
		return f()
	}
	ended := func(e queue.Ended, r *modelled) error {
		want := queue.Ended{Ticket: r.ticket, State: r.state, Request: r.Request, Submitted: r.submitted, Attempts: r.attempts, Reason: r.reason}
		if want.Late = r.state == queue.Done && r.deadline != nil && *r.deadline <= m.now; want.Late {
			m.late++
		}
		if e != want {
			return fmt.Errorf("%+v, want %+v", e, want)
		}
		return nil
	}
	switch op {
	case 0, 1, 2, 3:
		r := &modelled{Request: queue.Request{
			ID:       pick(p, "", "", "", "a", "b"),
			Cost:     limit.One,
			Priority: pick(p, 0, 0, 0, 1, 2, -1, math.MaxInt, math.MinInt),
			TTL:      pick[time.Duration](p, 0, 0, time.Second, 2*time.Second, -1, 1, math.MaxInt64, math.MinInt64),
			Resource: pick(p, "", "", "search", "books"),
			Value:    len(m.requests),
		}}
		if r.TTL != 0 {
			r.Renewal = pick[time.Duration](p, 0, 3*time.Second, -1, 1, math.MaxInt64)
		}
		said += fmt.Sprintf("submit %+v", r.Request)
		var want error
		m.where = append(m.where[:len(m.requests)], pick(p, "", "x", "y", "z"))
		for _, o := range m.requests {
			if r.ID != "" && o.ID == r.ID && m.held(o) {
				if want = queue.ErrDuplicate; o.state == queue.Dead {
					want = queue.ErrDead
				}
			}
		}
		if want == nil && m.config.MaxLen > 0 && m.count(queue.Waiting) >= m.config.MaxLen {
			want = queue.ErrFull
		}
		ticket, err := q.Submit(now, r.Request)
		if !errors.Is(err, want) || want == nil && err != nil {
			return said, fmt.Errorf("%v, want %v", err, want)
		}
		if want != nil {
			return said, nil
		}
		for _, o := range m.requests {
			if o.ticket == ticket {
				return said, fmt.Errorf("ticket %v twice", ticket)
			}
		}
		r.ticket = ticket
		m.begin(r)
		m.requests = append(m.requests, r)
	case 4, 5, 6:
		ticket, _, ok := q.Head(now)
		if h := m.head(); op < 6 || h == nil {
			said += "take the head"
			if !ok {
				return said, nil // compare has seen whether that is right
			}
			r = h
		} else {
			said += "take"
			ticket = r.ticket
		}
		allowed := r.state == queue.Waiting
		err = attempt(allowed, func() error {
			number := q.Take(now, ticket)
			r.state = queue.InFlight
			r.attempts++
			if number != r.attempts {
				return fmt.Errorf("attempt %d, want %d", number, r.attempts)
			}
			return nil
		})
	case 7:
		if pick(p, 0, 0, 1) == 1 {
			said += "more"
			err = attempt(r.state == queue.InFlight, func() error {
				m.where[r.Value.(int)] = pick(p, "", "x", "y") // the next part is elsewhere
				e := q.More(now, r.ticket)
				r.state, r.host, r.attempts, r.returned, r.reason, r.aside = queue.Waiting, m.to(r), 0, 0, "", false
				return ended(e, r)
			})
			break
		}
		said += "done"
		err = attempt(r.state == queue.InFlight, func() error {
			e := q.Done(now, r.ticket)
			r.state = queue.Done
			return ended(e, r)
		})
	case 8, 9, 10:
		until := plus(m.now, pick(p, 0, 0, int64(-time.Second), int64(200*time.Millisecond), int64(time.Second), int64(3*time.Second), math.MaxInt64))
		said += fmt.Sprintf("retry at %v", until)
		err = attempt(r.state == queue.InFlight, func() error {
			e := q.Retry(now, r.ticket, until, said)
			m.retry(r, until, said)
			return ended(e, r)
		})
	case 11:
		until := plus(m.now, pick(p, 0, 0, int64(-time.Second), int64(200*time.Millisecond), int64(3*time.Second), math.MaxInt64))
		said += fmt.Sprintf("return until %v", until)
		err = attempt(r.state == queue.InFlight, func() error {
			m.where[r.Value.(int)] = pick(p, "", "x", "y") // redirected
			e := q.Return(now, r.ticket, until)
			r.state, r.host, r.notBefore, r.aside = queue.Waiting, m.to(r), max(r.notBefore, until), false
			r.attempts--
			r.returned++
			return ended(e, r)
		})
	case 12:
		said += "kill"
		err = attempt(r.state == queue.Waiting || r.state == queue.InFlight, func() error {
			e := q.Kill(now, r.ticket, said)
			r.reason = said
			m.die(r)
			return ended(e, r)
		})
	case 13:
		said += "cancel"
		if got, want := q.Cancel(now, r.ticket), r.state == queue.Waiting; got != want {
			err = fmt.Errorf("%v, want %v", got, want)
		} else if got {
			r.state = queue.Cancelled
		}
	case 14:
		if letters := m.letters(); len(letters) > 0 && p.choose(4) > 0 {
			r = letters[p.choose(len(letters))]
		}
		if p.choose(2) == 0 {
			said += "drop"
			if got, want := q.Drop(now, r.ticket), r.state == queue.Dead && r.kept; got != want {
				err = fmt.Errorf("%v, want %v", got, want)
			} else if got {
				r.state = queue.Dropped
			}
			break
		}
		said += "requeue"
		var want error
		if r.state != queue.Dead || !r.kept {
			want = queue.ErrGone
		} else if m.config.MaxLen > 0 && m.count(queue.Waiting) >= m.config.MaxLen {
			want = queue.ErrFull
		}
		err := q.Requeue(now, r.ticket)
		if !errors.Is(err, want) || want == nil && err != nil {
			return said, fmt.Errorf("%v, want %v", err, want)
		}
		if want == nil {
			m.begin(r)
		}
	case 15:
		said += "expire"
		e, ok := q.Expire(now)
		r := m.overdue()
		if ok != (r != nil) {
			return said, fmt.Errorf("%v, want %v", ok, r != nil)
		}
		if ok {
			m.expire(r)
			err = ended(e, r)
		}
	case 16:
		host := pick(p, "", "x", "y", "z")
		said += "hold " + host
		q.Hold(host)
		m.holds[host] = true
	case 17:
		host := pick(p, "", "x", "y", "z")
		said += "release " + host
		q.Release(host)
		delete(m.holds, host)
	case 18:
		if p.choose(2) == 0 {
			said += "lapse"
			err = attempt(r.state == queue.Waiting, func() error {
				e := q.Lapse(now, r.ticket, said)
				m.lapse(r, said, said)
				if e.Lapsed != (r.state == queue.Expired) {
					return fmt.Errorf("lapsed %v in state %v", e.Lapsed, r.state)
				}
				e.Lapsed = false
				return ended(e, r)
			})
			break
		}
		said += "set aside"
		err = attempt(r.state == queue.Waiting, func() error {
			q.SetAside(now, r.ticket)
			r.aside = r.aside || r.notBefore <= m.now
			return nil
		})
	case 19:
		host := pick(p, "", "x", "y", "z")
		if m.alone[host] = p.choose(2) == 0; m.alone[host] {
			said += "hold aside " + host
			q.HoldAside(host)
		} else {
			said += "release aside " + host
			q.ReleaseAside(host)
		}
	}
	m.flying = max(m.flying, m.count(queue.InFlight))
	return said, err
}

// compare looks at everything that can be seen.
func (m *model) compare(q *queue.Queue) error {
	if err := q.Verify(); err != nil {
		return err
	}
	want := queue.Counts{
		Submitted: len(m.requests), Waiting: m.count(queue.Waiting), InFlight: m.count(queue.InFlight), Done: m.count(queue.Done),
		Expired: m.count(queue.Expired), Dead: m.count(queue.Dead), Dropped: m.count(queue.Dropped), Cancelled: m.count(queue.Cancelled),
		Late: m.late,
	}
	if got := q.Counts(); got != want {
		return fmt.Errorf("counts %+v, want %+v", got, want)
	}
	if m.config.MaxLen > 0 && want.Waiting > m.config.MaxLen+m.flying {
		return fmt.Errorf("%d wait; MaxLen is %d, and %d were in flight", want.Waiting, m.config.MaxLen, m.flying)
	}
	wake, ok := q.Wake(m.now)
	if wakeWant, okWant := m.wake(); ok != okWant || ok && wake != wakeWant {
		return fmt.Errorf("wake %v %v, want %v %v", wake, ok, wakeWant, okWant)
	}
	ticket, r, ok := q.Head(m.now)
	if h := m.head(); ok != (h != nil) || ok && (ticket != h.ticket || *r != h.Request) {
		return fmt.Errorf("head %v %v, want %+v", ticket, ok, h)
	}
	var named []string
	q.Resources(func(resource string) { named = append(named, resource) })
	for _, of := range []string{"", "search", "books"} {
		ticket, r, ok := q.HeadOf(m.now, of)
		h := m.head(of)
		if ok != (h != nil) || ok && (ticket != h.ticket || *r != h.Request || q.Place(ticket) != m.place(h)) {
			return fmt.Errorf("head of %q %v %v, want %+v", of, ticket, ok, h)
		}
		if ok && !slices.Contains(named, of) {
			return fmt.Errorf("resources %q wait, without %q", named, of)
		}
		if of != "" && q.WaitForResource(of) == 0 && slices.Contains(named, of) {
			return fmt.Errorf("resources %q wait, and none of %q", named, of)
		}
	}
	var waiting []*modelled
	for _, r := range m.requests {
		info := q.Info(r.ticket)
		if !m.held(r) {
			if info != (queue.Info{}) {
				return fmt.Errorf("still knows %+v of %+v", info, r)
			}
			continue
		}
		deadline := limit.Never
		if r.deadline != nil {
			deadline = *r.deadline
		}
		want := queue.Info{
			Seq:   uint64(r.seq),
			State: r.state, Request: info.Request, Submitted: r.submitted, Deadline: deadline, NotBefore: r.notBefore,
			Attempts: r.attempts, Returned: r.returned, Reason: r.reason,
		}
		if r.state == queue.Waiting {
			want.Host = r.host
			whole := r.TTL
			if m.config.OnExpiry == queue.End && r.Renewal > r.TTL || !m.hasOne(r) && r.attempts > 0 && r.Renewal > 0 {
				whole = r.Renewal
			}
			if got := q.Whole(r.ticket); got != whole {
				return fmt.Errorf("whole time %v, want %v", got, whole)
			}
		}
		if info != want || *info.Request != r.Request {
			return fmt.Errorf("info %+v, want %+v", info, want)
		}
		if r.ID != "" {
			if ticket, state, ok := q.Lookup(r.ID); !ok || ticket != r.ticket || state != r.state {
				return fmt.Errorf("lookup of %q: %v %v %v, want %v %v", r.ID, ticket, state, ok, r.ticket, r.state)
			}
		}
		if r.state == queue.Waiting {
			waiting = append(waiting, r)
		}
	}
	for _, host := range []string{"", "x", "y", "z", "unheard of"} {
		n := 0
		for _, r := range waiting {
			if r.host == host {
				n++
			}
		}
		if got := q.WaitFor(host); got != n {
			return fmt.Errorf("%d wait for %q, want %d", got, host, n)
		}
	}
	slices.SortFunc(waiting, func(a, b *modelled) int {
		return cmp.Or(cmp.Compare(m.place(a), m.place(b)), cmp.Compare(a.seq, b.seq))
	})
	tickets := []queue.Ticket{}
	for _, r := range waiting {
		tickets = append(tickets, r.ticket)
	}
	if got := q.Waiting(); !slices.Equal(got, tickets) {
		return fmt.Errorf("waiting %v, want %v", got, tickets)
	}
	letters := []queue.DeadLetter{}
	for _, r := range m.letters() {
		letters = append(letters, queue.DeadLetter{Ticket: r.ticket, Request: r.Request, Submitted: r.submitted, Died: r.died, Attempts: r.attempts, Reason: r.reason})
	}
	if got := q.DeadLetters(); !slices.Equal(got, letters) {
		return fmt.Errorf("dead letters %+v, want %+v", got, letters)
	}
	return nil
}
