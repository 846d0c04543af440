package keyring_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/keyring"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

const (
	ofEach = 4 // what each organization allows in any second
	ms     = time.Millisecond
)

func perSecond() *limit.Rolling {
	l, err := limit.NewRolling(limit.RollingConfig{Limit: ofEach, Window: time.Second, Margin: -1})
	if err != nil {
		panic(err)
	}
	return l
}

// front is a front end in the small: it keeps the limits of accounts, and does what Owners decide.
type front struct {
	*census
	now      mono.Time
	limits   map[*keyring.Account]*limit.Rolling
	past     map[string]*keyring.Past
	alone    map[string]*limit.Rolling // of each key, what it would be if all that it sent counted there
	open     []*sending
	arrivals map[string][]limittest.Arrival // of each organization
	numbers  uint64
	strict   bool // every newcomer counts in all that it may belong to
}

type sending struct {
	key  string
	in   map[*keyring.Account]*limit.Sent // where it counts
	sent *limit.Sent                      // where it would be by itself
}

// admit makes a request of that cost count in limits.
func (f *front) admit(l limit.Limiter, cost limit.Cost) *limit.Sent {
	s := &limit.Sent{At: f.now, Number: f.number(), Cost: cost}
	l.Admit(s)
	return s
}

func (f *front) number() uint64 {
	f.numbers++
	return f.numbers
}

func newFront(t *testing.T, seed uint64, keys, orgs int) *front {
	f := &front{census: newCensus(t, seed, keys, orgs), limits: map[*keyring.Account]*limit.Rolling{},
		past: map[string]*keyring.Past{}, alone: map[string]*limit.Rolling{}, arrivals: map[string][]limittest.Arrival{}}
	f.config = keyring.OwnersConfig{Most: 1 + f.rng.IntN(3), FirstNames: f.rng.IntN(2) == 0, MaxKeys: keys}
	f.strict = f.config.Most >= orgs && f.rng.IntN(2) == 0
	f.Owners = keyring.NewOwners(f.config)
	for _, k := range f.keys {
		f.past[k], f.alone[k] = &keyring.Past{}, perSecond()
	}
	return f
}

// at returns the limits of an account, and makes new ones with what counts there from the start.
func (f *front) at(a *keyring.Account) *limit.Rolling {
	if f.limits[a] == nil {
		f.limits[a] = perSecond()
		var all []limit.Past
		for _, k := range f.keys {
			if f.met[k] && slices.Contains(f.CountsIn(k), a) {
				all = append(all, *f.past[k]...)
			}
		}
		slices.SortStableFunc(all, func(a, b limit.Past) int { return cmp.Compare(a.At, b.At) })
		limit.Replay(f.limits[a], f.now, mono.Min, all)
	}
	return f.limits[a]
}

// ready returns when each cost may go, by each limiter.
func (f *front) ready(l *limit.Rolling) (all [ofEach]mono.Time) {
	for n := range all {
		all[n] = l.Ready(f.now, limit.Cost{limit.Requests: int64(n + 1)})
	}
	return all
}

// moves has Owners take something in, makes keys count elsewhere, and checks K2.
func (f *front) moves(takes func() []string) {
	before, from := map[*keyring.Account][ofEach]mono.Time{}, map[string][]*keyring.Account{}
	for a, l := range f.limits {
		before[a] = f.ready(l)
	}
	for _, k := range f.keys {
		from[k] = f.CountsIn(k)
	}
	all := takes()
	for _, k := range all {
		for _, to := range f.CountsIn(k) {
			if slices.Contains(from[k], to) {
				continue
			}
			if was := f.limits[to]; was != nil {
				f.past[k].Count(f.now, f.number, was)
			}
			f.at(to)
		}
	}
	for _, k := range all {
		for _, s := range f.open {
			if s.key == k {
				for _, to := range f.CountsIn(k) {
					if s.in[to] == nil {
						s.in[to] = f.admit(f.at(to), s.sent.Cost)
					}
				}
			}
		}
	}
	for _, k := range all {
		for _, to := range f.CountsIn(k) {
			now, alone := f.ready(f.at(to)), f.ready(f.alone[k])
			for n := range now {
				if now[n] < before[to][n] || now[n] < alone[n] {
					f.Fatalf("%q: K2: %d of %s go at %v in %v, before at %v, by itself at %v", f.log, n+1, k,
						now[n], to, before[to][n], alone[n])
				}
			}
		}
	}
}

func (f *front) send() {
	k := f.keys[f.rng.IntN(len(f.keys))]
	if !f.met[k] {
		f.log = append(f.log, "meet "+k)
		f.met[k] = f.Meet(k)
	}
	cost := limit.Cost{limit.Requests: int64(1 + f.rng.IntN(3))}
	in := f.CountsIn(k)
	for _, a := range in {
		if f.at(a).Ready(f.now, cost) > f.now {
			return
		}
	}
	if f.Single(k) && slices.ContainsFunc(f.open, func(s *sending) bool { return s.key == k }) { // K3
		return
	}
	s := &sending{k, map[*keyring.Account]*limit.Sent{}, f.admit(f.alone[k], cost)}
	for _, a := range in {
		s.in[a] = s.sent
		f.at(a).Admit(s.sent)
	}
	f.open = append(f.open, s)
	f.log = append(f.log, fmt.Sprint(f.now, " ", k, " in ", in))
}

