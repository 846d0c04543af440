package permit

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/internal/app/durable"
	"github.com/paceline-go/paceline/internal/testkit/fakeconn"
	"github.com/paceline-go/paceline/internal/text/rate"
	"github.com/paceline-go/paceline/limit"
)

func limitsOf(t testing.TB, all ...string) (limits []Limit) {
	t.Helper()
	for _, text := range all {
		name, rates, _ := strings.Cut(text, "=")
		l := Limit{Name: name}
		for one := range strings.SplitSeq(rates, "+") {
			r, err := rate.ParseCounted(one)
			if err != nil {
				t.Fatal(err)
			}
			l.Rates = append(l.Rates, r)
		}
		limits = append(limits, l)
	}
	return limits
}

// door is a Server behind a server of HTTP, whose connections are in memory.
type door struct {
	*Server
	t    *testing.T
	net  *fakeconn.Network
	http *http.Server
}

func open(t *testing.T, c Config) *door {
	t.Helper()
	if c.State == "" {
		c.State = filepath.Join(t.TempDir(), "state")
	}
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	s.Mount(mux.Handle)
	d := &door{Server: s, t: t, net: fakeconn.New(), http: &http.Server{Handler: mux}}
	Track(d.http)
	served := make(chan struct{})
	go func() { _ = d.http.Serve(d.net); close(served) }()
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		d.http.Close()
		<-served
		time.Sleep(time.Second) // a server takes half a second to close a connection
	})
	return d
}

// program is a client with connections of its own.
func (d *door) program() *http.Client {
	way := &http.Transport{DialContext: d.net.Dial, MaxIdleConnsPerHost: 100}
	d.t.Cleanup(way.CloseIdleConnections)
	return &http.Client{Transport: way}
}

// reply is an answer of any kind.
type reply struct {
	status   int
	Permits  []string `json:"permits"`
	Keys     []string `json:"keys"`
	Targets  []string `json:"targets"`
	SendBy   int64    `json:"send_by"`
	TTLMS    int64    `json:"ttl_ms"`
	WaitedMS int64    `json:"waited_ms"`

	Type   string `json:"type"`
	Detail string `json:"detail"`
	WaitMS int64  `json:"wait_ms"`
	Ahead  int    `json:"ahead"`

	Settled int `json:"settled"`
	Renewed int `json:"renewed"`
	Unknown int `json:"unknown"`
}

func (r *reply) kind() string { return strings.TrimPrefix(r.Type, page) }

func (d *door) post(ctx context.Context, c *http.Client, path, message string) (reply, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://paceline"+path, strings.NewReader(message))
	if err != nil {
		d.t.Fatal(err)
	}
	return d.send(c, r)
}

func (d *door) send(c *http.Client, r *http.Request) (said reply, err error) {
	a, err := c.Do(r)
	if err != nil {
		return said, err
	}
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	if err == nil {
		err = json.Unmarshal(b, &said)
	}
	said.status = a.StatusCode
	return said, err
}

// says is post that must be answered.
func (d *door) says(c *http.Client, path, message string) reply {
	d.t.Helper()
	said, err := d.post(d.t.Context(), c, path, message)
	if err != nil {
		d.t.Fatalf("%s %s: %v", path, message, err)
	}
	return said
}

// granted is says of an acquire that must be granted.
func (d *door) granted(c *http.Client, message string) reply {
	d.t.Helper()
	said := d.says(c, "/v1/acquire", message)
	if said.status != http.StatusOK || len(said.Permits) == 0 {
		d.t.Fatalf("%s: %+v", message, said)
	}
	return said
}

func settled(id, rest string) string { return fmt.Sprintf(`[{"id":%q,%s}]`, id, rest) }

const ordersOne = `{"limit":"orders"}`

