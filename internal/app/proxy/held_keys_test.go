package proxy

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/limit/mono"
)

// strictSecrets is a server that counts each secret for itself, by limits that change for all. What arrived before a
// change counts in the new limits. A request is on its way for up to oneWay: so long after a change it passes by the
// limits of before, too.
type strictSecrets struct {
	mu      sync.Mutex
	began   time.Time
	rng     *rand.Rand
	quotas  quotas
	before  []quotas
	arrived map[string][]mono.Time // by secret
	gone    map[string]time.Time   // secrets that are taken out, and since when
	refused []string
	late    []string // requests that went with one of them
}

// quotas are the limits of a server until some instant: of all secrets, and of those with their own.
type quotas struct {
	all   []string
	own   map[string][]string
	until time.Time
}

const oneWay = 30 * time.Millisecond

func (s *strictSecrets) limit(all []string, own map[string][]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.quotas
	was.until = time.Now().Add(oneWay)
	s.before, s.quotas = append(s.before, was), quotas{all: all, own: maps.Clone(own)}
}

// fitsLocked reports whether one more request of a secret is within a quota, by its arrivals so far.
func (s *strictSecrets) fitsLocked(q *quotas, secret string, at mono.Time) bool {
	limits := q.all
	if own := q.own[secret]; own != nil {
		limits = own
	}
	for _, l := range ratesOf(limits...) {
		r, err := rule.NewRolling(rule.RollingConfig{Limit: l.N, Window: l.Per})
		if err != nil {
			panic(err)
		}
		for _, at := range s.arrived[secret] {
			r.Fits(at, 1)
			r.Count(at, 1, true)
		}
		if !r.Fits(at, 1) {
			return false
		}
	}
	return true
}

func (s *strictSecrets) travels() {
	s.mu.Lock()
	d := time.Duration(s.rng.Int64N(int64(oneWay)))
	s.mu.Unlock()
	time.Sleep(d)
}

func (s *strictSecrets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.travels()
	if !s.arrives(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")) {
		w.WriteHeader(http.StatusTooManyRequests)
	}
	s.travels()
}

func (s *strictSecrets) arrives(secret string) (fits bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	at := mono.Of(s.began, now)
	if since, gone := s.gone[secret]; gone && now.Sub(since) > oneWay {
		s.late = append(s.late, fmt.Sprintf("%s at %v, which is gone since %v", secret, now.Sub(s.began), since.Sub(s.began)))
	}
	fits = s.fitsLocked(&s.quotas, secret, at)
	for i := range s.before {
		was := &s.before[i]
		fits = fits || !now.After(was.until) && s.fitsLocked(was, secret, at)
	}
	if fits {
		arrived := append(s.arrived[secret], at)
		s.arrived[secret] = arrived[max(len(arrived)-100, 0):] // more than the largest limit
	} else {
		s.refused = append(s.refused, fmt.Sprintf("%s at %v", secret, now.Sub(s.began)))
	}
	return fits
}

// keyedFile is a configuration whose keys a seed changes.
type keyedFile struct {
	rng    *rand.Rand
	keys   []Key
	gone   []Key // taken out
	made   int
	limits []string
	own    map[string][]string // of secrets
	log    []string            // the changes
}

func (f *keyedFile) new() Key {
	k := Key{Name: f.next("K"), Secret: Secret(f.next("s"))}
	if f.rng.IntN(3) == 0 {
		f.limit(&k)
	}
	return k
}

// next is a new name.
func (f *keyedFile) next(of string) string {
	f.made++
	return fmt.Sprint(of, f.made)
}

// limit gives a key limits of its own, or takes them.
func (f *keyedFile) limit(k *Key) {
	own := [][]string{nil, {"10/s"}, {"3/300ms"}}[f.rng.IntN(3)]
	k.Limits = ratesOf(own...)
	f.own[string(k.Secret)] = own
}

// change draws a change of the keys.
func (f *keyedFile) change() {
	at := f.rng.IntN(len(f.keys))
	k := &f.keys[at]
	switch what := f.rng.IntN(9); {
	case what == 0 && len(f.keys) < 5:
		f.keys = append(f.keys, f.new())
		f.note("add", f.keys[len(f.keys)-1])
	case what == 1 && len(f.keys) > 1:
		f.note("remove", *k)
		f.gone, f.keys = append(f.gone, *k), slices.Delete(f.keys, at, at+1)
	case what == 2:
		f.note("rename", *k)
		k.Name = f.next("K")
		f.note("to", *k)
	case what == 3 && len(f.keys) > 1:
		other := &f.keys[(at+1)%len(f.keys)]
		k.Name, other.Name = other.Name, k.Name
		f.note("exchange names", *k, *other)
	case what == 4:
		f.gone = append(f.gone, *k)
		k.Secret = Secret(f.next("s"))
		f.own[string(k.Secret)] = f.own[string(f.gone[len(f.gone)-1].Secret)]
		f.note("a new secret", *k)
	case what <= 6 && len(f.gone) > 0 && len(f.keys) < 5: // one comes back, by its name or by another
		i := f.rng.IntN(len(f.gone))
		back := f.gone[i]
		f.gone = slices.Delete(f.gone, i, i+1)
		if f.rng.IntN(2) == 0 || slices.ContainsFunc(f.keys, func(k Key) bool { return k.Name == back.Name }) {
			back.Name = f.next("K")
		}
		f.keys = slices.Insert(f.keys, f.rng.IntN(len(f.keys)+1), back)
		f.note("back", back)
	case what == 7:
		f.limit(k)
		f.note("its own limits", *k)
	default:
		all := [][]string{{"20/s"}, {"8/s"}, {"12/500ms"}, {"20/s", "5/100ms"}, {"30/2s"}, {"9/s", "25/3s"}}
		f.limits = all[f.rng.IntN(len(all))]
		f.log = append(f.log, fmt.Sprint("limits ", f.limits))
	}
}

