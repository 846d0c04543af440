package sending

import (
	"errors"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/secret"
	"github.com/paceline-go/paceline/limit"
)

type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(q *http.Request) (*http.Response, error) { return f(q) }

// slow is a part of a body that takes a second, and has no bytes.
type slow struct{}

func (slow) Read([]byte) (int, error) {
	time.Sleep(time.Second)
	return 0, io.EOF
}

// A Base gets a request with its body. An attempt ends with the body of its answer. The time that it waits there is no time of the answer, and a request that it
// could not write counts as not written.
func TestABaseSends(t *testing.T) {
	for _, c := range []struct{ method, body string }{{"GET", ""}, {"POST", "a body"}} {
		synctest.Test(t, func(t *testing.T) {
			var got string
			refuses := false
			s := New(Config{Secrets: noSecrets, Timeout: time.Minute, MaxResponse: 100, UserAgent: "paceline",
				Base: tripper(func(q *http.Request) (*http.Response, error) {
					if refuses {
						return nil, &Unsent{Err: errors.New("no room")}
					}
					if q.Body != nil {
						b, err := io.ReadAll(q.Body)
						if got = string(b); err != nil || q.ContentLength != int64(len(b)) {
							t.Errorf("%d bytes of %d: %v", len(b), q.ContentLength, err)
						}
					}
					time.Sleep(3 * time.Second)
					Begins(q.Context())
					time.Sleep(2 * time.Second)
					answer := io.NopCloser(io.MultiReader(strings.NewReader("ans"), slow{}, strings.NewReader("wer")))
					return &http.Response{StatusCode: 200, Header: http.Header{}, Body: answer}, nil
				})})
			r, h := target(t, c.method, "http://h/x", c.body)
			began := time.Now()
			var out Response
			s.Send(t.Context(), r, h, &format.Values{ID: "r", Attempt: 1}, nil, &out)
			if out.Err != nil || out.Status != 200 || string(out.Body) != "answer" || !out.Written || got != c.body {
				t.Errorf("%s: %+v, sent %q", c.method, out, got)
			}
			if out.InLine != 3*time.Second || out.Began.Sub(began) != 3*time.Second || out.Ended.Sub(began) != 6*time.Second {
				t.Errorf("%v in line, %+v", out.InLine, out)
			}
			refuses = true
			s.Send(t.Context(), r, h, &format.Values{ID: "r", Attempt: 2}, nil, &out)
			if out.Err == nil || out.Err.Error() != "no room" || out.Written || out.Status != 0 {
				t.Errorf("%s, refused: %+v", c.method, out)
			}
		})
	}
}

// A plan shows a request without the secrets that its line has, also where one is repeated.
func TestASampleHidesSecrets(t *testing.T) {
	const hidden = "aB3dE5gH7jK9mN1pQ"
	keys := []secret.Key{{Name: "A", Value: "xY3dE5gH7jK9mN1pQ"}}
	s := New(Config{Secrets: format.NewSecrets(keys, nil, nil, format.Plain{})})
	q := &format.Request{ID: "r", Line: 3, Method: "POST", Cost: limit.One}
	q.Header = http.Header{"X-Api-Key": {hidden}}
	hop, _ := target(t, "GET", "http://h/x?token="+hidden+"&a=1", "")
	q.URL, q.Body = hop.URL, []byte("repeats "+hidden)
	p := s.Sample(q, "A")
	shown := p.URL + strings.Join(p.Headers, "\n") + p.Body
	if strings.Contains(shown, hidden) || !strings.Contains(p.URL, "a=1") || p.Line != 3 {
		t.Errorf("%+v", p)
	}
}

// Some of the files that a process may open are no connections, and at least one is.
func TestConnectionsOfFiles(t *testing.T) {
	for files, want := range map[uint64]int{
		0: 1, otherFiles: 1, otherFiles + 1: 1, otherFiles + 2: 2, otherFiles + 1000: 1000, math.MaxUint64: math.MaxInt32,
	} {
		if got := connections(files); got != want {
			t.Errorf("%d files: %d connections, want %d", files, got, want)
		}
	}
}