// A permit counts in full until it is settled, and for the window after that.
func TestCountsFromGrantToSettlement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := open(t, Config{Limits: limitsOf(t, "orders=2/s")})
		c, began := d.program(), time.Now()
		a, b := d.granted(c, ordersOne), d.granted(c, ordersOne)
		time.Sleep(300 * time.Millisecond)
		if got := d.says(c, "/v1/settle", settled(a.Permits[0], `"result":"accepted"`)); got.Settled != 1 || got.Unknown != 0 {
			t.Errorf("%+v", got)
		}
		third := d.granted(c, ordersOne)
		if at := time.Since(began).Truncate(time.Millisecond); at < 1300*time.Millisecond || at > 1302*time.Millisecond {
			t.Errorf("the third went at %v, want one window after the first settlement", at)
		}
		if third.WaitedMS < 999 || third.WaitedMS > 1002 {
			t.Errorf("waited %d ms", third.WaitedMS)
		}
		d.says(c, "/v1/settle", settled(b.Permits[0], `"result":"unsent"`)) // it never counted
		d.granted(c, ordersOne)
		if at := time.Since(began).Truncate(time.Millisecond); at > 1302*time.Millisecond {
			t.Errorf("the fourth went at %v, want at once after one that was not sent", at)
		}
		if got := d.says(c, "/v1/settle", settled(b.Permits[0], `"result":"accepted"`)); got.Settled != 0 || got.Unknown != 1 {
			t.Errorf("settled twice: %+v", got)
		}
	})
}

// A settlement in an acquire frees the place before the call waits.
func TestSettleInAcquire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := open(t, Config{Limits: limitsOf(t, "orders=1/h")})
		c, began := d.program(), time.Now()
		a := d.granted(c, ordersOne)
		for range 5 {
			a = d.granted(c, `{"limit":"orders","settle":`+settled(a.Permits[0], `"result":"unsent"`)+`}`)
		}
		if d.Held() != 1 || time.Since(began) > time.Millisecond {
			t.Fatalf("%d are held after %v", d.Held(), time.Since(began))
		}
		if got := d.says(c, "/v1/acquire", `{"limit":"none","settle":`+settled(a.Permits[0], `"result":"unsent"`)+`}`); got.kind() != "no-limit" || d.Held() != 0 {
			t.Errorf("a refused call settles nothing: %+v, %d are held", got, d.Held())
		}
	})
}

// A batch has what may go now, and no more.
func TestBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := open(t, Config{Limits: limitsOf(t, "orders=5/s")})
		c := d.program()
		first := d.granted(c, `{"limit":"orders","n":3}`)
		second := d.granted(c, `{"limit":"orders","n":1000}`)
		if len(first.Permits) != 3 || len(second.Permits) != 2 {
			t.Fatalf("%d and %d permits, want 3 and 2", len(first.Permits), len(second.Permits))
		}
		ids, _ := json.Marshal(append(first.Permits, second.Permits...))
		if got := d.says(c, "/v1/settle", `[{"ids":`+string(ids)+`,"result":"failed"}]`); got.Settled != 5 {
			t.Errorf("%+v", got)
		}
	})
}

// A batch is one write of the state file, and so is its settlement. The next process has all of it.
func TestBatchIsOneWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	c := Config{Limits: limitsOf(t, "orders=50/h"), State: path}
	synctest.Test(t, func(t *testing.T) {
		d := open(t, c)
		writes := &counting{}
		d.state.journal.Through(func(h durable.Handle) durable.Handle { writes.Handle = h; return writes })
		p := d.program()
		all := d.granted(p, `{"limit":"orders","n":40}`).Permits
		if len(all) != 40 || writes.n != 1 {
			t.Errorf("%d permits in %d writes", len(all), writes.n)
		}
		ids, _ := json.Marshal(all[:30])
		if got := d.says(p, "/v1/settle", `[{"ids":`+string(ids)+`,"result":"unsent"}]`); got.Settled != 30 || writes.n != 2 {
			t.Errorf("%+v, %d writes", got, writes.n)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		d := open(t, c)
		if got := d.granted(d.program(), `{"limit":"orders","n":50}`).Permits; len(got) != 40 {
			t.Errorf("%d go after a restart, expected 40", len(got))
		}
	})
}

// counting counts the writes of a file.
type counting struct {
	durable.Handle
	n int
}

func (h *counting) Write(b []byte) (int, error) {
	h.n++
	return h.Handle.Write(b)
}

