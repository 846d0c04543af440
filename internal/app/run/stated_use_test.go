package run

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
)

// weighing is an exchange that counts a weight for each key and minute, states it, and bans a key that it refused ten
// times.
type weighing struct {
	mu      sync.Mutex
	most    int
	weight  func(path string) int
	takes   time.Duration
	used    map[string]int
	refused map[string]int
}

func (s *weighing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	time.Sleep(s.takes / 2)
	s.count(w, r)
	time.Sleep(s.takes / 2)
}

func (s *weighing) count(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := r.Header.Get("X-Key")
	now := time.Now()
	minute := key + now.Truncate(time.Minute).String()
	if s.refused[key] >= 10 {
		w.WriteHeader(http.StatusTeapot)
		return
	}
	s.used[minute] += s.weight(r.URL.Path)
	w.Header().Set("X-Mbx-Used-Weight-1m", fmt.Sprint(s.used[minute]))
	if s.used[minute] > s.most {
		s.refused[key]++
		w.WriteHeader(http.StatusTooManyRequests)
	}
}

func (s *weighing) worst() (n int) {
	for _, refused := range s.refused {
		n = max(n, refused)
	}
	return n
}

// A limit in requests stands where the server counts a weight of 10. It is said once, with the flags that mend it, and
// the load keeps to what answers state: no key has more than three refusals, and all that the server allows is
// used. Before, each of these keys was banned by its tenth refusal, but for one request at a time.
func TestALimitOfRequestsAtAServerOfWeight(t *testing.T) {
	ten := func(string) int { return 10 }
	unlike := func(path string) int { return 1 + len(path)*4%37 }
	for _, c := range []struct {
		name        string
		keys        string
		weight      func(string) int
		concurrency int
		takes, most time.Duration
		says        string
	}{
		{"one at a time", "a", ten, 1, 10 * time.Millisecond, 3 * time.Minute, "about (9|1[0-9]) for"},
		{"many at once", "a", ten, 16, 100 * time.Millisecond, 3 * time.Minute, "about [0-9]+ for"},
		{"two keys", "ab", ten, 32, 100 * time.Millisecond, time.Minute, "about"},
		{"a crowd", "a", ten, 200, time.Second, 3 * time.Minute, "about [0-9]+ for"},
		{"unlike requests", "a", unlike, 16, 100 * time.Millisecond, 10 * time.Minute, "about"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &weighing{most: 1200, weight: c.weight, takes: c.takes, used: map[string]int{}, refused: map[string]int{}}
				b, url, _ := virtualBench(t, s.ServeHTTP)
				b.config.Concurrency = c.concurrency
				b.config.Limits = []format.Rate{{N: 1200, Per: time.Minute, Text: "1200/m"}}
				for _, k := range c.keys {
					b.config.Keys = append(b.config.Keys, format.Key{Name: string(k), Secret: string(k)})
				}
				var err error
				if b.config.Header, err = format.ParseHeaders([]string{"X-Key: {key}"}); err != nil {
					t.Fatal(err)
				}
				var lines []string
				for i := range 400 {
					lines = append(lines, fmt.Sprintf(`{"id":"%d","url":"%s%s"}`, i, url, strings.Repeat("k", 1+i%7)))
				}
				began := time.Now()
				out := b.run(lines...)
				took := time.Since(began)
				if out.err != nil || out.Done != 400 || s.worst() > 3 || took > c.most+10*time.Second {
					t.Errorf("%v: %d done after %v, %d refused with a key\n%s", out.err, out.Done, took, s.worst(), out.notices)
				}
				says := regexp.MustCompile("counts a weight of " + c.says + ".*: --limit '1200 weight/m' --charge 'GET /k")
				if len(says.FindAllString(out.notices, -1)) != 1 || strings.Count(out.notices, "server counts") != 1 {
					t.Errorf("says %q, want %q once", out.notices, says)
				}
			})
		})
	}
}
