package transport_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/pool/backoff"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/tokens"
	"github.com/paceline-go/paceline/transport"
)

// text is so many bytes that differ.
func text(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = 'a' + byte(i*i%23)
	}
	return string(b)
}

// watched is a body that says whether it was closed, and how much of it was read.
type watched struct {
	io.Reader
	read   int
	closed int
}

func (b *watched) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.read += n
	return n, err
}
func (b *watched) Close() error { b.closed++; return nil }

// The caller gets all of a refusal, however long it is and however it comes. So it is too after a
// pause that was waited for in vain.
func TestRefusalsAreWhole(t *testing.T) {
	for _, size := range []int{0, provider.MaxBody, provider.MaxBody + 1} {
		for name, slow := range map[string]func(io.Reader) io.Reader{"by halves": iotest.HalfReader, "with its end": iotest.DataErrReader} {
			for _, attempts := range []int{1, 2} {
				for _, peeks := range []int{-1, 10, 1 << 20} { // how much of it CheckRetry reads; -1: there is none
					var bodies []*watched
					c := transport.Config{Attempts: attempts, Base: roundTripper(func(*http.Request) (*http.Response, error) {
						resp := reply(429, "", "Retry-After", "0")
						b := &watched{Reader: slow(strings.NewReader(text(size)))}
						resp.Body, resp.ContentLength, bodies = b, -1, append(bodies, b)
						return resp, nil
					}), Backoff: backoff.Policy{Base: time.Second, Jitter: -1}}
					if peeks >= 0 {
						c.CheckRetry = func(_ context.Context, a transport.Attempt, resp *http.Response) (bool, error) {
							_, _ = io.CopyN(io.Discard, resp.Body, int64(peeks))
							resp.Body.Close()
							return a.Again, nil
						}
					}
					synctest.Test(t, func(t *testing.T) {
						status, body, err := do(t, mustNew(t, c), get(t, "http://a.test/"))
						if status != 429 || err != nil || body != text(size) || len(bodies) != attempts {
							t.Errorf("%d bytes %s, %d attempts, peeked at %d: %d, %d bytes, %v", size, name, attempts, peeks, status, len(body), err)
						}
						for _, b := range bodies {
							if b.closed == 0 {
								t.Errorf("%d bytes %s, %d attempts, peeked at %d: not closed", size, name, attempts, peeks)
							}
						}
					})
				}
			}
		}
	}
}

// A body is read up to MaxBody to count its tokens. A longer one counts by its length, and is not
// read if the length is known. In any case all of it is sent.
func TestLongPromptsAreSentWhole(t *testing.T) {
	const most = 200
	for _, tc := range []struct {
		size    int
		says    bool // its length
		rewinds bool
		input   int64 // what is reserved; 0: as estimated
	}{
		{most, true, true, 0}, {most, false, false, 0}, {most, false, true, 0},
		{most + 1, true, true, (most + 1 + 3) / 4}, {most + 4, true, false, (most + 4 + 3) / 4},
		{most + 1, false, false, (most + 1 + 3) / 4}, {most + 1, false, true, (most + 1 + 3) / 4}, {3 * most, false, false, (most + 1 + 3) / 4},
	} {
		synctest.Test(t, func(t *testing.T) {
			body := `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"`
			body += text(tc.size-len(body)-4) + `"}]}`
			var got, again string
			count := &spy{}
			tr := mustNew(t, transport.Config{Limiter: count, Tokens: estimator(t), MaxBody: most, Base: roundTripper(func(r *http.Request) (*http.Response, error) {
				b, err := io.ReadAll(r.Body)
				if got = string(b); err != nil {
					t.Error(err)
				}
				r.Body.Close()
				if again = ""; r.GetBody != nil { // for a connection that breaks before anything is written
					body, err := r.GetBody()
					if err != nil {
						t.Fatal(err)
					}
					b, _ := io.ReadAll(body)
					again = string(b)
				}
				return reply(200, "{}"), nil
			})})
			r := request(t, http.MethodPost, chat, body)
			given := &watched{Reader: strings.NewReader(body)}
			if r.Body = given; !tc.rewinds {
				r.GetBody = nil
			}
			if !tc.says {
				r.ContentLength = -1
			}
			do(t, tr, r)
			if got != body || given.closed != 1 {
				t.Errorf("%+v: %d of %d bytes arrived, closed %d times", tc, len(got), len(body), given.closed)
			}
			if whole := tc.rewinds || tc.size <= most; (again == body) != whole || again != "" && !whole {
				t.Errorf("%+v: the Base gets %d of %d bytes again", tc, len(again), len(body))
			}
			estimated, err := estimator(t).Estimate(tokens.Chat, []byte(body))
			if err != nil {
				t.Fatal(err)
			}
			if want := max(tc.input, 0); count.cost[limit.Input] != want && (want > 0 || count.cost[limit.Input] != estimated.Input) {
				t.Errorf("%+v: %d tokens of input are reserved, want %d, estimated %d", tc, count.cost[limit.Input], want, estimated.Input)
			}
		})
	}
}

