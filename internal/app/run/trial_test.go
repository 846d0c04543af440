package run

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/output"
	"github.com/paceline-go/paceline/internal/testkit/fakeconn"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/pool"
	"github.com/paceline-go/paceline/tokens"
)

// The first request of a model goes alone until its answer is evidence about the model and the key,
// or for 3 s. A wrong name or key costs one request.
func TestFirstOfAModel(t *testing.T) {
	const served = `{"usage":{"prompt_tokens":8,"completion_tokens":5}}`
	for _, c := range []struct {
		name    string
		answers func(n int) (status int, body string, after time.Duration) // to the nth of a model
		alone   int                                                        // how many go alone
		all     time.Duration                                              // when the others go, at the latest
		asked   int                                                        // at the end, of each model
		done    int
		err     error
	}{
		{"served", func(int) (int, string, time.Duration) { return 200, served, time.Second }, 1, time.Second, 20, 40, nil},
		{"a long thought", func(int) (int, string, time.Duration) { return 200, served, time.Minute }, 1, 3 * time.Second, 20, 40, nil},
		{"its own fault", func(n int) (int, string, time.Duration) {
			if n == 1 {
				return 400, `{"error":{"message":"max_tokens is too large"}}`, time.Second
			}
			return 200, served, time.Second
		}, 2, 2 * time.Second, 20, 38, nil}, // it shows nothing of the model: the next one goes alone, too
		{"too large for it", func(n int) (int, string, time.Duration) {
			if n == 1 {
				return 429, `{"error":{"message":"Request too large for x: Limit 30000, Requested 40000"}}`, time.Second
			}
			return 200, served, time.Second
		}, 2, 2 * time.Second, 20, 38, nil}, // it shows nothing of the model: the next one goes alone, too
		{"a server that fails", func(n int) (int, string, time.Duration) {
			if n <= 3 {
				return 500, `{}`, time.Second
			}
			return 200, served, time.Second
		}, 4, 6 * time.Second, 23, 40, nil},
		{"a limit", func(n int) (int, string, time.Duration) {
			if n == 1 {
				return 429, `{}`, time.Second
			}
			return 200, served, time.Second
		}, 1, 10 * time.Second, 21, 40, nil},
		{"no such model", func(int) (int, string, time.Duration) {
			return 404, `{"error":{"code":"model_not_found"}}`, time.Second
		}, 1, 0, 1, 0, nil},
		{"a limit of 0", func(int) (int, string, time.Duration) {
			return 429, `[{"error":{"status":"RESOURCE_EXHAUSTED","message":"Quota exceeded for metric: free_tier_requests, limit: 0\nPlease retry in 20.1s."}}]`, time.Second
		}, 1, 0, 1, 0, nil},
		// Of the requests denied once two are dead. Then the key is at fault, and one request at a
		// time probes it.
		{"a key that may nothing", func(int) (int, string, time.Duration) { return 403, `{}`, time.Second }, 20, 0, 0, 0, pool.ErrExhausted},
		// One request of each model is on its way at that time.
		{"a wrong key", func(int) (int, string, time.Duration) { return 401, `{}`, time.Second }, 1, 0, 1, 0, pool.ErrExhausted},
	} {
		out := filepath.Join(t.TempDir(), "out.jsonl")
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			var said []string
			began, asked, alone, latest := time.Now(), map[string]int{}, map[string]int{}, time.Duration(0)
			handler := http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				body, _ := io.ReadAll(q.Body)
				model := "a"
				if bytes.Contains(body, []byte(`"model":"b"`)) {
					model = "b"
				}
				mu.Lock()
				asked[model]++
				n := asked[model]
				if alone[model]++; n == c.alone+1 {
					latest = max(latest, time.Since(began))
				}
				if n <= c.alone && alone[model] != 1 {
					t.Errorf("%s: number %d of model %s is one of %d in flight", c.name, n, model, alone[model])
				}
				status, text, after := c.answers(n)
				mu.Unlock()
				time.Sleep(after)
				mu.Lock()
				alone[model]--
				mu.Unlock()
				w.WriteHeader(status)
				_, _ = io.WriteString(w, text)
			})
			network := fakeconn.New()
			srv, ended := &http.Server{Handler: handler}, make(chan error, 1)
			go func() { ended <- srv.Serve(network) }()
			var lines strings.Builder
			for i := range 40 {
				fmt.Fprintf(&lines, `{"custom_id":"p%d","method":"POST","url":"/v1/responses","body":{"model":"%c","max_output_tokens":9,"input":"x"}}`+"\n", i, 'a'+i%2)
			}
			notice := func(s string) { // each model's sender calls it
				mu.Lock()
				defer mu.Unlock()
				said = append(said, s)
			}
			v := &virtually{t: t, config: Config{Out: out, BanStatus: []int{401}, Notice: notice}}
			v.send(network, lines.String())
			_ = srv.Close()
			<-ended
			few := c.asked == 0 && asked["a"]+asked["b"] <= 12
			if v.totals.Done != c.done || !few && (asked["a"] != c.asked || asked["b"] != c.asked) || !errors.Is(v.err, c.err) || latest > c.all+100*time.Millisecond {
				t.Errorf("%s: %v; asked %v, the others from %v on; %+v", c.name, v.err, asked, latest, v.totals)
			}
			const spared = "model a: 19 requests were not sent (--retry-dead=model sends them, once there is such a model)"
			if c.asked == 1 && c.err == nil && !slices.Contains(said, spared) {
				t.Errorf("%s: it is not said that %s: %q", c.name, spared, said)
			}
		})
	}
}

