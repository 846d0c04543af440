package run

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/output"
	"github.com/paceline-go/paceline/provider"
)

// nth is a server that answers its first requests with kind and body, and all others well.
type nth struct {
	mu   sync.Mutex
	came []time.Duration
	zero time.Time
}

func (n *nth) next() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.came = append(n.came, time.Since(n.zero))
	return len(n.came)
}

const said3s = `{"error":{"message":"Rate limit reached, please try again in 3s","type":"rate_limit_error","code":"rate_limit_exceeded"}}`

// A gateway refuses with 200: as JSON, or as the first event of a stream. In both formats, with any
// provider or none, the request goes again when the pause is over, and nothing goes before.
func TestRefusedWithin200(t *testing.T) {
	for _, c := range []struct {
		name, provider, kind, body string
		llm                        bool
		pause                      time.Duration
	}{
		{"lines, nobody known", "", "application/json", `{"error":{"type":"rate_limit_error","retry_after":3}}`, false, 3 * time.Second},
		{"lines", "openai", "application/json", said3s, false, 3 * time.Second},
		{"lines, of one who never does so", "anthropic", "application/json", `{"type":"error","error":{"type":"rate_limit_error","message":"x"}}`, false, time.Second},
		{"lines, a stream", "openai", "text/event-stream", "data: " + said3s + "\n\ndata: [DONE]\n\n", false, 3 * time.Second},
		{"lines, a stream, nobody known", "", "text/event-stream", ": wait\n\ndata: {\"error\":{\"code\":429,\"retry_after\":3}}\n\n", false, 3 * time.Second},
		{"a batch", "", "application/json", said3s, true, 3 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := nth{zero: time.Now()}
				b, url, _ := virtualBench(t, func(w http.ResponseWriter, q *http.Request) {
					w.Header().Set("Content-Type", "application/json")
					if n.next() == 2 {
						w.Header().Set("Content-Type", c.kind)
						fmt.Fprint(w, c.body)
						return
					}
					fmt.Fprint(w, `{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`)
				})
				b.config.Concurrency = 1
				b.config.Provider, _ = provider.Lookup(c.provider)
				line := `{"id":"r%d","method":"POST","url":"` + url + `v1/chat/completions","body":{"model":"m"}}`
				if c.llm {
					llm, err := format.NewLLM(format.LLMConfig{Provider: format.OpenAI, BaseURL: url})
					if err != nil {
						t.Fatal(err)
					}
					b.config.Format, b.config.Dead = llm, output.DeadBeside(b.config.Out)
					line = `{"custom_id":"r%d","method":"POST","url":"/v1/chat/completions","body":{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"x"}]}}`
				}
				var lines []string
				for i := range 4 {
					lines = append(lines, fmt.Sprintf(line, i))
				}
				got := b.run(lines...)
				if got.Done != 4 || got.Rejected != 1 || got.Repeats != 0 || got.Dead != 0 || len(n.came) != 5 {
					t.Errorf("%+v, came at %v\n%s", got.Totals, n.came, got.notices)
				}
				if gap := n.came[2] - n.came[1]; gap < c.pause-time.Millisecond || gap > c.pause*3/2 {
					t.Errorf("the next came after %v, want %v", gap, c.pause)
				}
				for _, r := range got.results {
					if r.Body != nil && strings.Contains(*r.Body, "error") {
						t.Errorf("done with the refusal as its result: %s", r.Append(nil))
					}
				}
			})
		})
	}
}

const (
	halfOfTwo = `{"responses":[{"id":"1","status":201},{"id":"2","status":429,"headers":{"Retry-After":"7"}}]}`
	post      = `{"requests":[{"id":"1","method":"POST","url":"/a"},{"id":"2","method":"GET","url":"/b"}]}`
	gets      = `{"requests":[{"id":"1","method":"GET","url":"/a"},{"id":"2","method":"GET","url":"/b"}]}`
)

