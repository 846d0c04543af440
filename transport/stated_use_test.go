package transport_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/transport"
)

// banning is a server that counts a weight in each minute, states it, and bans at the tenth refusal.
type banning struct {
	mu                    sync.Mutex
	weight, most, refused int
	used                  map[time.Time]int
}

func (s *banning) answer(int, *http.Request) *http.Response {
	s.mu.Lock()
	defer s.mu.Unlock()
	minute := time.Now().Truncate(time.Minute)
	s.used[minute] += s.weight
	used := fmt.Sprint(s.used[minute])
	switch {
	case s.refused >= 10:
		return reply(http.StatusTeapot, "")
	case s.used[minute] > s.most:
		s.refused++
		return reply(http.StatusTooManyRequests, "", "X-Mbx-Used-Weight-1m", used)
	}
	return reply(http.StatusOK, "", "X-Mbx-Used-Weight-1m", used)
}

// A limit is configured in requests, and the server counts a weight of 10 for each. It is said once, with the lines
// that mend it, and with sixteen clients one is refused at most. Before, ten were, and then all. Where
// the server counts 1 for each, nothing is said, and the limit is used in full.
func TestALimitOfRequestsAtAServerOfWeight(t *testing.T) {
	says := regexp.MustCompile(`put_into_limits="1200 weight/m" put_into_charges="{on: \\"GET /klines\\", cost: \\"([5-9]|1[0-9]) w`)
	for _, c := range []struct {
		weight, clients, refused, served int
		unit                             limit.Unit
	}{
		{10, 1, 0, 360, limit.Requests}, {10, 16, 1, 360, limit.Requests}, {1, 16, 0, 1200, limit.Requests},
		{10, 16, 1, 360, limit.Weight}, // in weight, and no charge says that a request has any
	} {
		t.Run(fmt.Sprint(c.weight, c.clients, c.unit), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				s := &banning{weight: c.weight, most: 1200, used: map[time.Time]int{}}
				tr := mustNew(t, transport.Config{Base: newBase(50*time.Millisecond, s.answer),
					Logger: slog.New(slog.NewTextHandler(&log, nil)), Limit: func(p transport.Partition) limit.Limiter {
						if p.Scope == provider.Key {
							return rolling(t, 1200, time.Minute, c.unit)
						}
						return nil
					}})
				var all sync.WaitGroup
				for range c.clients {
					all.Go(func() {
						for range c.served / c.clients {
							do(t, tr, get(t, "https://bot.test/klines", "Authorization", "Bearer k"))
						}
					})
				}
				began := time.Now()
				all.Wait()
				minutes := time.Duration(c.served*c.weight/1200-1) * time.Minute
				if took := time.Since(began); s.refused > c.refused || took < minutes || took > minutes+70*time.Second {
					t.Errorf("%d refused, all served after %v, want about %v", s.refused, took, minutes)
				}
				got, want := strings.Count(log.String(), "a limit counts another thing"), min(c.weight-1, 1)
				if got != want || len(says.FindAllString(log.String(), -1)) != want {
					t.Errorf("said %d times, want %d:\n%.3000s", got, want, log.String())
				}
			})
		})
	}
}

// The server states a limit below the configured one. That is logged once, with the line that mends it. A
// longer window says nothing of the configured one.
func TestAStatedLimitBelowTheConfigured(t *testing.T) {
	for _, c := range []struct {
		name, policy string
		lines        int
	}{
		{"lower", `"default";q=50;w=60`, 1}, {"equal", `"default";q=200;w=60`, 0}, {"of a day", `"default";q=1000;w=86400`, 0},
		{"of a second, lower", `"default";q=2;w=1`, 1}, {"of a second, higher", `"default";q=4;w=1`, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				left := 200
				tr := mustNew(t, transport.Config{Logger: slog.New(slog.NewTextHandler(&log, nil)),
					Limit: func(p transport.Partition) limit.Limiter {
						if p.Scope == provider.Key {
							return rolling(t, 200, time.Minute, limit.Requests)
						}
						return nil
					},
					Base: newBase(0, func(int, *http.Request) *http.Response {
						left--
						return reply(200, "", "RateLimit-Policy", c.policy, "RateLimit", fmt.Sprintf(`"default";r=%d;t=60`, left))
					})})
				for range 50 {
					do(t, tr, get(t, "https://a.test/", "Authorization", "Bearer k"))
				}
				got := strings.Count(log.String(), "the server states a lower limit")
				if got != c.lines || got > 0 && !strings.Contains(log.String(), `put_into_limits=`) {
					t.Errorf("%d lines, want %d\n%s", got, c.lines, log.String())
				}
			})
		})
	}
}