// If CheckRetry agrees that a refusal is worth another attempt, that goes at the end of the pause,
// not after the delay of a failure. A failure that CheckRetry wants sent again waits like any
// other.
func TestCheckedAgainWaitsAsAny(t *testing.T) {
	for _, tc := range []struct {
		status int
		method string
		sent   []time.Duration
	}{
		{429, http.MethodGet, seconds(0, 1)},
		{503, http.MethodGet, seconds(0, 1)}, // an overload that says how long it lasts is a refusal, too
		{500, http.MethodGet, seconds(0, 30)},
		{500, http.MethodPost, seconds(0, 30)},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBase(0, func(n int, _ *http.Request) *http.Response {
				if n == 1 {
					return reply(tc.status, "", "Retry-After", "1")
				}
				return reply(200, "")
			})
			tr := mustNew(t, transport.Config{
				Base: b, Backoff: backoff.Policy{Base: 30 * time.Second, Jitter: -1},
				CheckRetry: func(_ context.Context, a transport.Attempt, _ *http.Response) (bool, error) {
					return a.Number == 1, nil
				},
			})
			r := request(t, tc.method, "http://a.test/", "x")
			r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader([]byte("x"))), nil }
			if status, _, err := do(t, tr, r); status != 200 || err != nil || !slices.Equal(b.at(), tc.sent) {
				t.Errorf("%d: %d, %v, sent at %v, want %v", tc.status, status, err, b.at(), tc.sent)
			}
		})
	}
}

// breaks fails once, at its end.
type breaks struct {
	err error
	io.Reader
}

func (b *breaks) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err == io.EOF && b.err != nil {
		err, b.err = b.err, nil
	}
	return n, err
}

// If an answer breaks while CheckRetry reads it, the caller gets that error, after the earlier
// bytes.
func TestBrokenWhileLookedInto(t *testing.T) {
	gone := errors.New("gone")
	c := transport.Config{Attempts: 1, Base: roundTripper(func(*http.Request) (*http.Response, error) {
		resp := reply(400, "")
		resp.Body = io.NopCloser(&breaks{gone, strings.NewReader("some")})
		return resp, nil
	}), CheckRetry: func(_ context.Context, _ transport.Attempt, resp *http.Response) (bool, error) {
		_, _ = io.ReadAll(resp.Body)
		return false, nil
	}}
	resp, err := mustNew(t, c).RoundTrip(get(t, "http://a.test/"))
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(resp.Body); string(b) != "some" || !errors.Is(err, gone) {
		t.Errorf("%q, %v", b, err)
	}
	resp.Body.Close()
}

// An answer that comes when its attempt has been ended is none, and its body is closed: reading it would fail. Nor is no answer without an
// error one.
func TestAnswersThatAreNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := &watched{Reader: strings.NewReader("late")}
		tr := mustNew(t, transport.Config{Attempts: 1, AttemptTimeout: 3 * time.Second, Base: roundTripper(func(r *http.Request) (*http.Response, error) {
			time.Sleep(5 * time.Second) // whatever becomes of its context
			resp := reply(200, "")
			resp.Body = late
			return resp, nil
		})})
		if resp, err := tr.RoundTrip(get(t, "http://a.test/")); resp != nil || !errors.Is(err, transport.ErrAttemptTimeout) || late.closed != 1 {
			t.Errorf("%v, %v, closed %d times", resp, err, late.closed)
		}
		tr = mustNew(t, transport.Config{Attempts: 1, Base: roundTripper(func(*http.Request) (*http.Response, error) { return nil, nil })})
		if resp, err := tr.RoundTrip(get(t, "http://a.test/")); resp != nil || err == nil || !strings.Contains(err.Error(), "neither an answer nor an error") {
			t.Errorf("%v, %v", resp, err)
		}
	})
}
