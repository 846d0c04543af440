package transport_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/transport"
)

// quota is a server that allows so many in any window of each key, and counts what it refuses.
type quota struct {
	most   int
	window time.Duration

	mu      sync.Mutex
	in      map[string][]time.Time
	served  int
	refused int
}

func (q *quota) RoundTrip(r *http.Request) (*http.Response, error) {
	key, now := r.Header.Get("Authorization"), time.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.in == nil {
		q.in = map[string][]time.Time{}
	}
	q.in[key] = slices.DeleteFunc(q.in[key], func(t time.Time) bool { return now.Sub(t) >= q.window })
	if len(q.in[key]) >= q.most {
		q.refused++
		return reply(429, "no", "Retry-After", "1"), nil
	}
	q.in[key] = append(q.in[key], now)
	q.served++
	return reply(200, "fine"), nil
}

// eachKey makes a limit of each key.
func eachKey(made func() limit.Limiter) func(transport.Partition) limit.Limiter {
	return func(p transport.Partition) limit.Limiter {
		if p.Scope != provider.Key {
			return nil
		}
		return made()
	}
}

// A quota of a day is used up in the morning. Hours later another endpoint or another key is used,
// or many of them. The first key still waits until its first request is a day old.
func TestAKeyThatIsIdleForHours(t *testing.T) {
	for _, pause := range []time.Duration{30 * time.Minute, 2 * time.Hour, 12 * time.Hour, 23 * time.Hour} {
		for _, between := range []int{0, 1, 100} {
			for _, path := range []string{"/v1/quotes/a", "/v1/profile"} {
				synctest.Test(t, func(t *testing.T) {
					q := &quota{most: 5, window: 24 * time.Hour}
					tr := mustNew(t, transport.Config{
						Base: q, Attempts: 1, MaxPartitions: 20, Limit: eachKey(func() limit.Limiter { return limit.MustRolling(5, 24*time.Hour) }),
					})
					begin := time.Now()
					for range 5 {
						do(t, tr, get(t, "http://quotes.test/v1/quotes/a", "Authorization", "Bearer the-only-key"))
					}
					time.Sleep(pause)
					for i := range between {
						do(t, tr, get(t, "http://quotes.test/x", "Authorization", fmt.Sprint("Bearer another-key-", i)))
					}
					do(t, tr, get(t, "http://quotes.test"+path, "Authorization", "Bearer the-only-key"))
					if took := time.Since(begin); took < 24*time.Hour || took > 24*time.Hour+time.Minute {
						t.Errorf("idle for %v, %d other keys, then %s: it went after %v", pause, between, path, took)
					}
					if q.refused > 0 {
						t.Errorf("idle for %v, %d other keys, then %s: %d refused", pause, between, path, q.refused)
					}
				})
			}
		}
	}
}

// Five thousand tenants have two requests an hour each. An app goes round them three times. So it is
// with fewer of them that have several endpoints.
func TestFiveThousandTenants(t *testing.T) {
	race.Without(t) // one request after another
	for _, c := range []struct{ tenants, endpoints, atHand int }{{need.Fewer(500, 5000), 1, need.Fewer(400, 0)}, {60, 10, 500}} {
		tenants, endpoints := c.tenants*c.endpoints, c.endpoints
		synctest.Test(t, func(t *testing.T) {
			q := &quota{most: 2 * endpoints, window: time.Hour}
			tr := mustNew(t, transport.Config{
				Base: q, Attempts: 1, MaxPartitions: c.atHand, MaxWait: func(*http.Request) time.Duration { return time.Minute },
				Limit: eachKey(func() limit.Limiter { return limit.MustRolling(int64(2*endpoints), time.Hour) }),
			})
			waits := 0
			for range 3 {
				for i := range tenants / endpoints {
					for e := range endpoints {
						r := get(t, "http://shop.test/api/"+strings.Repeat("x", e+1), "Authorization", fmt.Sprintf("Bearer tenant-%07d", i))
						if _, _, err := do(t, tr, r); errors.Is(err, paceline.ErrDeadline) {
							waits++
						}
					}
				}
			}
			if q.refused > 0 || q.served != 2*tenants || waits != tenants {
				t.Errorf("%d endpoints: %d were served, %d would wait too long, %d were refused", endpoints, q.served, waits, q.refused)
			}
		})
	}
}

