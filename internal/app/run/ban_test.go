package run

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// banning is a server that allows each key so many requests in any second. Ten refusals, or as many as it is told, ban the
// key for a minute, in which it answers 403. It may only be used in a bubble.
type banning struct {
	limit       int // in any second
	bans        int // so many refusals ban a key
	ban, answer time.Duration
	says        string // the body of the 403s
	harder      bool   // a request within the ban prolongs it

	mu   sync.Mutex
	keys map[string]*bannedKey
}

type bannedKey struct {
	served          []time.Time
	refused, denied int
	until, latest   time.Time
	bursts          int       // requests within 0.9 s of the one before, once the ban is known
	known           time.Time // when the first answer that tells of the ban is there
}

func newBanning(says string, harder bool) *banning {
	return &banning{limit: 20, bans: 10, ban: time.Minute, answer: 80 * time.Millisecond, says: says, harder: harder,
		keys: map[string]*bannedKey{}}
}

func (s *banning) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	status := s.judge(r.FormValue("api_key"), time.Now())
	time.Sleep(s.answer)
	if status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	w.WriteHeader(status)
	if status == http.StatusForbidden {
		fmt.Fprint(w, s.says)
	}
}

func (s *banning) judge(name string, now time.Time) (status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.keys[name]
	if k == nil {
		k = &bannedKey{}
		s.keys[name] = k
	}
	if now.Before(k.until) {
		if k.denied++; k.denied == 1 {
			k.known = now.Add(s.answer)
		}
		if now.After(k.known) && now.Sub(k.latest) < 900*time.Millisecond {
			k.bursts++
		}
		k.latest = now
		if s.harder {
			k.until = now.Add(s.ban)
		}
		return http.StatusForbidden
	}
	for len(k.served) > 0 && now.Sub(k.served[0]) >= time.Second {
		k.served = k.served[1:]
	}
	if len(k.served) < s.limit {
		k.served = append(k.served, now)
		return http.StatusOK
	}
	if k.refused++; k.refused >= s.bans {
		k.refused, k.until, k.latest = 0, now.Add(s.ban), now
	}
	return http.StatusTooManyRequests
}

// A limit that is far too high gets both keys banned for a minute. No request is lost for it, one at a time tests a key, and
// the rest is done seconds after the ban. Before, 15 of 350 were dead, 52 were sent in bursts to banned keys, and the
// last one was done after 11 minutes.
func TestBannedForAWhile(t *testing.T) {
	for _, c := range []struct {
		says   string
		harder bool
		most   time.Duration
	}{{`{"error":"banned"}`, false, 80 * time.Second}, {"", false, 80 * time.Second}, {"", true, 150 * time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			s := newBanning(c.says, c.harder)
			s.bans = 3 // before the first refusals are answered
			v := newInTime(t, s, perSecond(41))
			v.config.Concurrency, v.config.Attempts = 64, 3
			v.keys("A", "B")
			const n = 350
			got := v.run(requests(n, "http://server/"))
			if got.err != nil || got.Done != n || got.took > c.most {
				t.Errorf("%q: %d of %d are done after %v, want all within %v: %v, %+v", c.says, got.Done, n, got.took, c.most,
					got.err, got.Totals)
			}
			for name, k := range s.keys {
				if k.denied == 0 || k.bursts > 0 {
					t.Errorf("%q: key %s was denied %d times by its ban, want some, and none in a burst: %d", c.says, name,
						k.denied, k.bursts)
				}
			}
			if why := got.progress[0].Why; !strings.HasPrefix(why, "the next test of key ") {
				t.Errorf("%q: a minute after the start it waits for %s, want the next test of a key", c.says, why)
			}
		})
	}
}

// A limit twice too high is found out before ten refusals, so that no key is banned, and one that is right costs less
// than a second.
func TestFirstWindow(t *testing.T) {
	for _, c := range []struct {
		limit  int
		answer time.Duration
		most   time.Duration // longer than sending a whole window at once takes
	}{
		{40, 1 * time.Millisecond, 20 * time.Millisecond}, {40, 80 * time.Millisecond, 500 * time.Millisecond},
		{20, 500 * time.Millisecond, time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			for _, right := range []bool{false, true} {
				s := newBanning("", false)
				s.answer = c.answer
				if s.limit = c.limit; !right {
					s.limit /= 2
				}
				v := newInTime(t, s, perSecond(int64(c.limit)))
				v.config.Concurrency, v.config.Attempts = 200, 3
				v.keys("A", "B")
				n := 2 * 3 * c.limit // three windows of each key
				got := v.run(requests(n, "http://server/"))
				for name, k := range s.keys {
					if k.denied > 0 || right && k.refused > 0 {
						t.Errorf("%d/s, answers in %v: key %s was refused %d times and denied %d times", c.limit, c.answer, name,
							k.refused, k.denied)
					}
				}
				if atOnce := 2*time.Second + 4*c.answer; got.Done != n || right && got.took > atOnce+c.most {
					t.Errorf("%d/s, answers in %v: %d of %d done in %v, at once it would be %v", c.limit, c.answer, got.Done, n,
						got.took, atOnce)
				}
			}
		})
	}
}