// An answer that a model does not exist comes after the others of the model were let in. Those that are not
// on their way then are not sent.
func TestLateWrongModel(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out.jsonl")
	synctest.Test(t, func(t *testing.T) {
		var sends atomic.Int32
		network := fakeconn.New()
		srv, ended := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			if sends.Add(1) == 1 {
				time.Sleep(5 * time.Second)
			}
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"error":{"code":"model_not_found"}}`)
		})}, make(chan error, 1)
		go func() { ended <- srv.Serve(network) }()
		var lines strings.Builder
		for i := range 40 {
			fmt.Fprintf(&lines, `{"custom_id":"p%d","method":"POST","url":"/v1/responses","body":{"model":"a","max_output_tokens":9,"input":"x"}}`+"\n", i)
		}
		v := &virtually{t: t, config: Config{Out: out, Limits: []format.Rate{{N: 2, Per: time.Second, Unit: limit.Requests}}}}
		v.send(network, lines.String())
		_ = srv.Close()
		<-ended
		asked := int(sends.Load())
		dead, err := os.ReadFile(strings.TrimSuffix(out, ".jsonl") + ".errors.jsonl")
		spared := bytes.Count(dead, []byte(`"code":"model","message":"not sent: answered 404 Not Found`))
		if err != nil || v.totals.Dead != 40 || asked < 2 || asked > 4 || spared != 40-asked || bytes.Count(dead, []byte(`"attempts":0`)) != spared {
			t.Errorf("%v; asked %d, %d say that they were not sent; %+v\n%.900s", err, asked, spared, v.totals, dead)
		}
	})
}

// Once a trial has shown that its model is wrong, no attempt goes, also not at a request that has an answer. Such a
// request keeps its class and says why it is not sent again.
func TestAnsweredIsSpared(t *testing.T) {
	for number, want := range []string{"not sent: no", "answered 500; not sent again: no"} {
		r := &Run{trials: &trials{of: map[string]*trial{"m": {state: wrong, class: format.DeadNoModel, why: "no"}}}}
		r.trials.tripped.Store(true)
		j := &job{r: &format.Request{Estimate: tokens.Estimate{Model: "m"}}, number: number, class: format.DeadFailed, reason: "answered 500"}
		if over := r.trials.isOver(j); !over || !(&attempt{r: r, j: j}).isSpared() || j.reason != want || (j.class == format.DeadFailed) != (number > 0) {
			t.Errorf("after attempt %d: over %v, %v, %s", number, over, j.class, j.reason)
		}
	}
}