// sends runs a schedule of requests, and returns when each was sent. Nothing else but what is kept
// of partitions may make a difference.
func sends(t *testing.T, seed uint64, c transport.Config) (all []string) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		begin, rng := time.Now(), rand.New(rand.NewPCG(seed, 3))
		c.Base = roundTripper(func(r *http.Request) (*http.Response, error) {
			mu.Lock()
			all = append(all, fmt.Sprint(r.Header.Get("N"), " ", time.Since(begin)))
			mu.Unlock()
			n, _ := strconv.Atoi(r.Header.Get("N"))
			time.Sleep(time.Duration(10+n%90) * time.Millisecond)
			return reply(200, "fine"), nil
		})
		c.Attempts = 1
		tr := mustNew(t, c)
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Minute)
		defer stop()
		var wg sync.WaitGroup
		for n := range 150 {
			time.Sleep(time.Duration(rng.Int64N(int64(4 * time.Second))))
			r := get(t, fmt.Sprintf("http://%c.test/%c", 'a'+rng.IntN(2), 'a'+rng.IntN(3)), "Authorization", "Bearer key-"+string(rune('a'+rng.IntN(4))), "N", strconv.Itoa(n))
			wg.Go(func() { do(t, tr, r.WithContext(ctx)) })
		}
		wg.Wait()
	})
	slices.Sort(all)
	return all
}

// For any schedule, a Transport that has one partition at hand sends the same at the same instants
// as one that has all.
func TestFrozenPartitionsSendAtTheSameInstants(t *testing.T) {
	race.Without(t) // nothing runs beside it
	must := func(l limit.Limiter, err error) limit.Limiter {
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	const window = 20 * time.Second
	kinds := map[string]func() limit.Limiter{
		"Rolling": func() limit.Limiter { return limit.MustRolling(3, window) },
		"Grain": func() limit.Limiter {
			return must(limit.NewRolling(limit.RollingConfig{Limit: 3, Window: window, Grain: time.Second}))
		},
		"Calendar": func() limit.Limiter { return must(limit.NewCalendar(limit.CalendarConfig{Limit: 3, Window: window})) },
		"Anchored": func() limit.Limiter { return must(limit.NewAnchored(limit.AnchoredConfig{Limit: 3, Window: window})) },
		"Bucket": func() limit.Limiter {
			return must(limit.NewBucket(limit.BucketConfig{Limit: 3, Window: window, Burst: 2}))
		},
		"Weighted": func() limit.Limiter { return must(limit.NewWeighted(limit.WeightedConfig{Limit: 3, Window: window})) },
		"Produced": func() limit.Limiter {
			return must(limit.NewProduced(limit.ProducedConfig{Limit: 3, Window: window, Unit: limit.Requests}))
		},
		"All": func() limit.Limiter {
			return limit.NewAll(limit.Named("short", limit.MustRolling(2, 5*time.Second)), limit.MustRolling(20, 5*time.Minute), must(limit.NewConcurrency(limit.ConcurrencyConfig{Limit: 2})))
		},
		"LearnLead": func() limit.Limiter {
			return must(limit.NewRolling(limit.RollingConfig{Limit: 3, Window: window, Arrivals: limit.Arrivals{LearnLead: true}}))
		},
		"Spacing": func() limit.Limiter { return must(limit.NewSpacing(7 * time.Second)) },
	}
	for name, made := range kinds {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(2) {
				for _, scope := range []provider.Scope{provider.Key, provider.Route} {
					limits := func(p transport.Partition) limit.Limiter {
						if p.Scope != scope {
							return nil
						}
						return made()
					}
					few := sends(t, seed, transport.Config{MaxPartitions: 1, Limit: limits})
					all := sends(t, seed, transport.Config{Limit: limits})
					if !slices.Equal(few, all) {
						for i := range few {
							if i >= len(all) || few[i] != all[i] {
								t.Fatalf("seed %d, %v: with one partition %s, with all %s", seed, scope, few[i], all[min(i, len(all)-1)])
							}
						}
						t.Fatalf("seed %d, %v: with one partition %d are sent, with all %d", seed, scope, len(few), len(all))
					}
				}
			}
		})
	}
}

// crowded is a Transport with one partition at hand, and others puts that out of it.
func crowded(t *testing.T, c transport.Config) (tr *transport.Transport, others func(n int)) {
	c.MaxPartitions, c.Attempts = 1, 1
	tr = mustNew(t, c)
	return tr, func(n int) {
		for i := range n {
			do(t, tr, get(t, "http://elsewhere.test/", "Authorization", fmt.Sprint("Bearer other-", i)))
		}
	}
}