// A permit that nobody settles keeps its place for TTL, then Late, then the window. Its renewals keep
// it longer.
func TestLapses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := open(t, Config{Limits: limitsOf(t, "orders=1/s"), TTL: 2 * time.Second, Late: 5 * time.Second})
		c, began := d.program(), time.Now()
		a := d.granted(c, ordersOne)
		d.granted(c, ordersOne)
		if at := time.Since(began).Truncate(10 * time.Millisecond); at != 8*time.Second {
			t.Errorf("the next went at %v, want after a TTL of 2 s, 5 s and a window", at)
		}
		if got := d.says(c, "/v1/settle", settled(a.Permits[0], `"result":"accepted"`)); got.Unknown != 1 {
			t.Errorf("%+v", got)
		}
		time.Sleep(8 * time.Second)
		b := d.granted(c, ordersOne)
		began = time.Now()
		for range 10 {
			time.Sleep(time.Second)
			if got := d.says(c, "/v1/renew", fmt.Sprintf("[%q,%q]", b.Permits[0], a.Permits[0])); got.Renewed != 1 || got.Unknown != 1 {
				t.Fatalf("%+v", got)
			}
		}
		d.granted(c, ordersOne)
		if at := time.Since(began).Truncate(10 * time.Millisecond); at != 18*time.Second {
			t.Errorf("the next went at %v, want 8 s after the last renewal", at)
		}
	})
}

// A program that ends hangs up: its permits are of unknown end at their SendBy, and its calls that
// wait have no place any more.
func TestHangUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := open(t, Config{Limits: limitsOf(t, "orders=1/s"), SendWithin: time.Second, Late: 2 * time.Second})
		killed, other, began := d.program(), d.program(), time.Now()
		d.granted(killed, ordersOne)
		ctx, kill := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				if said, err := d.post(ctx, killed, "/v1/acquire", ordersOne); err == nil {
					t.Errorf("granted: %+v", said)
				}
			})
		}
		time.Sleep(300 * time.Millisecond)
		kill()
		killed.CloseIdleConnections()
		all.Wait()
		synctest.Wait()
		if n := d.group.Snapshot().Waiting; n != 0 {
			t.Errorf("%d wait", n)
		}
		d.granted(other, ordersOne)
		if at := time.Since(began).Truncate(10 * time.Millisecond); at != 4*time.Second {
			t.Errorf("the next went at %v, want SendBy 1 s, 2 s, and a window", at)
		}
	})
}

// One program's Retry-After keeps all away, until it has passed.
func TestAnswerPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := open(t, Config{Limits: limitsOf(t, "orders=10/s")})
		one, other := d.program(), d.program()
		a := d.granted(one, ordersOne)
		d.says(one, "/v1/settle", settled(a.Permits[0],
			`"status":429,"header":{"Retry-After":["2"],"Content-Type":"text/plain"},"body":"slow down","took_ms":80`))
		began := time.Now()
		if got := d.says(other, "/v1/acquire", `{"limit":"orders","max_wait":1.5}`); got.status != 429 || got.kind() != "paused" ||
			got.WaitMS < 1900 {
			t.Errorf("%+v", got)
		}
		d.granted(other, ordersOne)
		if at := time.Since(began); at < 2*time.Second || at > 2100*time.Millisecond {
			t.Errorf("the next went after %v, want 2 s", at)
		}
	})
}

