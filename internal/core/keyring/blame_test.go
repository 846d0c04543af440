package keyring_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/keyring"
	"github.com/paceline-go/paceline/limit/mono"
)

// pause is how long a key stays away.
func pause(row int, proven bool) time.Duration {
	most := 10 * time.Minute
	if proven {
		most = 10 * time.Second
	}
	return min(time.Second<<(row-1), most)
}

// trial is a Ring with the history of all that its keys answered.
type trial struct {
	*testing.T
	*keyring.Ring
	patient bool
	rng     *rand.Rand
	now     mono.Time
	model   *blamed // as the doors decided before there was a Ring
	open    []*request
	flying  []flying
	n       int // requests so far

	accounts [][]keyring.Key
	turns    []int

	denied map[keyring.Key][]int // of each key, the requests that it denied since it last served one
	worse  map[keyring.Key][]int // of each key, those of them that others served
	away   map[keyring.Key]bool  // whether it stayed away, and has served nothing since
	row    int                   // requests in a row that were at fault, with nothing served between
	log    []string
}

type request struct {
	id  int
	d   keyring.Denials
	by  []keyring.Key // who denied it, in order
	bad bool          // every key denies it
}

type flying struct {
	of   *request
	key  keyring.Key
	sent mono.Time
	era  uint64
}

func newTrial(t *testing.T, seed uint64, keys int, patient bool) *trial {
	r := &trial{T: t, patient: patient, rng: rand.New(rand.NewPCG(seed, 2)),
		denied: map[keyring.Key][]int{}, worse: map[keyring.Key][]int{}, away: map[keyring.Key]bool{}}
	var away keyring.Away
	if patient {
		away = pause
	}
	r.Ring = keyring.New(keys, away)
	r.model = newBlamed(keys)
	for i := range keys {
		if i == 0 || r.rng.IntN(2) == 0 {
			r.accounts, r.turns = append(r.accounts, nil), append(r.turns, 0)
		}
		last := len(r.accounts) - 1
		r.accounts[last] = append(r.accounts[last], keyring.Key(i))
	}
	return r
}

func (r *trial) says(format string, a ...any) { r.log = append(r.log, fmt.Sprintf(format, a...)) }

// asks is K5: no key is picked that is out or has denied the request, while one of its account is not.
func (r *trial) asks(q *request) {
	account := r.rng.IntN(len(r.accounts))
	keys := r.accounts[account]
	var asked []keyring.Key
	for i := range keys {
		k := keys[(r.turns[account]+i)%len(keys)]
		_, out := r.Out(k)
		if may := !out && !slices.Contains(q.by, k); may != r.Asks(k, &q.d) {
			r.Fatalf("%q: Asks says %v of key %d for a request that %v denied", r.log, !may, k, q.by)
		} else if may {
			asked = append(asked, k)
		}
	}
	k := r.Pick(keys, &r.turns[account], &q.d)
	if len(asked) > 0 && k != asked[0] || !slices.Contains(keys, k) {
		r.Fatalf("%q: K5: key %d of %v is picked, and the turn is that of %v", r.log, k, keys, asked)
	}
	r.says("%v: %d with %d", r.now, q.id, k)
	r.flying = append(r.flying, flying{q, k, r.now, r.Era(k)})
}

func (r *trial) step() {
	r.now = r.now.Add(time.Duration(r.rng.IntN(3)/2*r.rng.IntN(3000)) * time.Millisecond)
	switch n := r.rng.IntN(12); {
	case n == 0:
		k := keyring.Key(r.rng.IntN(r.Len()))
		_, out := r.Out(k)
		if r.rng.IntN(2) == 0 {
			r.says("ban %d", k)
			if r.Ban(k, r.Era(k), "banned") == out {
				r.Fatalf("%q: the ban of key %d, out %v", r.log, k, out)
			}
			r.model.ban(int(k))
			break
		}
		r.says("back %d", k)
		if r.Return(k) != out {
			r.Fatalf("%q: the return of key %d, out %v", r.log, k, out)
		}
		if out {
			r.denied[k], r.worse[k], r.away[k] = nil, nil, false
			r.model.resume(int(k))
		}
	case n < 4 || len(r.flying) == 0:
		if len(r.open) == 0 || r.rng.IntN(2) == 0 {
			r.open = append(r.open, &request{id: r.n, bad: r.rng.IntN(4) == 0})
			r.n++
		}
		r.asks(r.open[r.rng.IntN(len(r.open))])
	default:
		i := r.rng.IntN(len(r.flying))
		f := r.flying[i]
		r.flying = slices.Delete(r.flying, i, i+1)
		if !slices.Contains(r.open, f.of) { // another attempt of it has ended it
			break
		}
		// A key denies everything for a while, and a bad request is denied by all.
		if f.of.bad || (r.now/mono.Time(20*time.Second)+mono.Time(f.key))%3 == 0 {
			r.denies(f)
		} else {
			r.serves(f)
		}
	}
	r.counts()
}

