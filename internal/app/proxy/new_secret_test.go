package proxy

import (
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/limit/mono"
)

// strictKeys is a server that counts each key for itself. It answers what is over the limit with 429, and denies keys
// that it does not know.
type strictKeys struct {
	mu      sync.Mutex
	began   time.Time
	rules   map[string]rule.Amendable // by Authorization
	served  map[string]int
	refused int
}

func (s *strictKeys) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := r.Header.Get("Authorization")
	counts := s.rules[key]
	switch {
	case counts == nil:
		w.WriteHeader(http.StatusUnauthorized)
	case !counts.Arrive(mono.Of(s.began, time.Now()), 1):
		s.refused++
		w.WriteHeader(http.StatusTooManyRequests)
	default:
		s.served[key]++
	}
}

// A key gets a new secret under load, as after the provider has revoked it. The other key's limits go on, also for
// requests that wait. The new secret is used at once, and also a key that was out of use goes again.
func TestNewSecretUnderLoad(t *testing.T) {
	for _, revoked := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := &strictKeys{began: time.Now(), rules: map[string]rule.Amendable{}, served: map[string]int{}}
			for _, secret := range []string{"one", "two", "three"} {
				l, err := rule.NewRolling(rule.RollingConfig{Limit: 50, Window: time.Second})
				if err != nil {
					t.Fatal(err)
				}
				s.rules["Bearer "+secret] = l
			}
			conf := to(mustURL(t, "http://server.test"), "50/s")
			conf.Live, conf.MaxWait = true, time.Hour
			with := func(second Secret) Config {
				c := conf
				u := c.Upstreams[0]
				u.Header = []Field{{"Authorization", "Bearer {key}"}}
				u.Keys = []Key{{Name: "K1", Secret: "one"}, {Name: "K2", Secret: second}}
				c.Upstreams = []Upstream{u}
				return c
			}
			if revoked {
				delete(s.rules, "Bearer two")
			}
			x := virtual(t, s, with("two"))
			all := newCrowd(t, x.proxy)
			all.join("", 600, same("/"))
			time.Sleep(2500 * time.Millisecond)
			next := with("three")
			next.Listen, next.Admin = x.proxy.config.Listen, x.proxy.config.Admin
			if err := x.proxy.Apply(next); err != nil {
				t.Fatal(err)
			}
			all.join("", 300, same("/"))
			before := s.served["Bearer two"]
			all.asking.Wait()
			if s.refused > 0 || s.served["Bearer two"] != before || s.served["Bearer three"] < 200 {
				t.Errorf("revoked %v: %d are refused, served %v, %d by the old secret before", revoked, s.refused, s.served, before)
			}
			if took := time.Since(s.began); took > 14*time.Second { // those in line when the key went out stay with the other
				t.Errorf("revoked %v: 900 at 100 in a second took %v", revoked, took)
			}
		})
	}
}