// After a verdict nothing is sent: no request that waits, and no other attempt at one in flight. Those in flight end, and
// what they bring is kept.
func TestNothingIsSentAfterAVerdict(t *testing.T) {
	const few, all, inFlight = 3, 40, 10
	for _, c := range []struct {
		name   string
		status int // of an answer that is none
	}{{"--success", http.StatusOK}, {"an address", http.StatusNotFound}, {"a server that fails, too", http.StatusInternalServerError}} {
		out := filepath.Join(t.TempDir(), "out.jsonl")
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			sends, late, over := 0, 0, false
			network := fakeconn.New()
			srv, ended := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				mu.Lock()
				sends++
				n := sends
				if over {
					late++
				}
				mu.Unlock()
				time.Sleep(time.Duration(n) * time.Second) // the first three end first
				switch {
				case n == inFlight:
					_, _ = io.WriteString(w, `{"text":"a"}`)
				case n > few && c.status == http.StatusInternalServerError:
					w.WriteHeader(c.status)
				case c.status != http.StatusInternalServerError:
					w.WriteHeader(c.status)
				}
			})}, make(chan error, 1)
			go func() { ended <- srv.Serve(network) }()
			v := &virtually{t: t, lines: true, config: Config{Out: out, SameErrors: few, Concurrency: inFlight, Attempts: 9,
				Limits: []format.Rate{{N: inFlight, Per: time.Minute, Text: "10/m"}},
				Notice: func(s string) {
					if strings.Contains(s, "its other requests are not sent") {
						mu.Lock()
						over = true
						mu.Unlock()
					}
				},
				Success: func(body []byte) error {
					if bytes.Contains(body, []byte("text")) {
						return nil
					}
					return errors.New("of which it is none")
				}}}
			var lines strings.Builder
			for i := range all {
				fmt.Fprintf(&lines, `{"id":"p%d","method":"POST","url":"http://server/v1","body":{}}`+"\n", i)
			}
			v.send(network, lines.String())
			_ = srv.Close()
			<-ended
			dead, err := os.ReadFile(strings.TrimSuffix(out, ".jsonl") + ".dead.jsonl")
			again, spared := bytes.Count(dead, []byte("; not sent again: the first 3 requests")), bytes.Count(dead, []byte(`"error":"not sent: the first 3 requests`))
			if c.status == http.StatusNotFound {
				again = inFlight - few - 1 // each is dead by its own answer
			}
			if err != nil || !over || late != 0 || v.totals.Done != 1 || v.totals.Dead != all-1 || spared < all-inFlight-few || again < inFlight-few-1 || v.totals.Lost != 0 {
				t.Errorf("%s: %d sent, %d of them after the verdict; %d not sent, %d not sent again; %+v, %v\n%.900s", c.name, sends, late, spared, again, v.totals, err, dead)
			}
			if v.took > 11*time.Second {
				t.Errorf("%s: it took %v", c.name, v.took)
			}
		})
	}
}