// A pause that the server asked for outlives its partition, also beyond any wait, and so does the
// reason for it: with and without a limit.
func TestPauseOutlivesItsPartition(t *testing.T) {
	for _, limits := range []func(transport.Partition) limit.Limiter{nil, eachKey(func() limit.Limiter { return limit.MustRolling(100, time.Hour) })} {
		synctest.Test(t, func(t *testing.T) {
			sent := 0
			tr, others := crowded(t, transport.Config{Limit: limits, Base: roundTripper(func(r *http.Request) (*http.Response, error) {
				if r.URL.Host != "a.test" {
					return reply(200, ""), nil
				}
				if sent++; sent == 1 {
					return reply(429, "", "Retry-After", "7200"), nil
				}
				return reply(200, ""), nil
			})})
			begin := time.Now()
			do(t, tr, get(t, "http://a.test/", "Authorization", "Bearer one"))
			time.Sleep(time.Hour / 2)
			others(5)
			_, _, err := do(t, tr, get(t, "http://a.test/", "Authorization", "Bearer one"))
			e, _ := errors.AsType[*transport.Error](err)
			if !errors.Is(err, transport.ErrPaused) || e.Ready.Sub(begin) != 2*time.Hour || e.Refusal != provider.RateLimited {
				t.Errorf("%v: %+v", err, e)
			}
			others(5)
			if !tr.Lift(e.Partition) {
				t.Errorf("there is no pause of %v to lift", e.Partition)
			}
			if status, _, err := do(t, tr, get(t, "http://a.test/", "Authorization", "Bearer one")); status != 200 {
				t.Errorf("after the lift: %d, %v", status, err)
			}
		})
	}
}

// What a server said is left, and until when, outlives its partition, with and without a limit.
func TestHintsOutliveTheirPartition(t *testing.T) {
	for _, limits := range []func(transport.Partition) limit.Limiter{nil, eachKey(func() limit.Limiter { return limit.MustRolling(100, 24*time.Hour) })} {
		synctest.Test(t, func(t *testing.T) {
			left, sent := 3, 0
			tr, others := crowded(t, transport.Config{Limit: limits, Base: roundTripper(func(r *http.Request) (*http.Response, error) {
				if r.URL.Host != "a.test" {
					return reply(200, ""), nil
				}
				sent++
				if left--; left < 0 {
					return reply(429, ""), nil
				}
				return reply(200, "", "X-RateLimit-Limit", "100", "X-RateLimit-Remaining", strconv.Itoa(left), "X-RateLimit-Reset", "3000"), nil
			})})
			for range 3 {
				do(t, tr, get(t, "http://a.test/", "Authorization", "Bearer one"))
				time.Sleep(time.Second)
			}
			time.Sleep(20 * time.Minute)
			others(5)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if _, _, err := do(t, tr, get(t, "http://a.test/", "Authorization", "Bearer one").WithContext(ctx)); !errors.Is(err, paceline.ErrDeadline) || sent != 3 {
				t.Errorf("with a limit %v: nothing is left, and it went: %d, %v", limits != nil, sent, err)
			}
		})
	}
}

// A lesson about a limit that is wrong outlives its partition: the server allows three a minute,
// and not ten.
func TestLessonsOutliveTheirPartition(t *testing.T) {
	refused := func(most int) int {
		q := &quota{most: 3, window: time.Minute}
		synctest.Test(t, func(t *testing.T) {
			tr := mustNew(t, transport.Config{
				Base: q, MaxPartitions: most, Attempts: 1, Limit: eachKey(func() limit.Limiter { return limit.MustRolling(10, time.Minute) }),
			})
			for range 60 {
				do(t, tr, get(t, "http://a.test/", "Authorization", "Bearer one"))
				do(t, tr, get(t, "http://b.test/"))
			}
		})
		return q.refused
	}
	if one, all := refused(1), refused(100); one != all {
		t.Errorf("%d were refused with one partition, %d with all", one, all)
	}
}

