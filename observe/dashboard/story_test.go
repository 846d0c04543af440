package dashboard_test

import (
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/paceline-go/paceline/observe"
)

// source is a Source with settable Snapshots.
type source struct {
	mu    sync.Mutex
	of    func(time.Time) observe.Snapshot
	asked int
}

func (s *source) Snapshot() observe.Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	return s.of(time.Now())
}

func (s *source) say(of func(time.Time) observe.Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of = of
}

func (s *source) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

func fixed(s observe.Snapshot) *source {
	return &source{of: func(now time.Time) observe.Snapshot { s.At = now; return s }}
}

var bounds = func() (b []time.Duration) {
	for d := time.Millisecond; d < 2*time.Minute; d *= 2 {
		b = append(b, d)
	}
	return b
}()

// times are n durations around mid, twice as long or half as long.
func times(n int64, mid time.Duration) observe.Times {
	t := observe.Times{Count: n, Sum: time.Duration(n) * mid, Upto: make([]int64, len(bounds))}
	for i, b := range bounds {
		z := math.Log2(float64(b) / float64(mid))
		t.Upto[i] = int64(float64(n) / (1 + math.Exp(-2*z)))
	}
	return t
}

// story is a proxy's upstream of language models in its second half hour, with clients who ask for more than is allowed.
func story(clients int) func(time.Time) observe.Snapshot {
	began := time.Now().Add(-30 * time.Minute)
	return func(now time.Time) observe.Snapshot {
		age := now.Sub(began).Seconds()
		wave := 0.5 + 0.5*math.Sin(age/90)
		sent := int64(age*8.1 + 60*math.Sin(age/40))
		line := int(float64(clients) * (2 + 6*wave))
		s := observe.Snapshot{
			Name: "api.openai.com", At: now, Since: began, Waiting: line, InFlight: 14 + int(9*wave), LongestWait: time.Duration(float64(line)*120) * time.Millisecond,
			Pauses: 3, Resent: 11, Bounds: bounds,
			Counts: observe.Counts{Sent: sent, Accepted: sent - 60, Limited: 11 + int64(age/400), Failed: 4, Unknown: 2, Late: 17, Cancelled: 5,
				Used: observe.Amounts{Requests: sent, Input: sent * 310, Output: sent * 120, Tokens: sent * 430, Money: sent * 1450}},
		}
		host := observe.Whose{Host: "api.openai.com", Key: "K1"}
		mini := host
		mini.Model = "gpt-4o-mini"
		s.Limits = []observe.LimitState{
			{Whose: host, Name: "requests", Unit: "requests", Used: 487 + int64(12*wave), Open: 14, Allowed: 500, Window: time.Minute, PerWindow: 500, Total: sent, Share: 0.984, Next: now.Add(1400 * time.Millisecond), Waiting: line},
			{Whose: mini, Name: "tokens", Unit: "tokens", Used: 121_400, Open: 6200, Allowed: 200_000, Window: time.Minute, PerWindow: 200_000, Share: 0.607},
			{Whose: host, Name: "day", Unit: "requests", Used: 6120, Allowed: 10_000, Window: 24 * time.Hour, PerWindow: 10_000, Share: 0.612},
			{Whose: observe.Whose{Host: "api.openai.com", Key: "K2"}, Name: "requests", Unit: "requests", Used: 61, Open: 0, Allowed: 500, Window: time.Minute, PerWindow: 500, Share: 0.12,
				PausedUntil: now.Add(23 * time.Second), Why: "429 with Retry-After: 30: tokens per minute"},
			{Whose: observe.Whose{Host: "api.openai.com", Client: "batch"}, Name: "money", Unit: "money", Used: 3_412_500, Allowed: 5_000_000, Window: 24 * time.Hour, PerWindow: 5_000_000, Share: 0.68},
			{Name: "concurrency", Unit: "in flight", Used: int64(s.InFlight), Open: int64(s.InFlight), Allowed: 24, Share: float64(s.InFlight) / 24},
		}
		for i := range clients {
			name := fmt.Sprintf("client-%03d", i)
			if i < 3 {
				name = []string{"batch", "chat", "nightly summaries of everything that was said in every channel, by the team of tools"}[i]
			}
			part := 1 / float64(clients)
			c := observe.ClientState{Name: name, Waiting: line / clients * (1 + i%2), InFlight: i % 3, Weight: 1, Share: part, Counts: observe.Counts{Accepted: int64(float64(sent) * part), Limited: int64(i % 2)}}
			if i == 1 {
				c.Weight = 4
			}
			if c.Waiting > 0 {
				c.LongestWait = time.Duration(3+i%40) * 700 * time.Millisecond
				c.LastGoes = now.Add(time.Duration(c.Waiting) * 2 * time.Second)
			}
			s.Clients = append(s.Clients, c)
		}
		s.Keys = []observe.KeyState{
			{Host: "api.openai.com", Name: "K1", State: observe.KeyOK, InFlight: s.InFlight, Counts: observe.Counts{Accepted: sent - 900, Limited: 3}},
			{Host: "api.openai.com", Name: "K2", State: observe.KeyPaused, Until: now.Add(23 * time.Second), Why: "429 with Retry-After: 30: tokens per minute", Counts: observe.Counts{Accepted: 820, Limited: 8}},
			{Host: "api.openai.com", Name: "K3", State: observe.KeyNoCredit, Why: "429 insufficient_quota: you exceeded your current quota", Counts: observe.Counts{Accepted: 12, Limited: 1}},
		}
		s.Paused = []observe.PauseState{{Whose: observe.Whose{Host: "api.openai.com", Key: "K2"}, Since: now.Add(-7 * time.Second), Until: now.Add(23 * time.Second), Next: now.Add(23 * time.Second), Why: "429 with Retry-After: 30: tokens per minute"}}
		s.Waits = []observe.WaitTimes{
			{Limit: "requests", Client: "batch", Times: times(sent*2/3, 9*time.Second)}, {Limit: "requests", Client: "chat", Times: times(sent/20, 3*time.Second)},
			{Limit: "tokens", Client: "batch", Times: times(sent/30, time.Second)}, {Limit: "", Client: "chat", Times: times(sent/4, time.Millisecond/4)},
		}
		s.Upstream = []observe.UpstreamTimes{{Host: "api.openai.com", P50: 640 * time.Millisecond, P90: 2100 * time.Millisecond, P99: 7300 * time.Millisecond, Max: 31 * time.Second,
			Times: times(sent, time.Duration(600+500*wave)*time.Millisecond)}}
		s.Events = []observe.Event{
			{Number: 1, At: began.Add(4 * time.Minute), Last: began.Add(4 * time.Minute), Kind: observe.EventBanned, Whose: observe.Whose{Host: "api.openai.com", Key: "K3"}, Text: "The key has no credit left: it is out until it is readmitted.", Count: 1},
			{Number: 2, At: began.Add(19 * time.Minute), Last: began.Add(20 * time.Minute), Kind: observe.EventWrong, Whose: host, Text: "The limit of 500 requests in 1m0s is wrong: the server refused at 470.", Count: 3},
			{Number: 3, At: now.Add(-7 * time.Second), Last: now.Add(-6 * time.Second), Kind: observe.EventRefused, Whose: observe.Whose{Host: "api.openai.com", Key: "K2"}, Text: "Refused with 429: tokens per minute are used up; Retry-After says 30 s.", Count: 8},
			{Number: 4, At: now.Add(-7 * time.Second), Last: now.Add(-7 * time.Second), Kind: observe.EventPaused, Whose: observe.Whose{Host: "api.openai.com", Key: "K2"}, Text: "Staying away for 30 s, as Retry-After says.", Count: 1},
		}
		return s
	}
}
