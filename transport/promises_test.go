package transport_test

import (
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/wire"
	"github.com/paceline-go/paceline/transport"
)

// What was stopped before it was written is sent when its turn comes again, if its body can be had once more; if not, there is an error and
// nothing is left open.
func TestLapsedBody(t *testing.T) {
	for _, tc := range []struct {
		name string
		body func() (io.ReadCloser, error)
		want error
	}{
		{"to be had again", func() (io.ReadCloser, error) { return http.NoBody, nil }, nil},
		{"not to be had again", func() (io.ReadCloser, error) { return nil, errBroken }, errBroken},
		{"read once", nil, wire.ErrLapsed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tries := 0
				all := &spies{}
				tr := mustNew(t, transport.Config{Limiter: all.limiter(), Base: roundTripper(func(r *http.Request) (*http.Response, error) {
					r.Body.Close()
					if tries++; tries == 1 {
						return nil, wire.ErrLapsed
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

// A client that would try again by itself is told not to where another request has heard that nothing goes for hours: a refusal that
// comes later names no time of its own.
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