// Of several keys the first request of each goes alone until it has its answer. A wrong key costs
// one request, and not all that would have been in flight with it.
func TestFirstOfAKey(t *testing.T) {
	for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden} {
		out := filepath.Join(t.TempDir(), "out.jsonl")
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			asked, most, open := 0, 0, 0 // of the wrong key
			network := fakeconn.New()
			srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				wrong := strings.HasSuffix(r.Header.Get("Authorization"), "-1")
				mu.Lock()
				if wrong {
					asked++
					open++
					most = max(most, open)
				}
				mu.Unlock()
				time.Sleep(time.Second)
				mu.Lock()
				defer mu.Unlock()
				if wrong {
					open--
					w.WriteHeader(status)
				}
				_, _ = io.WriteString(w, `{"usage":{"prompt_tokens":8,"completion_tokens":5}}`)
			})}
			go func() { _ = srv.Serve(network) }()
			v := &virtually{t: t, config: Config{Out: out, Limits: []format.Rate{minutely(6000, 0, true)}, Concurrency: 64, BanStatus: []int{401},
				Keys: []format.Key{{Name: "A", Secret: "s3cret-Of-9a7Kq-0"}, {Name: "B", Secret: "s3cret-Of-9a7Kq-1"}, {Name: "C", Secret: "s3cret-Of-9a7Kq-2"}}}}
			v.send(network, ofModel("gpt-4o", 0, 300))
			_ = srv.Close()
			v.once(300)
			t.Logf("%d: %d asked, %d at once, in %v", status, asked, most, v.took)
			if v.err != nil || most != 1 || status == http.StatusUnauthorized && asked != 1 || v.totals.Done != 300 {
				t.Errorf("%d: %v: the wrong key was asked %d times, %d at once; %+v", status, v.err, asked, most, v.totals)
			}
		})
	}
}

// An expression that holds for none of the first answers costs a few requests, each asked few times and not one by one.
// An answer for which it holds shows that it is right.
func TestWrongExpression(t *testing.T) {
	const few, all = 5, 40
	shape, err := output.CompileShape("id=.id, text=.body.choices.text", output.JSONL)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		success bool
		right   int // the first answer for which it holds
		unsent  int
		told    string
	}{
		{"success", true, 0, all - few, "of which it is none; its other requests are not sent"},
		{"success of the last of the first", true, few, 0, ""},
		{"select", false, 0, all - few, "of which --select text=.body.choices.text: expected an object but got: array; its other requests are not sent"},
		{"select of the last of the first", false, few, 0, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			first, said := map[string]int{}, ""
			network := fakeconn.New()
			srv, ended := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				id := q.URL.Query().Get("n")
				if first[id] == 0 {
					first[id] = len(first) + 1
				}
				if first[id] == c.right {
					_, _ = io.WriteString(w, `{"choices":{"text":"a"}}`)
					return
				}
				fmt.Fprintf(w, `{"choices":[%d]}`, first[id])
			})}, make(chan error, 1)
			go func() { ended <- srv.Serve(network) }()
			v := &virtually{t: t, lines: true, config: Config{Out: filepath.Join(t.TempDir(), "out.jsonl"), SameErrors: few, Concurrency: 1, Attempts: 2,
				Notice: func(s string) { said += s + "\n" }}}
			if v.config.Shape = shape; c.success {
				v.config.Shape, v.config.Success = nil, func(body []byte) error {
					if bytes.Contains(body, []byte("text")) {
						return nil
					}
					return errors.New("of which it is none")
				}
			}
			var lines strings.Builder
			for i := range all {
				fmt.Fprintf(&lines, `{"id":"p%d","method":"POST","url":"http://server/v1?n=%d","body":{}}`+"\n", i, i)
			}
			v.send(network, lines.String())
			_ = srv.Close()
			<-ended
			if len(first) != all-c.unsent || strings.Contains(said, "its other requests are not sent") != (c.told != "") || !strings.Contains(said, c.told) {
				t.Errorf("%s: %d were sent: %v\n%s", c.name, len(first), v.err, said)
			}
		})
	}
}