// At the bound nothing that counts is forgotten: who is new is refused and learns when there is
// room, and who is known goes as ever. When four fifths are in use, that is logged once.
func TestMaxFrozen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logs bytes.Buffer
		q := &quota{most: 2, window: time.Hour}
		tr := mustNew(t, transport.Config{
			Base: q, Attempts: 1, MaxPartitions: 10, MaxFrozen: 10_000, Logger: slog.New(slog.NewTextHandler(&logs, nil)),
			Limit:   eachKey(func() limit.Limiter { return limit.MustRolling(2, time.Hour) }),
			MaxWait: func(*http.Request) time.Duration { return time.Second },
		})
		begin := time.Now()
		ask := func(i int) error {
			_, _, err := do(t, tr, get(t, "http://a.test/", "Authorization", fmt.Sprint("Bearer tenant ", i)))
			return err
		}
		known, full := 0, 0
		for i := range 200 {
			switch err := ask(i); {
			case err == nil:
				known++
			case errors.Is(err, transport.ErrFull):
				e, _ := errors.AsType[*transport.Error](err)
				if full++; e.Ready.Sub(begin) < time.Hour || e.Ready.Sub(begin) > time.Hour+time.Second {
					t.Fatalf("there is room at %v: %v", e.Ready.Sub(begin), err)
				}
			default:
				t.Fatal(err)
			}
		}
		if known < 30 || full != 200-known {
			t.Fatalf("%d are known, %d were refused", known, full)
		}
		if n := strings.Count(logs.String(), "MaxFrozen"); n != 1 {
			t.Errorf("it was logged %d times: %s", n, logs.String())
		}
		for i := range known {
			if err := ask(i); err != nil {
				t.Fatalf("tenant %d is known, and may send one more: %v", i, err)
			}
		}
		for i := range known {
			if err := ask(i); !errors.Is(err, paceline.ErrDeadline) {
				t.Fatalf("tenant %d has used up its limit: %v", i, err)
			}
		}
		if leaves, _, _ := transport.Remembered(tr); leaves > 10 {
			t.Errorf("%d partitions are at hand", leaves)
		}
		time.Sleep(time.Hour + time.Second)
		for i := range 30 {
			if err := ask(1000 + i); err != nil {
				t.Fatalf("nothing counts any more: %v", err)
			}
		}
		if q.refused > 0 {
			t.Errorf("the server refused %d", q.refused)
		}
	})
}

// Keys that somebody makes up push out no window of another.
func TestMadeUpKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &quota{most: 1, window: time.Hour}
		tr := mustNew(t, transport.Config{
			Base: q, Attempts: 1, MaxPartitions: 5, MaxFrozen: 5000, MaxWait: func(*http.Request) time.Duration { return time.Second },
			Limit: eachKey(func() limit.Limiter { return limit.MustRolling(1, time.Hour) }),
		})
		do(t, tr, get(t, "http://a.test/", "Authorization", "Bearer honest"))
		for i := range 500 {
			do(t, tr, get(t, "http://a.test/", "Authorization", fmt.Sprint("Bearer made up ", i)))
		}
		if _, _, err := do(t, tr, get(t, "http://a.test/", "Authorization", "Bearer honest")); !errors.Is(err, paceline.ErrDeadline) || q.refused > 0 {
			t.Errorf("%v; the server refused %d", err, q.refused)
		}
	})
}

// A change of the limits reaches frozen partitions, too, with what they have sent.
func TestChangeReachesFrozenPartitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		most := int64(5)
		tr, others := crowded(t, transport.Config{
			Base: newBase(0, ok), Limit: eachKey(func() limit.Limiter { return limit.NewVarying(rolling(t, most, time.Hour, limit.Requests)) }),
		})
		ask := func(wait time.Duration) error {
			ctx, cancel := context.WithTimeout(t.Context(), wait)
			defer cancel()
			_, _, err := do(t, tr, get(t, "http://a.test/", "Authorization", "Bearer one").WithContext(ctx))
			return err
		}
		for range 3 {
			ask(time.Second)
		}
		others(3)
		most = 4
		tr.Change(func(now mono.Time, p transport.Partition, l limit.Limiter) {
			limit.Parts(l)[0].(*limit.Rolling).SetLimit(now, 4)
			limit.Parts(l)[0].(*limit.Rolling).SetWindow(now, 24*time.Hour)
		})
		others(3)
		if err := ask(time.Second); err != nil {
			t.Errorf("the fourth: %v", err)
		}
		others(3)
		time.Sleep(5 * time.Hour)
		others(3)
		err := ask(time.Minute)
		if e, _ := errors.AsType[*transport.Error](err); !errors.Is(err, paceline.ErrDeadline) || time.Until(e.Ready) != 19*time.Hour {
			t.Errorf("the fifth, five hours later: %v", err)
		}
	})
}