func (f *keyedFile) note(what string, keys ...Key) {
	for _, k := range keys {
		what += fmt.Sprintf(" %s (%s, %v)", k.Name, string(k.Secret), f.own[string(k.Secret)])
	}
	f.log = append(f.log, what)
}

// config is the configuration now.
func (f *keyedFile) config(t *testing.T) Config {
	c := to(mustURL(t, "http://server.test"), f.limits...)
	c.Live, c.MaxWait = true, time.Hour
	c.Upstreams[0].Name = "api"
	c.Upstreams[0].Header = []Field{{"Authorization", "Bearer {key}"}}
	c.Upstreams[0].Keys = slices.Clone(f.keys)
	return c
}

// Under any changes of keys and limits while 40 clients ask: no window at the server ever holds more than the limit
// for any secret, no request is lost, and none goes with a secret that is gone.
func TestKeysChangeUnderLoad(t *testing.T) {
	seeds := need.Fewer(uint64(6), 300)
	for seed := range seeds {
		f := &keyedFile{rng: rand.New(rand.NewPCG(seed, 1)), limits: []string{"20/s"}, own: map[string][]string{}}
		for range 2 + f.rng.IntN(2) {
			f.keys = append(f.keys, f.new())
		}
		synctest.Test(t, func(t *testing.T) { changesUnderLoad(t, seed, f) })
	}
}

func changesUnderLoad(t *testing.T, seed uint64, f *keyedFile) {
	s := &strictSecrets{began: time.Now(), rng: rand.New(rand.NewPCG(seed, 2)), arrived: map[string][]mono.Time{},
		gone: map[string]time.Time{}}
	s.limit(f.limits, f.own)
	x := virtual(t, s, f.config(t))
	done := make(chan struct{})
	var all sync.WaitGroup
	for range 40 {
		all.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if code, body := x.direct(); code != 200 {
					t.Errorf("%d %s", code, body)
					return
				}
			}
		})
	}
	for range 12 {
		if f.rng.IntN(3) > 0 { // else two in a row
			time.Sleep(time.Duration(f.rng.Int64N(int64(1500 * time.Millisecond))))
		}
		f.log = append(f.log, fmt.Sprint(time.Since(s.began)))
		f.change()
		s.limit(f.limits, f.own)
		next := f.config(t)
		next.Listen, next.Admin = x.proxy.config.Listen, x.proxy.config.Admin
		if err := x.proxy.Apply(next); err != nil {
			t.Error(err)
		}
		s.mu.Lock()
		s.gone = map[string]time.Time{}
		for _, k := range f.gone {
			if _, known := s.gone[string(k.Secret)]; !known {
				s.gone[string(k.Secret)] = time.Now()
			}
		}
		s.mu.Unlock()
	}
	time.Sleep(3 * time.Second)
	s.mu.Lock()
	for _, k := range f.keys {
		if all := s.arrived[string(k.Secret)]; len(all) == 0 || mono.Of(s.began, time.Now()).Sub(all[len(all)-1]) > 3*time.Second {
			t.Errorf("seed %d: nothing goes with %s", seed, k.Name)
		}
	}
	s.mu.Unlock()
	close(done)
	all.Wait()
	if len(s.refused) > 0 || len(s.late) > 0 {
		t.Errorf("seed %d: refused %v, late %v, after\n%s", seed, s.refused, s.late, strings.Join(f.log, "\n"))
	}
}

// A key that is away keeps its limits at the target that it was of, or at the upstream. The configuration stays as it
// is.
func TestLimitsOfKeysThatAreAway(t *testing.T) {
	key := func(name string) Key { return Key{Name: name, Secret: Secret("secret of " + name)} }
	away := func(target, name string) heldKey {
		return heldKey{ownKey: ownKey{target, name}, Key: key(name), away: true}
	}
	names := func(keys []Key) (all string) {
		for _, k := range keys {
			all += k.Name
		}
		return all
	}
	u := &Upstream{Keys: []Key{key("a")}, Targets: []Target{{Name: "one", Keys: []Key{key("b")}}, {Name: "two", Keys: []Key{key("c")}}}}
	all := heldKeys{{ownKey: ownKey{"one", "b"}, Key: key("b")}, away("one", "d"), away("two", "e"), away("two", "f"), away("", "g")}
	own := all.withAway(u)
	if got := []string{names(own.Keys), names(own.Targets[0].Keys), names(own.Targets[1].Keys)}; !slices.Equal(got, []string{"ag", "bd", "cef"}) {
		t.Errorf("the keys with limits are %q", got)
	}
	if got := []string{names(u.Keys), names(u.Targets[0].Keys), names(u.Targets[1].Keys)}; !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("the configuration has the keys %q by now", got)
	}
}