// What was served in part is the result of its request, and says so; it is not sent again, unless
// all of it only reads, or the user wants that. Its pause is kept, and it counts in full.
func TestPartly(t *testing.T) {
	for _, c := range []struct {
		name   string
		partly Partly
		body   string
		sends  int
		want   string // in the line of the result
		dead   bool
	}{
		{"done", PartlyDone, post, 1, `"partly":{"served":1,"refused":1}`, false},
		{"only reads", PartlyDone, gets, 2, `"possible_repeat":true`, false},
		{"again", PartlyAgain, post, 2, `"possible_repeat":true`, false},
		{"hold", PartlyHold, post, 1, `"class":"partly"`, true},
		{"hold what only reads", PartlyHold, gets, 1, `"class":"partly"`, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := nth{zero: time.Now()}
				b, url, seen := virtualBench(t, func(w http.ResponseWriter, q *http.Request) {
					w.Header().Set("Content-Type", "application/json")
					if n.next() == 1 {
						fmt.Fprint(w, halfOfTwo)
						return
					}
					fmt.Fprint(w, "{}")
				})
				b.config.Concurrency, b.config.Partly = 1, c.partly
				got := b.run(fmt.Sprintf(`{"id":"x","method":"POST","url":%q,"body":%s}`, url+"?x", c.body), request("y", url+"?y"))
				r, isDead := got.results["x"], false
				if c.dead {
					r, isDead = got.dead["x"], true
				}
				line := string(r.Append(nil))
				if seen("x") != c.sends || !strings.Contains(line, c.want) || isDead != c.dead || r.ID == "" {
					t.Errorf("sent %d times, %s", seen("x"), line)
				}
				wantPartly := 0
				if c.sends == 1 && !c.dead {
					wantPartly = 1
				}
				if said := strings.Contains(got.notices, "1 request was served in part"); got.Partly != wantPartly || said != (wantPartly == 1) {
					t.Errorf("%+v\n%s", got.Totals, got.notices)
				}
				var failed []string // what the attempts are called that failed
				for _, f := range got.Failed {
					failed = append(failed, f.What)
				}
				want := []string{"200, served in part"}
				if wantPartly == 1 {
					want = nil
				}
				if !slices.Equal(failed, want) {
					t.Errorf("failed attempts: %q, want %q", failed, want)
				}
				if gap := n.came[1] - n.came[0]; gap < 7*time.Second || gap > 8*time.Second || got.results["y"].State != "done" {
					t.Errorf("the next came after %v", gap)
				}
			})
		})
	}
}

// What is served in part again and again is done with its last answer, when its attempts are over.
func TestPartlyToTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, url, seen := virtualBench(t, func(w http.ResponseWriter, q *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, halfOfTwo)
		})
		b.config.Attempts = 3
		got := b.run(fmt.Sprintf(`{"id":"x","method":"POST","url":%q,"body":%s}`, url+"?x", gets))
		if r := got.results["x"]; seen("x") != 3 || r.State != "done" || r.Attempts != 3 || r.Partly == nil || !r.PossibleRepeat || got.Partly != 1 {
			t.Errorf("sent %d times, %s", seen("x"), r.Append(nil))
		}
	})
}

// What was served in part uses up the limit in full, also where refused requests are free.
func TestPartlyCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := nth{zero: time.Now()}
		b, url, _ := virtualBench(t, func(w http.ResponseWriter, q *http.Request) {
			n.next()
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, strings.Replace(halfOfTwo, `"7"`, `"1"`, 1))
		})
		b.config.Arrivals.RejectsFree = true
		b.config.Limits = []format.Rate{{N: 1, Per: time.Minute, Text: "1/m"}}
		b.run(request("a", url), fmt.Sprintf(`{"id":"b","method":"POST","url":%q,"body":%s}`, url, post))
		for i := 1; i < len(n.came); i++ {
			if gap := n.came[i] - n.came[i-1]; gap < time.Minute {
				t.Errorf("the next came after %v", gap)
			}
		}
	})
}