// Limits of another kind have no place for what counted in the old ones: the partition waits until
// nothing counts any more.
func TestFrozenPartitionWithAnotherKindOfLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		tr, others := crowded(t, transport.Config{Base: newBase(0, ok), Limit: func(p transport.Partition) limit.Limiter {
			if p.Scope != provider.IP || p.Host != "a.test" {
				return nil
			}
			if asked++; asked == 1 {
				return rolling(t, 2, time.Hour, limit.Requests)
			}
			b, err := limit.NewBucket(limit.BucketConfig{Limit: 2, Window: time.Hour})
			if err != nil {
				t.Fatal(err)
			}
			return b
		}})
		begin := time.Now()
		do(t, tr, get(t, "http://a.test/"))
		others(2)
		do(t, tr, get(t, "http://a.test/"))
		if took := time.Since(begin); took != time.Hour || asked != 2 {
			t.Errorf("it went after %v; the limit was made %d times", took, asked)
		}
	})
}

// opaque is a limiter of a kind that nobody knows.
type opaque struct{ limit.Limiter }

// A limiter whose memory cannot be written stays as it is for a day. One of a shared store has its
// memory there; but a pause outlives its partition.
func TestFrozenLimiterOfAnUnknownKind(t *testing.T) {
	for _, shared := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			made, sent := 0, 0
			c := transport.Config{
				Base: roundTripper(func(r *http.Request) (*http.Response, error) {
					if r.URL.Host == "a.test" {
						if sent++; sent == 2 {
							return reply(429, "", "Retry-After", "1800"), nil
						}
					}
					return reply(200, ""), nil
				}),
				Limit: func(p transport.Partition) limit.Limiter {
					if p.Scope != provider.Key || p.Host != "a.test" {
						return nil
					}
					made++
					return opaque{limit.MustRolling(2, time.Hour)}
				},
			}
			if shared {
				c.Share = func(_ transport.Partition, made func() limit.Limiter) limit.Limiter { return made() }
			}
			tr, others := crowded(t, c)
			ask := func() error {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				_, _, err := do(t, tr, get(t, "http://a.test/", "Authorization", "Bearer one").WithContext(ctx))
				return err
			}
			ask()
			others(3)
			ask()
			if was := map[bool]int{false: 1, true: 4}[shared]; made != was { // Share makes it to see whether there is one
				t.Errorf("shared %v: the limit was made %d times, want %d", shared, made, was)
			}
			others(3)
			time.Sleep(25 * time.Minute)
			if err := ask(); !errors.Is(err, transport.ErrPaused) && !errors.Is(err, paceline.ErrDeadline) || sent != 2 {
				t.Errorf("shared %v: the pause is forgotten: %d were sent, %v", shared, sent, err)
			}
			time.Sleep(48 * time.Hour)
			others(3)
			time.Sleep(2 * time.Hour) // that there was a refusal is useful for an hour
			others(3)
			if partitions, _ := transport.Frozen(tr); partitions != 0 {
				t.Errorf("shared %v: two days later %d partitions are frozen", shared, partitions)
			}
		})
	}
}

// What an earlier process sent counts once, also in a partition that was frozen.
func TestFrozenPartitionWithARecorder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		earlier := 0
		tr, others := crowded(t, transport.Config{
			Base: newBase(0, ok), Recorder: early{new(kept), &earlier}, Limit: eachKey(func() limit.Limiter { return rolling(t, 3, time.Hour, limit.Requests) }),
		})
		begin := time.Now()
		for range 3 {
			do(t, tr, get(t, "http://a.test/", "Authorization", "Bearer one"))
			others(3)
			time.Sleep(time.Minute)
		}
		// One of the earlier process and two of this one count, then three of this one.
		if took := time.Since(begin); took != time.Hour+time.Minute || earlier == 0 {
			t.Errorf("the third was sent after %v; %d were of an earlier process", took, earlier)
		}
	})
}

// early is a Recorder with one request of an earlier process, right at the beginning of each
// partition.
type early struct {
	*kept
	asked *int
}

func (e early) Earlier(p transport.Partition, zero time.Time) ([]limit.Past, mono.Time) {
	if p.Host != "a.test" {
		return nil, mono.Min
	}
	*e.asked++
	return []limit.Past{{At: mono.Of(zero, time.Now()), Cost: limit.One, Result: limit.Accepted}}, mono.Min
}

