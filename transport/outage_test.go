package transport_test

import (
	"cmp"
	"crypto/x509"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/pool/backoff"
	"github.com/paceline-go/paceline/transport"
)

var errRefused = &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}

// host is a Base at which nothing arrives until it is back: nothing is written then.
type host struct {
	began, back time.Time
	errs        []error       // in turn
	status      int           // of its answers
	never       string        // a path to which there is no way, ever
	again       time.Duration // how long it is away after each answer; for one request at a time
	refused     atomic.Int64
}

func away(d time.Duration, errs ...error) *host {
	return &host{began: time.Now(), back: time.Now().Add(d), errs: errs, status: 200}
}

func (h *host) RoundTrip(r *http.Request) (*http.Response, error) {
	trace := httptrace.ContextClientTrace(r.Context())
	trace.GetConn("a.test:80")
	if time.Now().Before(h.back) || r.URL.Path == h.never {
		return nil, h.errs[int(h.refused.Add(1))%len(h.errs)]
	}
	trace.GotConn(httptrace.GotConnInfo{})
	if h.again > 0 {
		h.back = time.Now().Add(h.again)
	}
	return reply(h.status, ""), nil
}

// Nothing reaches a host. Waiting requests fail after MaxOutage, one at a time probes, and all go
// when the host is back.
func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := away(time.Minute, errRefused)
		tr := mustNew(t, transport.Config{Base: h})
		var wg sync.WaitGroup
		var mu sync.Mutex
		served, told, failed := 0, 0, 0
		for range 1000 {
			wg.Go(func() {
				status, _, err := do(t, tr, get(t, "http://a.test/"))
				mu.Lock()
				defer mu.Unlock()
				switch {
				case status == 200:
					served++
				case errors.Is(err, transport.ErrOutage) && errors.Is(err, syscall.ECONNREFUSED):
					told++
				case errors.Is(err, syscall.ECONNREFUSED):
					failed++
				default:
					t.Error(status, err)
				}
			})
			time.Sleep(100 * time.Millisecond)
		}
		wg.Wait()
		if n := h.refused.Load(); n > 40 || served < 250 || failed > 40 || served+told+failed != 1000 {
			t.Errorf("%d found nobody: %d served, %d told, %d failed", n, served, told, failed)
		}
	})
}

// A host is away for any reason, for less than MaxOutage. A request that was never sent does not
// fail, however few attempts there are, even if its client would try again by itself. Apart from
// requests that came all at once, before anything was known, only a few try in vain.
func TestNobodyFailsWithinMaxOutage(t *testing.T) {
	for seed := range uint64(40) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			kinds := []error{errRefused, &net.DNSError{Err: "no such host", Name: "a.test", IsNotFound: true}, x509.UnknownAuthorityError{}, errRefused}
			h := away(time.Duration(random.Int64N(int64(10*time.Second))), kinds[random.IntN(2):2+random.IntN(3)]...)
			tr := mustNew(t, transport.Config{Base: h, Attempts: 1 + random.IntN(3)})
			const all = 300
			atOnce := random.IntN(2) * random.IntN(all)
			var wg sync.WaitGroup
			for i := range all {
				wg.Go(func() {
					r := request(t, []string{http.MethodGet, http.MethodPost}[i%2], "http://a.test/", "x")
					if i%3 == 0 {
						r.Header.Set("X-Stainless-Retry-Count", "1")
					}
					if status, _, err := do(t, tr, r); status != 200 || err != nil {
						t.Errorf("seed %d, %v after the beginning: %d, %v", seed, time.Since(h.began), status, err)
					}
				})
				if i >= atOnce {
					time.Sleep(time.Duration(random.Int64N(int64(100 * time.Millisecond))))
				}
			}
			wg.Wait()
			if n := int(h.refused.Load()); n > atOnce+30 {
				t.Errorf("seed %d: %d attempts found nobody, %d came at once", seed, n, atOnce)
			}
		})
	}
}

// A request that was never sent has used no attempt. Its attempts are as many as ever, however
// often the host goes away between them.
func TestWhatWasNeverSentIsNoAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := away(3*time.Second, errRefused)
		h.status, h.again = 429, 8*time.Second
		var sent, none []int
		tr := mustNew(t, transport.Config{Base: h, Backoff: backoff.Policy{Jitter: -1}, Ended: func(a transport.Attempt) {
			if a.Status == 0 {
				none = append(none, a.Number)
			} else {
				sent = append(sent, a.Number)
			}
		}})
		if status, _, err := do(t, tr, get(t, "http://a.test/")); status != 429 || err != nil {
			t.Error(status, err)
		}
		if !slices.Equal(sent, []int{1, 2, 3}) || !slices.Equal(slices.Compact(none), []int{1, 2, 3}) {
			t.Errorf("sent as number %v, never sent as %v", sent, none)
		}
	})
}

