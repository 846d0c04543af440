package transport_test

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/transport"
)

// wholeSeconds is a server of 20 a second that says what is left, and in whole seconds when there will be more.
type wholeSeconds struct {
	rule  rule.Rule
	ends  func(now mono.Time, passed bool) mono.Time // when there is more, as the server has it
	reset func(now, ends time.Time) int64            // how it says so; nil: it says nothing
	way   func(*rand.Rand) time.Duration
	epoch time.Time

	mu              sync.Mutex
	rng             *rand.Rand
	served, refused int
}

const secondsLimit = 20

func (s *wholeSeconds) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	there, back := s.way(s.rng), s.way(s.rng)
	s.mu.Unlock()
	time.Sleep(there)
	resp := s.check()
	time.Sleep(back)
	resp.Request = r
	return resp, nil
}

func (s *wholeSeconds) check() *http.Response {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := mono.Of(s.epoch, time.Now())
	status := http.StatusOK
	if s.rule.Arrive(now, 1) {
		s.served++
	} else {
		s.refused++
		status = http.StatusTooManyRequests
	}
	ends := s.ends(now, status == http.StatusOK)
	if s.reset == nil {
		return reply(status, "")
	}
	return reply(status, "", "Date", time.Now().UTC().Format(http.TimeFormat),
		"X-RateLimit-Limit", strconv.Itoa(secondsLimit), "X-RateLimit-Remaining", strconv.FormatInt(rule.Left(s.rule, now, secondsLimit, 0), 10),
		"X-RateLimit-Reset", strconv.FormatInt(s.reset(time.Now(), s.epoch.Add(time.Duration(ends))), 10))
}

// counts has the server count in windows of so long, of one kind.
func (s *wholeSeconds) counts(t *testing.T, kind string, window time.Duration) {
	t.Helper()
	var err error
	begin := mono.Min // of the window, or when the oldest request came that counts
	switch kind {
	case "clock":
		s.rule, err = rule.NewCalendar(rule.CalendarConfig{Limit: secondsLimit, Window: window, Phase: mono.Time(window) / 3})
		s.ends = func(now mono.Time, _ bool) mono.Time {
			return now - (now-mono.Time(window)/3)%mono.Time(window) + mono.Time(window)
		}
	case "first":
		s.rule, err = rule.NewAnchored(rule.AnchoredConfig{Limit: secondsLimit, Window: window})
		s.ends = func(now mono.Time, _ bool) mono.Time {
			if now >= begin.Add(window) {
				begin = now
			}
			return begin.Add(window)
		}
	case "rolling":
		s.rule, err = rule.NewRolling(rule.RollingConfig{Limit: secondsLimit, Window: window})
		var log []mono.Time
		s.ends = func(now mono.Time, passed bool) mono.Time {
			if passed {
				log = append(log, now)
			}
			for log[0] <= now.Add(-window) {
				log = log[1:]
			}
			return log[0].Add(window)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// flood has so many clients send for so long by a Transport of that Config.
func (s *wholeSeconds) flood(t *testing.T, clients int, long time.Duration, c transport.Config) {
	t.Helper()
	s.rng = rand.New(rand.NewPCG(1, 2))
	c.Base, c.Attempts = s, 1
	tr := mustNew(t, c)
	stop := time.Now().Add(long)
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for time.Now().Before(stop) {
				if resp, err := tr.RoundTrip(get(t, "http://a.test/")); err == nil {
					resp.Body.Close()
				}
			}
		})
	}
	all.Wait()
}

// up is an instant in whole seconds since 1970, up.
func up(at time.Time) int64 { return at.Add(time.Second - 1).Unix() }

// A server that states in whole seconds when there will be more costs nothing of the rate of a
// right limit. This holds if the statement is up to two seconds late. It also holds for a rolling
// window, of which some comes back before.
func TestWholeSeconds(t *testing.T) {
	race.Without(t) // the requests go as those of TestPerSecond
	says := map[string]func(now, ends time.Time) int64{
		"rounded up":                            func(_, ends time.Time) int64 { return up(ends) },
		"rounded up, less the second it is now": func(now, ends time.Time) int64 { return up(ends) - now.Unix() },
		"seconds until then, rounded up":        func(now, ends time.Time) int64 { return int64((ends.Sub(now) + time.Second - 1) / time.Second) },
	}
	ways := map[string]func(*rand.Rand) time.Duration{
		"near": func(*rand.Rand) time.Duration { return time.Millisecond },
		"far": func(r *rand.Rand) time.Duration {
			return 20*time.Millisecond + time.Duration(r.ExpFloat64()*float64(10*time.Millisecond))
		},
	}
	limits := map[string]func() transport.Config{
		"of all": func() transport.Config {
			return transport.Config{Limiter: rolling(t, secondsLimit, time.Second, limit.Requests)}
		},
		"of the key": func() transport.Config {
			return transport.Config{Limit: func(p transport.Partition) limit.Limiter {
				if p.Scope != provider.Key {
					return nil
				}
				return rolling(t, secondsLimit, time.Second, limit.Requests)
			}}
		},
	}
	const long = 20 * time.Second
	served := func(t *testing.T, kind, way string, reset func(now, ends time.Time) int64, c transport.Config) (n int) {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(300 * time.Millisecond)
			s := &wholeSeconds{reset: reset, way: ways[way], epoch: time.Now().Truncate(time.Hour)}
			s.counts(t, kind, time.Second)
			s.flood(t, 4, long, c)
			if n = s.served; s.refused > 0 {
				t.Errorf("%d refused", s.refused)
			}
		})
		return n
	}
	for _, kind := range []string{"clock", "first", "rolling"} {
		for way := range ways {
			plain := served(t, kind, way, nil, limits["of all"]())
			for told, reset := range says {
				for whose, config := range limits {
					t.Run(kind+"/"+way+"/"+told+"/a limit "+whose, func(t *testing.T) {
						if n := served(t, kind, way, reset, config()); 100*n < 97*plain {
							t.Errorf("%d served, and %d where nothing is told", n, plain)
						}
					})
				}
			}
		}
	}
}

// If the limit is wrong, a window of two seconds taken for one of one, the server's statement holds
// but for a request now and then.
func TestWholeSecondsOfAWrongLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &wholeSeconds{reset: func(_, ends time.Time) int64 { return up(ends) }, way: func(*rand.Rand) time.Duration { return time.Millisecond }, epoch: time.Now().Truncate(time.Hour)}
		s.counts(t, "first", 2*time.Second)
		s.flood(t, 4, 90*time.Second, transport.Config{Limiter: rolling(t, secondsLimit, time.Second, limit.Requests)})
		if s.refused != 1 || s.served < 20*secondsLimit {
			t.Errorf("%d served, %d refused", s.served, s.refused)
		}
	})
}