// Refusals name what stood in the way, at once if it can be foreseen.
func TestRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := open(t, Config{Limits: limitsOf(t, "orders=1/m", "tokens=1000 tokens/m+5/s"), MaxWaiting: 1})
		c, began := d.program(), time.Now()
		d.granted(c, ordersOne)
		for _, row := range []struct {
			message, kind string
			status        int
			detail        string
		}{
			{`{"limit":"orders","max_wait":30}`, "wait-too-long", 429, "orders"},
			{`{"limit":"orders","max_wait":0}`, "wait-too-long", 429, "orders"},
			{`{"limit":"tokens","cost":{"tokens":1001}}`, "never-fits", 413, "requests=1,tokens=1001"},
			{`{"limit":"nope"}`, "no-limit", 404, "orders, tokens"},
			{`{"limit":"orders","n":0}`, "bad-message", 400, "n: 0, expected a whole number from 1 to 1000"},
		} {
			got := d.says(c, "/v1/acquire", row.message)
			if got.status != row.status || got.kind() != row.kind || !strings.Contains(got.Detail, row.detail) {
				t.Errorf("%s: %+v", row.message, got)
			}
			if titles[got.kind()] == "" {
				t.Errorf("%q has no title", got.kind())
			}
		}
		if time.Since(began) > time.Millisecond {
			t.Errorf("refused after %v", time.Since(began))
		}
		ctx, leave := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() { _, _ = d.post(ctx, c, "/v1/acquire", ordersOne) })
		synctest.Wait()
		if got := d.says(c, "/v1/acquire", ordersOne); got.status != 429 || got.kind() != "line-full" {
			t.Errorf("a full line: %+v", got)
		}
		leave()
		all.Wait()
		if got := d.says(c, "/v1/acquire", strings.Repeat(" ", longestMessage)+ordersOne); got.status != 413 || got.kind() != "too-long" {
			t.Errorf("a long message: %+v", got)
		}
	})
}

// A call that waits in vain for a permit to be settled says so. Before, its turn "would come in 0 s", and it would wait
// longer than that.
func TestSaysThatAWaitWasInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := open(t, Config{Limits: limitsOf(t, "orders=1/s"), TTL: time.Minute})
		c := d.program()
		d.granted(c, ordersOne)
		got := d.says(c, "/v1/acquire", `{"limit":"orders","max_wait":20}`)
		if says := "the call waited 20 s and had no turn at orders; 0 others"; got.kind() != "wait-too-long" || !strings.Contains(got.Detail, says) {
			t.Errorf("%+v, want %q", got, says)
		}
	})
}

// No client settles, renews or frees another's permit.
func TestIDsAreOfTheirClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := open(t, Config{Limits: limitsOf(t, "orders=10/s")})
		c := d.program()
		a := d.granted(c, `{"limit":"orders","client":"one"}`)
		for _, client := range []string{"", "two", "One"} {
			if got := d.says(c, "/v1/settle?client="+client, settled(a.Permits[0], `"result":"unsent"`)); got.Unknown != 1 {
				t.Errorf("%q settles it: %+v", client, got)
			}
			if got := d.says(c, "/v1/renew?client="+client, fmt.Sprintf("[%q]", a.Permits[0])); got.Unknown != 1 {
				t.Errorf("%q renews it: %+v", client, got)
			}
		}
		if got := d.says(c, "/v1/settle?client=one", settled(a.Permits[0], `"result":"unsent"`)); got.Settled != 1 {
			t.Errorf("its own: %+v", got)
		}
		if n := d.listed().UnknownIDs; n != 6 {
			t.Errorf("%d unknown ids are counted, want 6", n)
		}
	})
}

// Of two clients that always wait, each gets its part by weight.
func TestWeights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := open(t, Config{Limits: limitsOf(t, "orders=40/s"), Clients: []ClientConfig{{Name: "large", Weight: 3}}})
		ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
		defer stop()
		var all sync.WaitGroup
		got, began := map[string]int{}, time.Now()
		var mu sync.Mutex
		for _, name := range []string{"large", "small"} {
			c := d.program()
			for range 60 {
				all.Go(func() {
					last := ""
					for ctx.Err() == nil {
						m := fmt.Sprintf(`{"limit":"orders","client":%q%s}`, name, last)
						a, err := d.post(ctx, c, "/v1/acquire", m)
						if err != nil {
							return
						}
						last = `,"settle":` + settled(a.Permits[0], `"result":"accepted"`)
						mu.Lock()
						if time.Since(began) > 2*time.Second { // the first window is of those that come first
							got[name]++
						}
						mu.Unlock()
					}
				})
			}
		}
		all.Wait()
		if sum := got["large"] + got["small"]; sum < 680 || sum > 760 {
			t.Errorf("%d in 18 s of 40/s", sum)
		}
		if part := float64(got["large"]) / float64(got["small"]); part < 2.7 || part > 3.3 {
			t.Errorf("%v: %.2f to one, want 3", got, part)
		}
	})
}