func (r *trial) over(q *request) {
	r.open = slices.DeleteFunc(r.open, func(o *request) bool { return o == q })
}

// denies is K4, where a key denied a request.
func (r *trial) denies(f flying) {
	q, k := f.of, f.key
	_, out := r.Out(k)
	alone := r.InUse() < 2 || out
	again, away := false, time.Duration(0)
	if r.patient {
		again, away = r.Denied(r.now, k, f.sent, &q.d)
	} else {
		r.Noted(k, &q.d)
	}
	r.says("%v: %d denies %d: again %v, away %v", r.now, k, q.id, again, away)
	q.by = append(q.by, k)
	if !slices.Contains(r.denied[k], q.id) {
		r.denied[k] = append(r.denied[k], q.id)
	}
	if !r.patient {
		if !slices.ContainsFunc(slices.Concat(r.accounts...), func(k keyring.Key) bool { return r.Asks(k, &q.d) }) {
			r.over(q)
		}
		return
	}
	if a, w := r.model.isDenied(r.now, int(k), f.sent, q.id); a != again || w != away {
		r.Fatalf("%q: the model has again %v, away %v", r.log, a, w)
	}
	keys := slices.Clone(q.by)
	slices.Sort(keys)
	if !again && len(slices.Compact(keys)) < 2 && len(q.by) < 6 && !alone {
		r.Fatalf("%q: K4: request %d is at fault, and %v denied it", r.log, q.id, q.by)
	}
	if n := len(q.by); alone || n > 1 && q.by[n-2] != k || n > 5 { // all that could be asked deny it
		r.row++
	}
	if away > 0 && len(r.denied[k]) < 3 && r.row < 3 && !r.away[k] {
		r.Fatalf("%q: K4: key %d is away after it denied %v", r.log, k, r.denied[k])
	}
	r.away[k] = r.away[k] || away > 0
	if !again {
		for _, by := range q.by { // the request was at fault, and not they
			if denials, _ := r.InARow(by); denials == 0 {
				r.denied[by], r.away[by] = nil, false
			}
		}
		r.over(q)
	}
}

// serves is K4, where a key served a request.
func (r *trial) serves(f flying) {
	q, k := f.of, f.key
	blamed := r.Served(k, &q.d)
	r.says("%v: %d serves %d: blamed %v", r.now, k, q.id, blamed)
	r.denied[k], r.worse[k], r.away[k], r.row = nil, nil, false, 0
	r.model.accepted(int(k), q.id)
	if q.d.Any() {
		r.Fatalf("%q: request %d is served, and its denials are kept", r.log, q.id)
	}
	var want []keyring.Key
	if !r.patient {
		slices.Sort(q.by)
		for _, by := range slices.Compact(q.by) {
			if by == k {
				continue
			}
			r.worse[by] = append(r.worse[by], q.id)
			if _, out := r.Out(by); !out && len(r.worse[by]) >= 3 {
				want = append(want, by)
			}
		}
	}
	slices.Sort(blamed)
	if !slices.Equal(blamed, want) {
		r.Fatalf("%q: K4: %v are to be out, want %v", r.log, blamed, want)
	}
	for _, by := range blamed {
		r.Ban(by, r.Era(by), "denied")
	}
	r.over(q)
}