// A request waits from its first attempt in vain to its end: in line, or between two attempts. With the
// end of MaxOutage it fails, however long the pause between two probes is by then.
func TestWhatWaitsForAHostIsShown(t *testing.T) {
	for _, most := range []time.Duration{4 * time.Second, 0, 14 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			h := away(time.Hour, errRefused)
			tr := mustNew(t, transport.Config{Base: h, MaxOutage: most, Client: func(*http.Request) transport.Client { return transport.Client{Name: "ann"} }})
			for range 2 {
				go func() { do(t, tr, get(t, "http://a.test/")) }()
			}
			synctest.Wait()
			most, shown := cmp.Or(most, 10*time.Second), false
			for time.Since(h.began) < most-time.Millisecond {
				s := tr.Snapshot()
				if c := s.Clients[0]; s.Waiting != 2 || s.InFlight != 0 || c.Waiting != 2 || c.Name != "ann" || s.LongestWait != c.LongestWait {
					t.Fatalf("after %v: %+v", time.Since(h.began), s)
				}
				shown = shown || s.LongestWait > 50*time.Millisecond && len(s.Paused) == 0
				time.Sleep(3 * time.Millisecond)
				synctest.Wait()
			}
			time.Sleep(time.Second)
			synctest.Wait()
			if s := tr.Snapshot(); s.Waiting != 0 || s.LongestWait != 0 || !shown {
				t.Errorf("after MaxOutage of %v: %+v", most, s)
			}
		})
	}
}

// A host is down. MaxWait bounds the wait of the first request, whose attempts find that out, to the end. A later one is told what
// stands in its way, and when the host is asked again.
func TestMaxWaitAtAHostThatIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := away(time.Hour, errRefused)
		tr := mustNew(t, transport.Config{Base: h, Backoff: backoff.Policy{Jitter: -1}, MaxWait: func(r *http.Request) time.Duration {
			if r.URL.Path == "/soon" {
				return time.Millisecond
			}
			return 2 * time.Second
		}})
		var first sync.WaitGroup
		first.Go(func() {
			if _, _, err := do(t, tr, get(t, "http://a.test/")); !errors.Is(err, syscall.ECONNREFUSED) || time.Since(h.began) > 2*time.Second {
				t.Errorf("%v after %v, want that the host refused within 2 s", err, time.Since(h.began))
			}
		})
		var late error // of the latest that was not the probe itself
		for range 15 {
			time.Sleep(100 * time.Millisecond)
			if _, _, err := do(t, tr, get(t, "http://a.test/soon")); errors.Is(err, paceline.ErrDeadline) {
				late = err
			}
		}
		first.Wait()
		want := regexp.MustCompile(`^transport: a.test: the host has been down for [.\d]+ m?s \(dial tcp: connect: connection refused\), ` +
			`and is asked again in [.\d]+ m?s; the request waits for 1 ms at most$`)
		if late == nil || !want.MatchString(late.Error()) {
			t.Errorf("%v, want\n%s", late, want)
		}
	})
}

// A host works for others, and not for one request. That one fails not sooner than after MaxOutage,
// and not much later. If no request may wait for a host, attempts count as ever. A shorter MaxWait
// also shortens the wait for a way.
func TestTheWayOfOneAlone(t *testing.T) {
	for _, tc := range []struct {
		most, least, last time.Duration
		tries             int           // at most
		wait              time.Duration // MaxWait
	}{{0, 10 * time.Second, 12 * time.Second, 13, 0}, {4 * time.Second, 4 * time.Second, 6 * time.Second, 9, 0},
		{-1, 300 * time.Millisecond, 300 * time.Millisecond, 3, 0}, {0, 2 * time.Second, 2 * time.Second, 8, 2 * time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			h := away(0, errRefused)
			h.never = "/lost"
			tr := mustNew(t, transport.Config{Base: h, MaxOutage: tc.most, Backoff: backoff.Policy{Jitter: -1}, MaxWait: func(*http.Request) time.Duration { return tc.wait }})
			over := make(chan struct{})
			var others sync.WaitGroup
			others.Go(func() {
				for {
					if status, _, err := do(t, tr, get(t, "http://a.test/")); status != 200 || err != nil {
						t.Error(status, err)
					}
					select {
					case <-over:
						return
					case <-time.After(10 * time.Millisecond):
					}
				}
			})
			_, _, err := do(t, tr, get(t, "http://a.test/lost"))
			took, tries := time.Since(h.began), int(h.refused.Load())
			close(over)
			others.Wait()
			if !errors.Is(err, syscall.ECONNREFUSED) || took < tc.least || took > tc.last || tries > tc.tries {
				t.Errorf("MaxOutage %v: after %v and %d tries: %v", tc.most, took, tries, err)
			}
		})
	}
}
