package transport_test

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/internal/send"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/transport"
)

// A request that was stopped before its write goes when its turn comes again, if its body can be
// made once more. If not, there is an error and nothing is left open.
func TestLapsedBody(t *testing.T) {
	for _, tc := range []struct {
		name string
		body func() (io.ReadCloser, error)
		want error
	}{
		{"to be had again", func() (io.ReadCloser, error) { return http.NoBody, nil }, nil},
		{"not to be had again", func() (io.ReadCloser, error) { return nil, errBroken }, errBroken},
		{"read once", nil, send.ErrLapsed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tries := 0
				all := &spies{}
				tr := mustNew(t, transport.Config{Limiter: all.limiter(), Base: roundTripper(func(r *http.Request) (*http.Response, error) {
					r.Body.Close()
					if tries++; tries == 1 {
						return nil, send.ErrLapsed
					}
					return reply(200, "fine"), nil
				})})
				r := request(t, http.MethodPost, "http://a.test/", "x")
				r.GetBody = tc.body
				resp, err := tr.RoundTrip(r)
				if !errors.Is(err, tc.want) || (err == nil) != (resp != nil) || (tries == 2) != (err == nil) {
					t.Errorf("%v %v after %d tries", resp, err, tries)
				}
				if resp != nil {
					io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
				if all.open() != 0 {
					t.Errorf("%d are open", all.open())
				}
			})
		})
	}
}

// A client that would try again by itself gets X-Should-Retry: false, if another request has
// learned of a pause for hours. A later refusal names no time of its own.
func TestClientsAreToldWhatAnotherHasHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := mustNew(t, transport.Config{Attempts: 3, Base: roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.URL.Path == "/first" {
				return reply(429, "", "Retry-After", "7200"), nil
			}
			time.Sleep(time.Second)
			resp := reply(429, "")
			resp.Header = nil // as a RoundTripper that is no server may leave it
			return resp, nil
		})})
		told := make(chan string)
		for _, path := range []string{"/second", "/first"} {
			go func() {
				resp, err := tr.RoundTrip(get(t, "http://a.test"+path, "X-Stainless-Retry-Count", "0"))
				if err != nil {
					t.Error(err)
					told <- ""
					return
				}
				told <- resp.Header.Get("X-Should-Retry")
			}()
			synctest.Wait()
		}
		for range 2 {
			if s := <-told; s != "false" {
				t.Errorf("one was told %q", s)
			}
		}
	})
}

// A request without a URL is an error for who sends it and for who asks, and nothing is sent.
func TestNoURL(t *testing.T) {
	b := newBase(0, ok)
	tr := mustNew(t, transport.Config{Base: b})
	if resp, err := tr.RoundTrip(&http.Request{}); err == nil || resp != nil {
		t.Errorf("%v, %v", resp, err)
	}
	if _, _, err := tr.Ask(&http.Request{}); err == nil {
		t.Error("asked without a URL")
	}
	if n := len(b.at()); n != 0 {
		t.Errorf("%d were sent", n)
	}
}

// Ask for a request that never fits returns the same error as sending it: with the client's name,
// and no instant.
func TestAskOfWhatNeverFits(t *testing.T) {
	tr := mustNew(t, transport.Config{
		Base: newBase(0, ok), Limiter: rolling(t, 5, time.Minute, limit.Tokens),
		Client: func(*http.Request) transport.Client { return transport.Client{Name: "c"} },
		Cost:   func(_ *http.Request, c limit.Cost) limit.Cost { c[limit.Tokens] = 6; return c },
	})
	at, ahead, asked := tr.Ask(get(t, "http://a.test/"))
	_, _, sent := do(t, tr, get(t, "http://a.test/"))
	for _, err := range []error{asked, sent} {
		if e, ok := errors.AsType[*transport.Error](err); !ok || !errors.Is(err, paceline.ErrNever) || e.Client != "c" {
			t.Errorf("%v", err)
		}
	}
	if !at.IsZero() || ahead != 0 {
		t.Errorf("at %v, %d ahead", at, ahead)
	}
}

// When the last key is out, waiting requests fail at once because no key is left, and so do later
// ones. When the key is used again, requests go.
func TestWhoWaitsIsToldThatAllKeysAreOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newKeyed()
		b.answers["a"] = always(429, unpaid)
		ks := keys(t, 1, "a")
		ks[0].Limit = func(p transport.Partition) limit.Limiter {
			if p.Scope != provider.Key {
				return nil
			}
			return rolling(t, 1, time.Hour, limit.Requests)
		}
		tr := mustNew(t, transport.Config{Base: b, Keys: ks})
		begin := time.Now()
		var wg sync.WaitGroup
		told := 0
		for range 3 {
			wg.Go(func() {
				if _, _, err := do(t, tr, get(t, "http://a.test/")); errors.Is(err, transport.ErrKeys) {
					told++
				}
			})
			synctest.Wait()
		}
		wg.Wait()
		if _, _, err := do(t, tr, get(t, "http://a.test/")); !errors.Is(err, transport.ErrKeys) {
			t.Errorf("later: %v", err)
		}
		if n := b.count()["a"]; told != 2 || n != 1 || time.Since(begin) != 0 {
			t.Errorf("%d sent, %d of the others told, after %v", n, told, time.Since(begin))
		}
		b.answers["a"] = nil
		if !tr.Readmit("a") {
			t.Error("it was not out")
		}
		if status, _, err := do(t, tr, get(t, "http://a.test/")); status != 200 || err != nil {
			t.Errorf("readmitted: %d %v", status, err)
		}
	})
}

// Where the first of a pair panics before there is a second, nothing is under way any more.
func TestHedgeOfWhatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := mustNew(t, transport.Config{Hedge: transport.Hedge{After: time.Second, Share: 1}, Base: roundTripper(func(*http.Request) (*http.Response, error) { panic("broken") })})
		for range 2 {
			func() {
				defer func() {
					if recover() == nil {
						t.Error("it did not panic")
					}
				}()
				tr.RoundTrip(get(t, "http://a.test/"))
			}()
		}
		if n := transport.Active(tr); n != 0 {
			t.Errorf("%d are under way", n)
		}
	})
}
