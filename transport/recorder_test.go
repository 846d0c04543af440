package transport_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/transport"
)

// kept is what a process leaves behind: entries with the instant at which they were sent, and settled.
type kept struct {
	mu      sync.Mutex
	entries []entry
	full    bool
}

type entry struct {
	p       transport.Partition
	cost    limit.Cost
	sent    time.Time
	settled time.Time
	result  limit.Result
}

func (l *kept) Send(p transport.Partition, cost limit.Cost) (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.full {
		return 0, errors.New("no space left")
	}
	l.entries = append(l.entries, entry{p: p, cost: cost, sent: time.Now()})
	return int64(len(l.entries)), nil
}

func (l *kept) Settle(n int64, _ limit.Cost, o limit.Outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := &l.entries[n-1]
	if !e.settled.IsZero() {
		panic("settled twice")
	}
	e.settled, e.result = time.Now(), o.Result
}

func (l *kept) Earlier(p transport.Partition, zero time.Time) (all []limit.Past, since mono.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.entries {
		if !e.p.In(p) || e.result == limit.Unsent && !e.settled.IsZero() {
			continue
		}
		at := e.settled
		if at.IsZero() { // its process died
			at = e.sent.Add(5 * time.Second)
		}
		all = append(all, limit.Past{At: mono.Of(zero, at), Cost: e.cost, Result: e.result})
	}
	slices.SortFunc(all, func(a, b limit.Past) int { return int(a.At - b.At) })
	return all, mono.Min
}

// follower is kept by a process that another one has taken over from: one request of that is still in flight at each host.
type follower struct {
	kept
	ends map[string]func(limit.Outcome)
}

func (f *follower) Underway(p transport.Partition, counts func(limit.Cost) func(limit.Outcome)) {
	if p.Scope == provider.IP {
		f.ends[p.Host] = counts(limit.One)
	}
}

// A request of the process before is in flight when this one begins. It takes its place in the limit of each host until its answer
// comes, and for the window after that.
func TestRequestsOfTheProcessBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, f := newBase(0, ok), &follower{ends: map[string]func(limit.Outcome){}}
		tr := mustNew(t, transport.Config{Base: b, Recorder: f, MaxWait: atMost(time.Minute), Limit: func(p transport.Partition) limit.Limiter {
			if p.Scope != provider.IP {
				return nil
			}
			return rolling(t, 2, 10*time.Second, limit.Requests)
		}})
		var all sync.WaitGroup
		all.Go(func() {
			for range 4 {
				do(t, tr, get(t, "http://a.test/"))
			}
		})
		time.Sleep(3 * time.Second)
		synctest.Wait() // Underway has written
		if ends := f.ends["a.test"]; ends != nil {
			ends(limit.Outcome{Result: limit.Accepted})
		}
		all.Wait()
		if got, want := b.at(), seconds(0, 10, 13, 20); !slices.Equal(got, want) {
			t.Errorf("sent at %v, want %v", got, want)
		}
	})
}