// A wrong address costs a few requests: if the first ones get the same error, and nothing was served, the others to this
// address are not sent. An error that differs, or an answer to a request that only reads, shows nothing.
func TestWrongAddress(t *testing.T) {
	const few, all = 5, 40
	posts := func(i int) string { return fmt.Sprintf("POST http://server/v2/things?n=%d", i) }
	type answer = func(n int) (status int, body string)
	same := func(status int) answer { return func(int) (int, string) { return status, `{"error":"Unknown URL"}` } }
	from := func(n int, rest answer) answer {
		return func(i int) (int, string) {
			if i < n {
				return same(http.StatusNotFound)(i)
			}
			return rest(i)
		}
	}
	served := func(int) (int, string) { return http.StatusOK, "{}" }
	for _, c := range []struct {
		name    string
		request func(i int) string // method and address
		answer  answer
		errors  int // SameErrors
		before  int // requests that an earlier run sent, and that were served
		asked   int
		unsent  int
	}{
		{"a wrong path", posts, same(404), few, 0, few, all - few},
		{"a wrong method", posts, same(405), few, 0, few, all - few},
		{"limits between", posts, func(n int) (int, string) {
			if n%2 == 0 {
				return http.StatusTooManyRequests, ""
			}
			return same(404)(n)
		}, few, 0, 2*few - 1, all - few},
		{"errors of the rows", posts, func(n int) (int, string) { return 404, fmt.Sprintf(`{"error":"no thing %d"}`, n) }, few, 0, all, 0},
		{"two errors", posts, func(n int) (int, string) { return same(404 + n%2*18)(n) }, few, 0, all, 0},
		{"the last of the first is served", posts, from(few, served), few, 0, all, 0},
		{"things that are there", posts, same(409), few, 0, all, 0},
		{"served before", posts, same(404), few, 3, all - 3, 0},
		{"links", func(i int) string { return fmt.Sprintf("GET http://server/%d", i) }, same(404), few, 0, all, 0},
		{"a query", func(i int) string { return fmt.Sprintf("GET http://server/find?n=%d", i) }, same(404), few, 0, all, 0},
		{"a path each", func(i int) string { return fmt.Sprintf("DELETE http://server/%d", i) }, same(404), few, 0, all, 0},
		{"not wanted", posts, same(404), 0, 0, all, 0},
		{"one of two addresses", func(i int) string {
			if i >= all/2 {
				return "PUT http://server/v2/right"
			}
			return posts(i)
		}, same(404), few, 0, few + all/2, all/2 - few},
	} {
		var lines []string
		for i := range all {
			method, address, _ := strings.Cut(c.request(i), " ")
			lines = append(lines, fmt.Sprintf(`{"id":"p%d","method":%q,"url":%q,"body":{}}`+"\n", i, method, address))
		}
		out := filepath.Join(t.TempDir(), "out.jsonl")
		synctest.Test(t, func(t *testing.T) {
			asked, said, answer := 0, "", answer(served)
			network := fakeconn.New()
			srv, ended := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				asked++
				status, text := answer(asked)
				w.WriteHeader(status)
				_, _ = io.WriteString(w, text)
			})}, make(chan error, 1)
			go func() { ended <- srv.Serve(network) }()
			v := &virtually{t: t, lines: true, config: Config{Out: out, SameErrors: c.errors, Concurrency: 1, Attempts: 9,
				Notice: func(s string) { said += s + "\n" }}}
			if c.before > 0 {
				v.send(network, strings.Join(lines[:c.before], ""))
			}
			asked, said, answer = 0, "", c.answer
			v.send(network, strings.Join(lines, ""))
			_ = srv.Close()
			<-ended
			unsent := 0
			dead, err := os.ReadFile(strings.TrimSuffix(out, ".jsonl") + ".dead.jsonl")
			if err == nil {
				unsent = bytes.Count(dead, []byte(`"error":"not sent: the first 5 requests were all answered 40`))
			}
			if asked != c.asked || unsent != c.unsent || v.err != nil || v.totals.Lost != 0 {
				t.Errorf("%s: %d were sent, want %d; %d say that they were not; %v; %+v\n%.400s", c.name, asked, c.asked, unsent, v.err, v.totals, dead)
			}
			told := strings.Contains(said, ": Unknown URL; its other requests are not sent (--same-errors 0 sends them)")
			counted := strings.Contains(said, fmt.Sprintf("\n%d requests were not sent (--retry-dead=invalid", unsent))
			if told != (c.unsent > 0) || counted != told {
				t.Errorf("%s: said:\n%s", c.name, said)
			}
		})
	}
}