func (f *front) answer() {
	i := f.rng.IntN(len(f.open))
	s := f.open[i]
	k := s.key
	o := limit.Outcome{Result: limit.Result(f.rng.IntN(5))}
	if o.Result != limit.Unsent { // as late as can be
		f.arrivals[f.whose[k]] = append(f.arrivals[f.whose[k]], limittest.Arrival{At: f.now, Cost: s.sent.Cost})
	}
	f.log = append(f.log, fmt.Sprint(f.now, " ", k, " ", o.Result))
	switch {
	case o.Result == limit.Accepted && f.whose[k] != "":
		f.moves(func() []string { return f.Named(k, f.whose[k]) })
	case o.Result == limit.Accepted:
		f.moves(func() []string { return f.Unnamed(k, true) })
	}
	f.open = slices.Delete(f.open, i, i+1)
	for a, sent := range s.in {
		if in := f.CountsIn(k); slices.Contains(in, a) {
			f.limits[a].Settle(f.now, sent, &o)
		} else {
			f.limits[a].Settle(f.now, sent, &limit.Outcome{Result: limit.Unsent})
		}
	}
	f.alone[k].Settle(f.now, s.sent, &o)
	late := f.now
	if o.Result == limit.Unknown { // it may still arrive
		late = late.Add(5 * time.Second)
	}
	if o.Result == limit.Unsent {
		return
	}
	f.past[k].Add(limit.Past{At: late, Cost: s.sent.Cost, Result: o.Result, Sent: s.sent.At})
}

func runFront(t *testing.T, seed uint64, keys, orgs int) {
	f := newFront(t, seed, keys, orgs)
	for range 300 {
		f.now = f.now.Add(time.Duration(f.rng.IntN(3)/2*f.rng.IntN(300)) * ms)
		switch n := f.rng.IntN(20); {
		case n == 0 && !f.strict:
			if k := f.keys[f.rng.IntN(len(f.keys))]; f.met[k] {
				f.moves(func() []string { f.Alone(k); return []string{k} })
			}
		case n == 1 && !f.strict && len(f.open) == 0:
			k := f.keys[f.rng.IntN(len(f.keys))]
			if f.whose[k] != "" {
				f.whose[k] = fmt.Sprint("org", f.rng.IntN(orgs))
			}
		case n%2 == 0 && len(f.open) > 0:
			f.answer()
		default:
			f.send()
		}
	}
	for name, all := range f.arrivals {
		if !f.strict || name == "" {
			continue
		}
		if err := limittest.Rolling(ofEach, time.Second-1, limit.Requests)(all); err != nil {
			t.Fatalf("%q: keys of %v: %s: %v", f.log, f.whose, name, err)
		}
	}
}

// K2: where a key moves no cost goes sooner than before, nor sooner than if all that the key ever
// sent had counted there. So no organization gets more than it allows, where every newcomer counts
// in all accounts to which it may belong.
func TestMoves(t *testing.T) {
	for seed := range uint64(1000) {
		runFront(t, seed, 1+int(seed%6), 1+int(seed/6%3))
	}
}

func FuzzMoves(f *testing.F) {
	f.Add(uint64(1), uint8(3), uint8(2))
	f.Fuzz(func(t *testing.T, seed uint64, keys, orgs uint8) { runFront(t, seed, 1+int(keys%12), 1+int(orgs%5)) })
}

// K6: a Past is bounded, and counts at least what was added in every window that ends now.
func TestPast(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 3))
	for range 200 {
		p := &keyring.Past{}
		var all []limit.Past
		now := mono.Time(0)
		for range rng.IntN(500) {
			now = now.Add(time.Duration(rng.IntN(900)) * ms)
			one := limit.Past{At: now.Add(time.Duration(rng.IntN(5)-3) * time.Second), Cost: limit.Cost{limit.Requests: 1},
				Result: limit.Result(rng.IntN(4))}
			p.Add(one)
			all = append(all, one)
			if len(*p) > 64 {
				t.Fatalf("%d entries", len(*p))
			}
		}
		for _, window := range []time.Duration{time.Second, 10 * time.Second, time.Minute} {
			least, got := int64(0), int64(0)
			for _, one := range all {
				if now.Sub(one.At) < window {
					least += one.Cost[limit.Requests]
				}
			}
			for _, one := range *p {
				if now.Sub(one.At) < window {
					got += one.Cost[limit.Requests]
				}
			}
			if got < least || window == time.Second && got > least+4 {
				t.Errorf("in %v %d count, want %d", window, got, least)
			}
		}
	}
}

// A Past counts in limits that are in use as of now.
func TestPastCounts(t *testing.T) {
	p, l := new(keyring.Past), perSecond()
	none := func() uint64 { return 0 }
	p.Count(0, none, l)
	p.Add(limit.Past{At: 0, Cost: limit.Cost{limit.Requests: 2}, Result: limit.Accepted})
	p.Count(mono.Time(time.Hour), none, l)
	if u := limit.AppendUsage(nil, l, mono.Time(time.Hour)); u[0].Used != 2 {
		t.Errorf("%d are used, want 2", u[0].Used)
	}
}

