package programs

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/need"
)

// A passing is a request of an SDK on its way to the proxy, and what it was answered.
type passing struct {
	call    int64 // max_tokens tell calls apart
	came    time.Time
	left    time.Time // when the answer was known
	status  int
	told    time.Duration // retry-after-ms
	again   string        // x-should-retry
	timeout string        // what it says of its own patience
}

// A tap stands between an SDK and the proxy, and notes what passes.
type tap struct {
	*httptest.Server
	mu  sync.Mutex
	all []passing
}

func newTap(t *testing.T, to string) *tap {
	t.Helper()
	target, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	x := &tap{}
	type key struct{}
	x.Server = httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			body, err := io.ReadAll(r.In.Body)
			var asked struct {
				Most int64 `json:"max_tokens"`
			}
			if err == nil {
				err = json.Unmarshal(body, &asked)
			}
			if err != nil {
				t.Errorf("a body: %v", err)
			}
			r.SetURL(target)
			r.Out.Body = io.NopCloser(bytes.NewReader(body))
			p := &passing{call: asked.Most, came: time.Now(), timeout: r.In.Header.Get("X-Stainless-Timeout")}
			r.Out = r.Out.WithContext(context.WithValue(r.Out.Context(), key{}, p))
		},
		ModifyResponse: func(r *http.Response) error {
			p := r.Request.Context().Value(key{}).(*passing)
			ms, _ := strconv.ParseInt(r.Header.Get("Retry-After-Ms"), 10, 64)
			p.left, p.status, p.told, p.again = time.Now(), r.StatusCode, time.Duration(ms)*time.Millisecond, r.Header.Get("X-Should-Retry")
			x.mu.Lock()
			defer x.mu.Unlock()
			x.all = append(x.all, *p)
			return nil
		},
	})
	t.Cleanup(x.Close)
	return x
}

// calls are the passings of each call, in order.
func (x *tap) calls() map[int64][]passing {
	x.mu.Lock()
	defer x.mu.Unlock()
	all := map[int64][]passing{}
	for _, p := range x.all {
		all[p.call] = append(all[p.call], p)
	}
	return all
}

// TestTold: what the SDKs for Node do when the proxy refuses at once. Told to come back, they do, when they are told to, and are answered;
// told that it is of no use, they throw at once what they throw at a limit, with words that say why. The server hears nothing of either.
func TestTold(t *testing.T) {
	t.Parallel()
	node := need.Node(t, "../node")
	const fits = 4 // of 8 calls, in a window
	for _, sdk := range []struct {
		name     string
		serve    []string
		provider string
	}{
		{"openai", []string{"openai", "--tpm", "1000000"}, "openai"},
		{"anthropic", []string{"anthropic", "--input-tpm", "1000000", "--output-tpm", "1000000"}, "anthropic"},
	} {
		for _, tc := range []struct {
			name            string
			window, maxWait time.Duration
			env             string
			timeout         string // as the SDK tells it, in seconds
			comesBack       bool
		}{
			{"to come back", 5 * time.Second, time.Second, "RETRIES=9", "", true},
			{"that it lasts longer than the SDK waits", 50 * time.Second, time.Minute, "TIMEOUT=20000", "20", false},
			{"that it lasts longer than an SDK heeds", 100 * time.Second, time.Minute, "RETRIES=2", "", false},
		} {
			t.Run(sdk.name+": "+tc.name, func(t *testing.T) {
				t.Parallel()
				server := serve(t, append(sdk.serve, "--rolling", "--rpm", fmt.Sprint(fits), "--window", tc.window.String(), "--latency", "constant:0s", "--first", "constant:0s", "--tokens-per-second", "0")...)
				p := start(t, "proxy", "--to", server.url, "--provider", sdk.provider, "--limit", fmt.Sprintf("%d/%v", fits, tc.window), "--max-wait", tc.maxWait.String(), "--listen", "127.0.0.1:0", "--admin", "off", "--log", "off")
				x := newTap(t, p.url)
				lines, err := said(2*time.Minute, newGate(1), "../node", append(bases(x.URL, x.URL), tc.env), node, "burst.mjs", sdk.name, fmt.Sprint(2*fits))
				if err != nil || len(lines) != 2*fits {
					t.Fatalf("%d lines: %v", len(lines), err)
				}
				answered := 0
				for _, l := range lines {
					switch e := l.Error; {
					case e == nil:
						answered++
					case tc.comesBack:
						t.Errorf("call %s: %+v", l.Call, e)
					case e.Class != "RateLimitError" || e.Status != 429 || !strings.Contains(e.Message, "the turn of this request at "):
						t.Errorf("call %s: %+v", l.Call, e)
					}
				}
				if want := map[bool]int{true: 2 * fits, false: fits}[tc.comesBack]; answered != want {
					t.Errorf("%d calls answered, want %d", answered, want)
				}
				x.heeded(t, tc.comesBack, tc.timeout)
				p.stopped(t)
				if r := server.ended(t); r.Verdicts["accepted"] != answered || len(r.Verdicts) != 1 {
					t.Errorf("the server: %v, want %d accepted", r.Verdicts, answered)
				}
			})
		}
	}
}

// heeded: who was refused was told for how long, and came back no sooner, or not at all.
func (x *tap) heeded(t *testing.T, comesBack bool, timeout string) {
	t.Helper()
	refused := 0
	for call, all := range x.calls() {
		for i, p := range all {
			if p.timeout != timeout && timeout != "" {
				t.Errorf("call %d says a timeout of %q, want %q", call, p.timeout, timeout)
			}
			if p.status != http.StatusTooManyRequests {
				continue
			}
			refused++
			if p.told <= 0 || p.again != fmt.Sprint(comesBack) {
				t.Errorf("call %d was refused with retry-after-ms %v and x-should-retry %q, want %v", call, p.told, p.again, comesBack)
			}
			switch last := i == len(all)-1; {
			case last == comesBack:
				t.Errorf("call %d was sent %d times, and refused at %d", call, len(all), i+1)
			case !last && all[i+1].came.Sub(p.came) < p.told-time.Millisecond: // JavaScript's timers count whole milliseconds
				t.Errorf("call %d was told %v, and came back after %v", call, p.told, all[i+1].came.Sub(p.left))
			}
		}
	}
	if refused == 0 {
		t.Error("nobody was refused")
	}
	t.Logf("%d refused: %d calls", refused, len(x.calls()))
}