// An answer that is still read keeps its place, though its partition is frozen meanwhile.
func TestFrozenPartitionWithAnOpenAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr, others := crowded(t, transport.Config{Base: newBase(0, ok), UntilBody: true, Limit: eachKey(func() limit.Limiter {
			l, err := limit.NewConcurrency(limit.ConcurrencyConfig{Limit: 1})
			if err != nil {
				t.Fatal(err)
			}
			return l
		})})
		stream, err := tr.RoundTrip(get(t, "http://a.test/", "Authorization", "Bearer one"))
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			others(3)
			soon, cancel := context.WithTimeout(t.Context(), time.Minute)
			if _, _, err := do(t, tr, get(t, "http://a.test/", "Authorization", "Bearer one").WithContext(soon)); err == nil {
				t.Error("two go at once, and one is allowed")
			}
			cancel()
		}
		others(3)
		begin := time.Now()
		var second sync.WaitGroup
		second.Go(func() { do(t, tr, get(t, "http://a.test/", "Authorization", "Bearer one")) })
		time.Sleep(time.Minute)
		stream.Body.Close()
		second.Wait()
		if took := time.Since(begin); took != time.Minute {
			t.Errorf("the second went after %v", took)
		}
	})
}

// Keys of one organization count together, also when there are more than partitions at hand.
func TestFrozenKeysOfOneOrganization(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &quota{most: 40, window: time.Hour}
		tr := mustNew(t, transport.Config{
			Attempts: 1, MaxPartitions: 3, Limit: eachKey(func() limit.Limiter { return limit.MustRolling(40, time.Hour) }),
			Base: roundTripper(func(r *http.Request) (*http.Response, error) {
				one := r.Clone(r.Context())
				one.Header.Set("Authorization", "")
				resp, err := q.RoundTrip(one)
				resp.Header.Set("Openai-Organization", "org")
				return resp, err
			}),
			MaxWait: func(*http.Request) time.Duration { return time.Second },
		})
		waits := 0
		for i := range 60 {
			r := request(t, http.MethodPost, "https://api.openai.com/v1/files", "", "Authorization", fmt.Sprint("Bearer key ", i%20))
			if _, _, err := do(t, tr, r); errors.Is(err, paceline.ErrDeadline) {
				waits++
			}
		}
		if q.refused > 0 || q.served != 40 || waits != 20 {
			t.Errorf("%d were served, %d refused, %d would wait too long", q.served, q.refused, waits)
		}
	})
}

// A partition with two requests in its window takes 300 bytes at most, so a hundred thousand take less
// than 64 MB.
func TestFrozenPartitionsAreSmall(t *testing.T) {
	race.Without(t) // one request after another
	n := 20_000
	if os.Getenv("PACELINE_LONG") != "" {
		n = 100_000
	}
	synctest.Test(t, func(t *testing.T) {
		tr := mustNew(t, transport.Config{
			Base: roundTripper(func(*http.Request) (*http.Response, error) { return reply(200, ""), nil }), MaxPartitions: 100,
			Limit: eachKey(func() limit.Limiter { return limit.MustRolling(2, 24*time.Hour) }),
		})
		heap := func() float64 {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			return float64(m.HeapAlloc)
		}
		ask := func(i int) {
			for range 2 {
				do(t, tr, get(t, "http://shop.test/x", "Authorization", fmt.Sprintf("Bearer tenant-%07d", i)))
			}
		}
		for i := range 100 {
			ask(-i - 1)
		}
		before := heap()
		for i := range n {
			ask(i)
		}
		each := (heap() - before) / float64(n)
		t.Logf("%d partitions: %.0f bytes each, %.1f MB in all", n, each, each*float64(n)/1e6)
		if each > 300 {
			t.Errorf("a frozen partition takes %.0f bytes, want 300 at most", each)
		}
		if partitions, _ := transport.Frozen(tr); partitions < n {
			t.Errorf("%d are frozen", partitions)
		}
		runtime.KeepAlive(tr)
	})
}

// Two partitions have two names, whatever strangers put into their fields.
func FuzzFrozenNames(f *testing.F) {
	f.Add("key", "a.test", "k", "", "GET /x", "")
	f.Add("", "\x00", "\x01a", strings.Repeat("m", 300), "é", "client")
	f.Fuzz(func(t *testing.T, scope, host, key, model, route, client string) {
		p := transport.Partition{Scope: provider.Scope(scope), Target: route, Host: host, Key: key, Model: model, Route: route, Client: client}
		if again := transport.Repacked(p); again != p {
			t.Errorf("%+v has become %+v", p, again)
		}
	})
}