// Requests that count as one have the result that counts for the most.
func TestPastOfSeveralResults(t *testing.T) {
	for _, c := range []struct{ a, b, want limit.Result }{
		{limit.Accepted, limit.Limited, limit.Accepted}, {limit.Limited, limit.Accepted, limit.Accepted},
		{limit.Limited, limit.Limited, limit.Limited}, {limit.Limited, limit.Unknown, limit.Failed},
	} {
		p := new(keyring.Past)
		for n := range 65 {
			p.Add(limit.Past{At: mono.Time(n), Cost: limit.One, Result: []limit.Result{c.a, c.b}[n%2], Sent: mono.Time(n)})
		}
		first := (*p)[0]
		if first.Result != c.want || first.At != 1 || first.Sent != 0 || first.Cost != (limit.Cost{limit.Requests: 2}) {
			t.Errorf("%v and %v are %+v, want %v", c.a, c.b, first, c.want)
		}
	}
}

// What a limiter has used counts in another, each window by itself. Requests in flight count by themselves.
func TestCarry(t *testing.T) {
	number := uint64(0)
	next := func() uint64 { number++; return number }
	admit := func(l limit.Limiter, at mono.Time, n int64) *limit.Sent {
		s := &limit.Sent{At: at, Number: next(), Cost: limit.Cost{limit.Requests: n}}
		l.Admit(s)
		return s
	}
	answered := func(l limit.Limiter, at mono.Time, n int64) {
		l.Settle(at, admit(l, at, n), &limit.Outcome{Result: limit.Accepted})
	}
	room := func(l limit.Limiter, now mono.Time) (n int64) {
		for l.Ready(now, limit.Cost{limit.Requests: n + 1}) <= now {
			n++
		}
		return n
	}
	second := mono.Time(time.Second)
	of := func(perSecond, perMinute int64) limit.Limiter {
		rolling := func(n int64, window time.Duration) limit.Limiter {
			l, err := limit.NewRolling(limit.RollingConfig{Limit: n, Window: window, Margin: -1})
			if err != nil {
				t.Fatal(err)
			}
			return l
		}
		return limit.NewAll(rolling(perSecond, time.Second), rolling(perMinute, time.Minute))
	}
	from, to := of(5, 20), of(5, 20)
	answered(from, 0, 5)
	answered(from, 2*second, 5)
	answered(to, 0, 5)
	admit(from, 30*second, 2)
	answered(to, 30*second, 1)
	if a, b := room(from, 30*second), room(to, 30*second); a != 3 || b != 4 {
		t.Fatalf("%d and %d may go before, want 3 and 4", a, b)
	}
	joined := admit(to, 30*second, 2)
	keyring.Carry(30*second, next, from, to)
	if n := room(to, 30*second); n != 2 { // of 5 a second 3 are used, of 20 a minute 18
		t.Errorf("%d may go after a move, want 2", n)
	}
	to.Settle(32*second, joined, &limit.Outcome{Result: limit.Unsent})
	if n := room(to, 32*second); n != 4 { // of 20 a minute 16 are used
		t.Errorf("%d may go at the end, want 4", n)
	}
	keyring.Carry(33*second, next, of(5, 20), to) // nothing
	keyring.Carry(33*second, next, nil, to)
	if n := room(to, 33*second); n != 4 {
		t.Errorf("%d may go after moves of nothing, want 4", n)
	}
}

// Where one organization counts output by another kind of limit, the limits beside it take over what was used.
func TestCarryBesideAnotherKind(t *testing.T) {
	rolling, err := limit.NewRolling(limit.RollingConfig{Limit: 9, Window: time.Minute, Unit: limit.Output})
	if err != nil {
		t.Fatal(err)
	}
	produced, err := limit.NewProduced(limit.ProducedConfig{Limit: 9, Window: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ from, to limit.Limiter }{{rolling, produced}, {produced, rolling}} {
		from, to := limit.NewAll(perSecond(), c.from), limit.NewAll(perSecond(), c.to)
		number := uint64(1)
		s := &limit.Sent{Number: number, Cost: limit.Cost{limit.Requests: 1, limit.Output: 2}}
		from.Admit(s)
		from.Settle(0, s, &limit.Outcome{Result: limit.Accepted})
		keyring.Carry(mono.Time(ms), func() uint64 { number++; return number }, from, to)
		if at := to.Ready(mono.Time(ms), limit.Cost{limit.Requests: ofEach}); at <= mono.Time(ms) {
			t.Errorf("%T to %T: %d requests may go after one", c.from, c.to, ofEach)
		}
		if at := to.Ready(mono.Time(ms), limit.Cost{limit.Requests: ofEach - 1}); at > mono.Time(ms) {
			t.Errorf("%T to %T: %d requests may go at %v, want at once", c.from, c.to, ofEach-1, at)
		}
	}
}