// A process that begins again counts what the one before granted, settled or not. Without a file that
// can be read nothing goes until all that counts no more.
func TestRestart(t *testing.T) {
	limits := limitsOf(t, "orders=3/m", "mail=1/s")
	for _, row := range []struct {
		name    string
		between func(path string) error
		most    int
		quiet   bool
	}{
		{"the file", func(string) error { return nil }, 1, false},
		{"an empty file", func(path string) error { return os.WriteFile(path, nil, 0o600) }, 0, true},
		{"no file", nil, 0, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "state")
			first, err := New(Config{Limits: limits, State: path})
			if err != nil {
				t.Fatal(err)
			}
			l := first.limit("orders")
			line, release := first.lane(l, "")
			for i := range 2 {
				p, _, ok := line.TryWait(costOf(t, ""))
				if !ok {
					t.Fatal("a new file, and nothing goes")
				}
				k := &connection{line: 1}
				grants, err := first.record(l, pass(p), costOf(t, ""))
				if err != nil {
					t.Fatal(err)
				}
				issued, x := first.issue(k, "", grants)
				if x != nil {
					t.Fatal(x)
				}
				if i == 0 {
					first.settleAll("", []settlement{{ids: issued.ids, result: "accepted"}})
				}
			}
			release()
			if err := first.Close(); err != nil {
				t.Fatal(err)
			}
			if row.between == nil {
				path = ""
			} else if err := row.between(path); err != nil {
				t.Fatal(err)
			}
			next, err := New(Config{Limits: limits, State: path})
			if err != nil {
				t.Fatal(err)
			}
			defer next.Close()
			line, _ = next.lane(next.limit("orders"), "")
			n := 0
			for {
				if _, _, ok := line.TryWait(costOf(t, "")); !ok {
					break
				}
				n++
			}
			if n != row.most {
				t.Errorf("%d go, want %d of 3", n, row.most)
			}
			line, _ = next.lane(next.limit("mail"), "")
			_, _, err = line.Ask(costOf(t, ""))
			at, _, _ := line.Ask(costOf(t, ""))
			if wait := time.Until(at); err != nil || row.quiet != (wait > 6*time.Second) || row.quiet && wait > 7010*time.Millisecond {
				t.Errorf("mail waits %v, %v", wait, err)
			}
		})
	}
}

// A port with a key is for programs that know it, and for no page in a browser.
func TestKeyed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := open(t, Config{Limits: limitsOf(t, "orders=10/s")})
		d.http.Handler = Keyed(d.http.Handler, "secret")
		c := d.program()
		for _, row := range []struct {
			url, key, origin string
			status           int
			kind             string
		}{
			{"http://127.0.0.1:7881", "secret", "", 200, ""},
			{"http://localhost:7881", "secret", "", 200, ""},
			{"http://[::1]:7881", "secret", "", 200, ""},
			{"http://127.0.0.1:7881", "other", "", 401, "no-key"},
			{"http://127.0.0.1:7881", "", "", 401, "no-key"},
			{"http://127.0.0.1:7881", "secret", "http://127.0.0.1:7881", 403, "no-browser"},
			{"http://127.0.0.1:7881", "secret", "null", 403, "no-browser"},
			{"http://example.com", "secret", "", 403, "no-browser"},
			{"http://127.0.0.1.example.com", "secret", "", 403, "no-browser"},
		} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, row.url+"/v1/acquire", bytes.NewBufferString(ordersOne))
			if err != nil {
				t.Fatal(err)
			}
			if row.key != "" {
				r.Header.Set("Authorization", "Bearer "+row.key)
			}
			if row.origin != "" {
				r.Header.Set("Origin", row.origin)
			}
			got, err := d.send(c, r)
			if err != nil || got.status != row.status || got.kind() != row.kind {
				t.Errorf("%+v: %+v, %v", row, got, err)
			}
		}
	})
}

func costOf(t *testing.T, text string) limit.Cost {
	t.Helper()
	c, err := ParseCost(text)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func pass(p ...paceline.Permit) []paceline.Permit { return p }