// A process that dies in the midst of a window is followed by one that is refused nothing: by window, by key and by model.
func TestLedgerOverRestarts(t *testing.T) {
	for _, scope := range []provider.Scope{provider.All, provider.IP, provider.Key, provider.Model, provider.Route} {
		synctest.Test(t, func(t *testing.T) {
			judge, err := rule.NewRolling(rule.RollingConfig{Limit: 20, Window: time.Second})
			if err != nil {
				t.Fatal(err)
			}
			refused, served, epoch := 0, 0, time.Now()
			b := newBase(0, func(n int, r *http.Request) *http.Response {
				if !judge.Arrive(mono.Time(time.Since(epoch)), 1) {
					refused++
					return reply(429, "no")
				}
				served++
				return ok(n, r)
			})
			var mu sync.Mutex
			one := func(r *http.Request) (*http.Response, error) {
				time.Sleep(10 * time.Millisecond)
				mu.Lock()
				resp, err := b.RoundTrip(r)
				mu.Unlock()
				time.Sleep(30 * time.Millisecond)
				return resp, err
			}
			var book kept
			const lives = 6
			for life := range lives {
				book.mu.Lock()
				began := len(book.entries)
				book.mu.Unlock()
				c := transport.Config{Base: roundTrip(one), Recorder: &book, Attempts: 1}
				if scope == provider.All {
					c.Limiter = limit.MustRolling(20, time.Second)
				} else {
					c.Limit = func(p transport.Partition) limit.Limiter {
						if p.Scope == scope {
							return limit.MustRolling(20, time.Second)
						}
						return nil
					}
				}
				tr := mustNew(t, c)
				ctx, kill := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				for i := range 100 {
					wg.Go(func() {
						q, _ := http.NewRequestWithContext(ctx, "GET", "http://server/models/m:go", nil)
						q.Header.Set("X-Api-Key", "k")
						if resp, err := tr.RoundTrip(q); err == nil {
							resp.Body.Close()
						}
						_ = i
					})
				}
				time.Sleep(time.Duration(200+life*150) * time.Millisecond)
				kill()
				wg.Wait()
				book.mu.Lock()
				if now := len(book.entries); life == 0 && now == began {
					t.Error("nothing was sent")
				}
				book.mu.Unlock()
			}
			if refused > 0 || served < 60 {
				t.Errorf("%v: %d refused, %d served", scope, refused, served)
			}
		})
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A process ends after it has used a limit, and the next one begins at once, without a record. With StartFull, a strict server refuses
// none of its requests, and the first goes as soon as that is sure. A longer window and a client's own limit are not used up.
func TestStartFull(t *testing.T) {
	window := func() limit.Limiter {
		return limit.NewAll(limit.MustRolling(20, time.Second), limit.Named("day", limit.MustRolling(1000, 24*time.Hour)))
	}
	bucket := func() limit.Limiter {
		l, err := limit.NewBucket(limit.BucketConfig{Limit: 20, Window: time.Second, Burst: 20})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	ofKey := func(limits func() limit.Limiter) func(transport.Partition) limit.Limiter {
		return func(p transport.Partition) limit.Limiter {
			if p.Scope == provider.Key {
				return limits()
			}
			return nil
		}
	}
	client := func(*http.Request) transport.Client {
		return transport.Client{Name: "c", Limit: func() limit.Limiter { return limit.MustRolling(100, time.Minute) }}
	}
	for name, c := range map[string]struct {
		config func() transport.Config
		least  time.Duration
	}{
		"for all": {func() transport.Config { return transport.Config{Limiter: window()} }, time.Second},
		"bucket":  {func() transport.Config { return transport.Config{Limit: ofKey(bucket)} }, 50 * time.Millisecond},
		"client":  {func() transport.Config { return transport.Config{Limit: ofKey(window), Client: client} }, time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			judge, err := rule.NewRolling(rule.RollingConfig{Limit: 20, Window: time.Second})
			if name == "bucket" {
				judge, err = rule.NewBucket(rule.BucketConfig{Limit: 20, Window: time.Second})
			}
			if err != nil {
				t.Fatal(err)
			}
			refused, epoch := 0, time.Now()
			var second time.Time
			var first time.Duration
			b := newBase(0, func(n int, r *http.Request) *http.Response {
				if first == 0 {
					first = time.Since(second)
				}
				if !judge.Arrive(mono.Time(time.Since(epoch)), 1) {
					refused++
					return reply(429, "no")
				}
				return ok(n, r)
			})
			for life := range 2 {
				c := c.config()
				if c.Base, c.Attempts = b, 1; life == 1 {
					c.StartFull = time.Minute
				}
				tr := mustNew(t, c)
				second, first = time.Now(), 0
				for range 20 + 20*life {
					do(t, tr, get(t, "http://server/"))
				}
			}
			if refused > 0 || first < c.least || first > c.least+10*time.Millisecond {
				t.Errorf("%s: %d refused, and the first of the second process went after %v, want %v", name, refused, first, c.least)
			}
		})
	}
}

// A request that cannot be recorded is not sent, and counts nowhere.
func TestLedgerThatIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(0, ok)
		book := &kept{full: true}
		tr := mustNew(t, transport.Config{Base: b, Recorder: book, Limiter: limit.MustRolling(1, time.Hour), Attempts: 1})
		q, _ := http.NewRequest("GET", "http://server/", nil)
		if _, err := tr.RoundTrip(q); err == nil || len(b.at()) != 0 {
			t.Errorf("%v, %d sent", err, len(b.at()))
		}
		book.full = false
		began := time.Now()
		resp, err := tr.RoundTrip(q)
		if err != nil || time.Since(began) > time.Minute {
			t.Fatal(err, time.Since(began))
		}
		resp.Body.Close()
		if len(book.entries) != 1 || book.entries[0].result != limit.Accepted {
			t.Errorf("%+v", book.entries)
		}
	})
}

// A request that another process is to send fails at once. It is no attempt, and the host is not down.
func TestHandedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(0, ok)
		ended := 0
		tr := mustNew(t, transport.Config{Base: b, Recorder: elsewhere{&kept{}}, Limiter: limit.MustRolling(1, time.Hour),
			Ended: func(transport.Attempt) { ended++ }})
		began := time.Now()
		for range 20 {
			q, _ := http.NewRequest("GET", "http://server/", nil)
			if _, err := tr.RoundTrip(q); !errors.Is(err, transport.ErrTakenOver) {
				t.Fatal(err)
			}
		}
		if took, s := time.Since(began), tr.Stats(); took > 0 || len(b.at()) != 0 || ended != 0 || s.Attempts != 0 {
			t.Errorf("after %v, %d sent, %d attempts ended, %d counted", took, len(b.at()), ended, s.Attempts)
		}
	})
}

// elsewhere is a Recorder of a process that has handed over.
type elsewhere struct{ *kept }

func (elsewhere) Send(transport.Partition, limit.Cost) (int64, error) {
	return 0, transport.ErrTakenOver
}

// A day of a place goes on after a restart, and ends at the midnight of that place.
func TestLedgerOfAZone(t *testing.T) {
	pacific, err := time.LoadLocation("America/Los_Angeles")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		var book kept
		begin := time.Now()
		for life, want := range []string{"8h0m0.05s", "32h0m0.05s"} {
			tr := mustNew(t, transport.Config{Base: newBase(0, ok), Recorder: &book, Limit: func(p transport.Partition) limit.Limiter {
				if p.Scope != provider.Key {
					return nil
				}
				l, err := limit.NewCalendar(limit.CalendarConfig{Limit: 2, Window: 24 * time.Hour, Zone: pacific})
				if err != nil {
					t.Fatal(err)
				}
				return l
			}})
			for range 3 - life { // the second process finds one of its two used
				q, _ := http.NewRequestWithContext(t.Context(), "GET", "http://server/", nil)
				resp, err := tr.RoundTrip(q)
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
			}
			if got := time.Since(begin).String(); got != want {
				t.Errorf("process %d: the last went after %s, want %s", life, got, want)
			}
		}
	})
}
