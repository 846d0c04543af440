package run

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/output"
	"github.com/paceline-go/paceline/internal/app/run/sending"
	"github.com/paceline-go/paceline/limit"
)

// roundTrips is a Base.
type roundTrips func(*http.Request) (*http.Response, error)

func (f roundTrips) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func answers(status int, body string) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body))}
}

// A Base sends all attempts. What it did not write goes back in line at once, as no attempt of its request. What it wrote without an answer is a possible repeat.
func TestBase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		calls := map[string]int{}
		b := newBench(t)
		b.config.Attempts = 2
		b.config.Base = roundTrips(func(r *http.Request) (*http.Response, error) {
			mu.Lock()
			defer mu.Unlock()
			calls[r.URL.Path]++
			switch n := calls[r.URL.Path]; {
			case n <= 3 && r.URL.Path != "/lost":
				return nil, &sending.Unsent{Err: errors.New("no turn")}
			case n == 1:
				return nil, errors.New("broken off")
			}
			return answers(200, `{}`), nil
		})
		b.clock = bubbleClock
		got := b.run(`{"id":"a","url":"http://no.test/a"}`, `{"id":"b","url":"http://no.test/b"}`, `{"id":"lost","url":"http://no.test/lost"}`)
		if got.err != nil || got.Done != 3 || got.Repeats != 1 || !got.results["lost"].PossibleRepeat || got.results["a"].Attempts != 1 {
			t.Errorf("%v, %+v", got.err, got.Totals)
		}
		if fmt.Sprint(calls) != "map[/a:4 /b:4 /lost:2]" {
			t.Errorf("%v", calls)
		}
		if text, err := os.ReadFile(output.JournalOf(b.config.Out)); err != nil || strings.Contains(string(text), `"counts"`) {
			t.Errorf("%s %v", text, err)
		}
	})
}

// Limits and keys beside a Base would be counted twice.
func TestBaseAlone(t *testing.T) {
	base := roundTrips(func(*http.Request) (*http.Response, error) { return answers(200, `{}`), nil })
	for name, c := range map[string]Config{
		"limits": {Base: base, Limits: []format.Rate{minutely(1, limit.Requests, false)}}, "auto": {Base: base, Auto: &Auto{}},
		"keys": {Base: base, Keys: []format.Key{{Name: "a", Secret: "s"}}},
	} {
		if _, err := New(c); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "a Base has") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := New(Config{Base: base}); err != nil {
		t.Error(err)
	}
}