// counts checks what the Ring counts.
func (r *trial) counts() {
	in := 0
	for k := range keyring.Key(r.Len()) {
		if _, out := r.Out(k); !out {
			in++
		}
		if denials, _ := r.InARow(k); r.patient && denials != r.model.keys[k].denials {
			r.Fatalf("%q: key %d has %d denials in a row, the model %d", r.log, k, denials, r.model.keys[k].denials)
		} else if r.patient && r.Away(k) > 0 != (denials >= 3) {
			r.Fatalf("%q: key %d would stay away for %v after %d denials", r.log, k, r.Away(k), denials)
		}
	}
	if in != r.InUse() {
		r.Fatalf("%q: %d keys are in use, want %d", r.log, r.InUse(), in)
	}
}

func runTrial(t *testing.T, seed uint64, keys int, patient bool) {
	r := newTrial(t, seed, keys, patient)
	for range 200 {
		r.step()
	}
}

// K4: who is at fault for denials, and that the Ring decides as the Dispatcher did before there was
// one. K5: a key that is out is not picked while another is in.
func TestBlame(t *testing.T) {
	for seed := range uint64(1000) {
		runTrial(t, seed, 1+int(seed%4), seed%8 < 4)
	}
}

func FuzzBlame(f *testing.F) {
	f.Add(uint64(1), uint8(3), true)
	f.Fuzz(func(t *testing.T, seed uint64, keys uint8, patient bool) { runTrial(t, seed, 1+int(keys%6), patient) })
}

// A ban by the answer to an attempt from before the key came back is none.
func TestBanOfBefore(t *testing.T) {
	r, k := keyring.New(1, nil), keyring.Key(0)
	before := r.Era(k)
	if !r.Ban(k, before, "401") || r.Ban(k, before, "again") {
		t.Error("a ban is news once")
	}
	if why, out := r.Out(k); !out || why != "401" {
		t.Errorf("out %v: %q", out, why)
	}
	if !r.Return(k) || r.Return(k) {
		t.Error("a return is news once")
	}
	if r.Ban(k, before, "late") || !r.Trusted(k) {
		t.Error("late news ban the key again")
	}
	if !r.Ban(k, r.Era(k), "new") || r.Trusted(k) {
		t.Error("news do not")
	}
}

// A key that comes back begins anew: nothing of before is evidence.
func TestReturnForgets(t *testing.T) {
	for name, away := range map[string]func(int, bool) time.Duration{"patient": pause, "not patient": nil} {
		r, bad, good := keyring.New(2, away), keyring.Key(0), keyring.Key(1)
		once := func() (blamed bool) {
			d := new(keyring.Denials)
			pause := time.Duration(0)
			if away == nil {
				r.Noted(bad, d)
			} else {
				_, pause = r.Denied(1, bad, 1, d)
			}
			return len(r.Served(good, d)) > 0 || pause > 0
		}
		for range 2 {
			if once() {
				t.Errorf("%s: it is at fault before the third denial", name)
			}
		}
		r.Misordered(bad)
		r.Ban(bad, r.Era(bad), "401")
		r.Return(bad)
		if denials, nonces := r.InARow(bad); denials != 0 || nonces != 0 {
			t.Errorf("%s: back with %d denials and %d nonces", name, denials, nonces)
		}
		for i := range 3 {
			if blamed := once(); blamed != (i == 2) {
				t.Errorf("%s: after %d denials since, at fault: %v", name, i+1, blamed)
			}
		}
	}
}

// A key that refuses nonces which are in order stays away from the third in a row on.
func TestMisordered(t *testing.T) {
	r, k := keyring.New(1, pause), keyring.Key(0)
	var got []time.Duration
	for range 5 {
		got = append(got, r.Misordered(k))
	}
	r.Served(k, &keyring.Denials{})
	got = append(got, r.Misordered(k))
	if want := "[0s 0s 1s 2s 4s 0s]"; fmt.Sprint(got) != want {
		t.Errorf("%v, want %s", got, want)
	}
	if _, n := r.InARow(k); n != 1 {
		t.Errorf("%d in a row, want 1", n)
	}
}

// Two requests in a row that died of denials are taken to be at fault, and two more for each recent
// proof of it; a hundred at most.
func TestHowManyAreBelieved(t *testing.T) {
	for own, most := range map[int]int{0: 2, 1: 4, 20: 42, 49: 100, 1000: 100} {
		if !keyring.Believes(most-1, own) || keyring.Believes(most, own) {
			t.Errorf("where %d were at fault lately, it is not the %dth that is believed last", own, most)
		}
	}
}
