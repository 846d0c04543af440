package transport_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/observe"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/transport"
)

// keyed is a server that answers by the credential of a request, and notes which it had and when.
type keyed struct {
	answers map[string]func(r *http.Request) *http.Response // by key; nil: 200

	mu    sync.Mutex
	begin time.Time
	had   []string
	at    []time.Duration
}

func newKeyed() *keyed {
	return &keyed{answers: map[string]func(*http.Request) *http.Response{}, begin: time.Now()}
}

func (k *keyed) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		io.Copy(io.Discard, r.Body)
		r.Body.Close()
	}
	name := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer secret-of-")
	k.mu.Lock()
	k.had, k.at = append(k.had, name), append(k.at, time.Since(k.begin))
	f := k.answers[name]
	k.mu.Unlock()
	resp := reply(200, "fine")
	if f != nil {
		resp = f(r)
	}
	resp.Request = r
	return resp, nil
}

// count returns how often each key was had since the last time.
func (k *keyed) count() map[string]int {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := map[string]int{}
	for _, name := range k.had {
		n[name]++
	}
	k.had, k.at = nil, nil
	return n
}

func always(status int, body string, fields ...string) func(*http.Request) *http.Response {
	return func(*http.Request) *http.Response { return reply(status, body, fields...) }
}

const unpaid = `{"error":{"code":"insufficient_quota","message":"You exceeded your current quota"}}`

// keys makes keys by their names, "account/name" or "name", each (account) with so many requests a second.
func keys(t testing.TB, perSecond int64, names ...string) (all []transport.Key) {
	for _, name := range names {
		account, own, ok := strings.Cut(name, "/")
		if !ok {
			account, own = "", name
		}
		all = append(all, transport.Key{
			Name: own, Account: account,
			Apply: func(r *http.Request) { r.Header.Set("Authorization", "Bearer secret-of-"+own) },
			Limit: func(p transport.Partition) limit.Limiter {
				if p.Scope != "key" {
					return nil
				}
				return rolling(t, perSecond, time.Second, limit.Requests)
			},
		})
	}
	return all
}

// Each request takes the key that lets it go first, chosen when it goes; only the server sees the
// key.
func TestKeysTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newKeyed()
		ks := keys(t, 2, "a", "b")
		ks[1].Limit = func(p transport.Partition) limit.Limiter {
			if p.Scope != "key" {
				return nil
			}
			if p.Key != "b" {
				t.Errorf("b's limit is asked for %v", p)
			}
			return rolling(t, 3, time.Second, limit.Requests)
		}
		var ended []transport.Attempt
		var mu sync.Mutex
		tr := mustNew(t, transport.Config{Base: b, Keys: ks, Client: clients(nil), Ended: func(a transport.Attempt) {
			mu.Lock()
			defer mu.Unlock()
			ended = append(ended, a)
		}})
		var all sync.WaitGroup
		for range 50 {
			r := request(t, http.MethodPut, "http://a.test/", "body", "Authorization", "Bearer of the caller")
			all.Go(func() {
				resp, err := tr.RoundTrip(r)
				if err != nil {
					t.Error(err)
					return
				}
				resp.Body.Close()
				if got := r.Header.Get("Authorization"); resp.Request != r || got != "Bearer of the caller" {
					t.Errorf("the caller sees %q, in another request: %v", got, resp.Request != r)
				}
			})
		}
		all.Wait()
		if last := b.at[49]; last != 9*time.Second { // 5 a second
			t.Errorf("50 requests took %v", last)
		}
		if n := b.count(); n["a"] != 20 || n["b"] != 30 {
			t.Errorf("%v", n)
		}
		n := map[string]int{}
		for _, a := range ended {
			if n[a.Key]++; a.Partition.Key != a.Key || a.Request.Header.Get("Authorization") != "Bearer of the caller" {
				t.Errorf("an attempt with %q counts in %v", a.Key, a.Partition)
			}
		}
		if n["a"] != 20 || n["b"] != 30 {
			t.Errorf("%v attempts", n)
		}
		for _, k := range tr.Snapshot().Keys {
			if k.State != observe.KeyOK || k.Why != "" || k.Sent != int64(n[k.Name]) || k.Accepted != k.Sent || k.InFlight != 0 {
				t.Errorf("%+v", k)
			}
		}
	})
}

// A key whose limit for a model is 0 is not used for that model any more, and is for others.
func TestKeyIsOutForAModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newKeyed()
		b.answers["a"] = func(r *http.Request) *http.Response {
			if strings.Contains(r.URL.Path, "pro") {
				return reply(429, `{"error":{"code":429,"message":"Quota exceeded for metric: free_tier_requests, limit: 0\nPlease retry in 20.1s.","status":"RESOURCE_EXHAUSTED","details":[`+
					`{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]}]}}`)
			}
			return reply(200, "fine")
		}
		gemini, _ := provider.Lookup("gemini")
		tr := mustNew(t, transport.Config{Base: b, Keys: keys(t, 1000, "a", "b"), Provider: gemini, MaxRetryAfter: time.Minute, Partition: func(r *http.Request) transport.Partition {
			return transport.Partition{Host: r.URL.Host, Model: strings.Trim(r.URL.Path, "/")}
		}})
		for range 10 {
			for _, model := range []string{"pro", "flash"} {
				if status, _, err := do(t, tr, get(t, "http://a.test/"+model)); err != nil || status != 200 {
					t.Errorf("%s: %d, %v", model, status, err)
				}
			}
			time.Sleep(2 * time.Hour) // longer than any pause without a probe
		}
		refused := 0
		for _, k := range tr.Snapshot().Keys {
			if k.Name == "a" {
				refused = int(k.Limited)
			}
			if k.State != observe.KeyOK {
				t.Errorf("%+v", k)
			}
		}
		if n := b.count(); refused != 1 || n["a"] < 5 || n["b"] < 10 {
			t.Errorf("%v were sent, %d refused", n, refused)
		}
	})
}

// A key without credit, or banned, is out at once, and the request goes with another. Its
// description of itself is no secret. Readmit brings it back.
func TestKeyIsOut(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(*http.Request) *http.Response
		state  string
		out    string
	}{
		"unpaid": {always(429, unpaid), observe.KeyNoCredit, "it has no credit"},
		"402":    {always(402, `{"detail":"Payment required"}`), observe.KeyNoCredit, "it has no credit"},
		"budget": {always(400, `{"error":{"message":"Budget has been exceeded!","type":"budget_exceeded"}}`), observe.KeyNoCredit, "it has no credit"},
		"403":    {always(403, `{"error":{"message":"no","code":"insufficient_user_quota"}}`), observe.KeyNoCredit, "it has no credit"},
		"words":  {always(403, `{"error_msg":"api_key is banned"}`), observe.KeyBanned, "the server has banned it"},
		"401":    {always(401, `{"message":"This API key has been revoked"}`), observe.KeyDenied, "the server denies it"},
		"banned": {always(429, `{"type":"https://iana.org/assignments/http-problem-types#abnormal-usage-detected"}`, "Content-Type", "application/problem+json"), observe.KeyBanned, "the server has banned it"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newKeyed()
				b.answers["a"] = c.answer
				var log bytes.Buffer
				tr := mustNew(t, transport.Config{Base: b, Keys: keys(t, 100, "a", "b"), Logger: slog.New(slog.NewTextHandler(&log, nil))})
				ask := func() error {
					t.Helper()
					status, _, err := do(t, tr, request(t, http.MethodPost, "http://a.test/", "body"))
					if err == nil && status != 200 {
						t.Errorf("status %d", status)
					}
					return err
				}
				for range 10 {
					if err := ask(); err != nil {
						t.Fatal(err)
					}
				}
				if n := b.count(); n["a"] != 1 || n["b"] != 10 {
					t.Errorf("%v", n)
				}
				k := tr.Snapshot().Keys[0]
				if k.State != c.state || k.Why != c.out+", since 2000-01-01T00:00:00Z" || k.Limited+k.Failed != 1 || tr.Snapshot().Keys[1].State != observe.KeyOK {
					t.Errorf("%+v", tr.Snapshot().Keys)
				}
				if !strings.Contains(log.String(), `msg="key is out" key=a why=`) || strings.Contains(log.String(), "secret") {
					t.Errorf("logged %s", &log)
				}
				// The other one, too: what waits fails with what comes.
				b.answers["b"] = c.answer
				var all sync.WaitGroup
				var mu sync.Mutex
				failed := 0
				for range 300 {
					all.Go(func() {
						began := time.Now()
						_, _, err := do(t, tr, get(t, "http://a.test/"))
						if e, ok := errors.AsType[*transport.Error](err); ok && errors.Is(err, transport.ErrKeys) && time.Since(began) == 0 {
							mu.Lock()
							defer mu.Unlock()
							failed++
							if want := fmt.Sprintf("transport: a.test: no key is left: a: %s, since 2000-01-01T00:00:00Z; b: %s, since 2000-01-01T00:00:00Z", c.out, c.out); e.Error() != want {
								t.Errorf("%q, want %q", e, want)
							}
						}
					})
				}
				all.Wait()
				if n := b.count(); failed != 300-n["b"] || n["b"] > 100 || n["a"] > 0 {
					t.Errorf("%d failed at once, %v were sent", failed, n)
				}
				events := fmt.Sprint(tr.Snapshot().Events)
				if !strings.Contains(events, "no request goes with the key any more: "+c.out) || strings.Contains(events, "secret") {
					t.Error(events)
				}
				delete(b.answers, "a")
				if tr.Readmit("c") || !tr.Readmit("a") || tr.Readmit("a") {
					t.Error("Readmit reports otherwise")
				}
				if err := ask(); err != nil {
					t.Error(err)
				}
				if n := b.count(); n["a"] != 1 || n["b"] != 0 {
					t.Errorf("%v", n)
				}
			})
		})
	}
}

// A key that was revoked is out after it was denied three requests that another key was not, and none of them fails. Requests that all keys are
// denied take no key out, nor does one that a key may not make while it makes others.
func TestKeyIsDenied(t *testing.T) {
	for _, status := range []int{401, 403} {
		synctest.Test(t, func(t *testing.T) {
			b := newKeyed()
			forbidden := func(r *http.Request) *http.Response {
				if r.URL.Path == "/secret" {
					return reply(status, "")
				}
				return reply(200, "fine")
			}
			b.answers["a"], b.answers["b"], b.answers["c"] = forbidden, forbidden, forbidden
			tr := mustNew(t, transport.Config{Base: b, Keys: keys(t, 1000, "a", "b", "c")})
			ask := func(path string, want int) {
				t.Helper()
				if got, _, err := do(t, tr, get(t, "http://a.test"+path)); err != nil || got != want {
					t.Errorf("%s: %d, %v", path, got, err)
				}
			}
			out := func(want ...string) {
				t.Helper()
				for i, k := range tr.Snapshot().Keys {
					if k.State != want[i] {
						t.Errorf("%+v, want %q", k, want[i])
					}
				}
			}
			ask("/", 200)
			b.count()
			for range 20 {
				ask("/secret", status)
			}
			if n := b.count(); n["a"] != 20 || n["b"] != 20 || n["c"] != 20 {
				t.Errorf("%v", n)
			}
			out("ok", "ok", "ok")
			// One key may not do what the others do; it does other things.
			b.answers["b"], b.answers["c"] = nil, nil
			for range 30 {
				ask("/secret", 200)
				ask("/", 200)
				ask("/", 200)
			}
			out("ok", "ok", "ok")
			b.count()
			// Revoked.
			b.answers["a"] = always(status, "")
			for range 30 {
				ask("/", 200)
			}
			if n := b.count(); n["a"] != 3 || n["b"]+n["c"] != 30 {
				t.Errorf("%v", n)
			}
			out("denied", "ok", "ok")
			// Another of those that are left: the last one has nobody to compare with.
			b.answers["b"] = always(status, "")
			for range 30 {
				ask("/", 200)
			}
			out("denied", "denied", "ok")
			b.answers["c"] = always(status, "")
			for range 21 {
				ask("/", status)
			}
			if s := tr.Snapshot().Keys; s[2].State != "denied" || s[2].Why == s[1].Why {
				t.Errorf("%+v", s)
			}
			b.answers["c"] = nil
			time.Sleep(time.Second)
			ask("/", 200)
			out("denied", "denied", "ok")
		})
	}
}

// A key with a pause of an hour delays no request that may go with another, nor does a key whose
// limit is used up.
func TestKeysThatStayAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newKeyed()
		b.answers["a"] = always(429, "", "Retry-After", "3600")
		tr := mustNew(t, transport.Config{Base: b, Keys: keys(t, 10, "a", "b")})
		all := sync.WaitGroup{}
		for range 40 {
			all.Go(func() {
				if status, _, err := do(t, tr, get(t, "http://a.test/")); status != 200 {
					t.Error(status, err)
				}
			})
		}
		all.Wait()
		if d := time.Since(b.begin); d > 4*time.Second {
			t.Errorf("40 requests at 10 a second took %v", d)
		}
		if n := b.count(); n["a"] > 10 || n["b"] != 40 {
			t.Errorf("%v", n)
		}
		if k := tr.Snapshot().Keys[0]; k.State != observe.KeyPaused || k.Until.Sub(b.begin) != time.Hour {
			t.Errorf("%+v", k)
		}
		// Both away: it is said until when.
		b.answers["b"] = always(429, "", "Retry-After", "600")
		if status, _, err := do(t, tr, get(t, "http://a.test/")); status != 429 || err != nil {
			t.Error(status, err)
		}
		_, _, err := do(t, tr, get(t, "http://a.test/"))
		if e, _ := errors.AsType[*transport.Error](err); !errors.Is(err, transport.ErrPaused) || e.Partition.Key != "b" || time.Until(e.Ready).Round(time.Second) != 600*time.Second {
			t.Errorf("%v", err)
		}
		b.answers["a"], b.answers["b"] = nil, nil
		time.Sleep(3600 * time.Second)
		for range 5 {
			if _, _, err := do(t, tr, get(t, "http://a.test/")); err != nil {
				t.Error(err)
			}
		}
	})
}

// Keys of one account count in the same limits, and of them one that is out is not taken any more.
func TestKeysOfAnAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newKeyed()
		b.answers["b"] = always(401, "")
		tr := mustNew(t, transport.Config{Base: b, Keys: keys(t, 1, "acme/a", "acme/b", "other/c"), Attempts: 2})
		var all sync.WaitGroup
		for range 40 {
			all.Go(func() {
				if status, _, err := do(t, tr, get(t, "http://a.test/")); status != 200 {
					t.Error(status, err)
				}
			})
			time.Sleep(time.Millisecond)
		}
		all.Wait()
		if d := time.Since(b.begin); d < 19*time.Second || d > 23*time.Second {
			t.Errorf("40 requests at 2 a second took %v", d)
		}
		if n := b.count(); n["b"] != 3 || n["a"] < 15 || n["c"] < 15 {
			t.Errorf("%v", n)
		}
		if p := tr.Snapshot().Keys[1]; p.State != observe.KeyDenied {
			t.Errorf("%+v", p)
		}
	})
}

// A redirect to another host gets no key.
func TestKeysAndRedirects(t *testing.T) {
	b := newKeyed()
	all := roundTripper(func(r *http.Request) (*http.Response, error) {
		switch r.URL.Host + r.URL.Path {
		case "a.test/here":
			b.RoundTrip(r)
			return reply(302, "", "Location", "/there"), nil
		case "a.test/away":
			return reply(302, "", "Location", "http://b.test/"), nil
		}
		return b.RoundTrip(r)
	})
	tr := mustNew(t, transport.Config{Base: all, Keys: keys(t, 10, "a")})
	client := &http.Client{Transport: tr}
	resp, err := client.Get("http://a.test/here")
	if err != nil || b.count()["a"] != 2 {
		t.Fatalf("%v; %v", err, b.had)
	}
	resp.Body.Close()
	if _, err := client.Get("http://a.test/away"); err == nil || !strings.Contains(err.Error(), "redirected to another host") || len(b.had) > 0 {
		t.Errorf("%v; %v", err, b.had)
	}
}

// Nor does a redirect back home, if a host in between chose where it leads, or if nobody knows which
// host did.
func TestKeysAndRedirectsHome(t *testing.T) {
	for _, named := range []bool{true, false} {
		b := newKeyed()
		tr := mustNew(t, transport.Config{Base: b, Keys: keys(t, 10, "a")})
		client := &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			leads := map[string]string{"a.test/": "http://elsewhere.test/", "elsewhere.test/": "http://a.test/delete-all"}
			to := leads[r.URL.Host+r.URL.Path]
			if to == "" {
				return tr.RoundTrip(r)
			}
			resp := reply(302, "", "Location", to)
			if named {
				resp.Request = r
			}
			return resp, nil
		})}
		resp, err := client.Get("http://a.test/")
		if err == nil {
			resp.Body.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "redirected to another host") || len(b.had) > 0 {
			t.Errorf("the request of a redirect is named: %v; %v; %v", named, err, b.had)
		}
	}
}

// An answer that a key is banned, to a request from before Readmit, bans it no more.
func TestBanOfBeforeReadmit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newKeyed()
		b.answers["a"] = func(r *http.Request) *http.Response {
			if r.URL.Path == "/slow" {
				time.Sleep(time.Minute)
			}
			return reply(402, `{"detail":"Payment required"}`)
		}
		tr := mustNew(t, transport.Config{Base: b, Keys: keys(t, 100, "a"), Attempts: 1})
		state := func() string { return tr.Snapshot().Keys[0].State }
		var all sync.WaitGroup
		all.Go(func() { do(t, tr, get(t, "http://a.test/slow")) })
		synctest.Wait()
		do(t, tr, get(t, "http://a.test/"))
		if state() != observe.KeyNoCredit || !tr.Readmit("a") {
			t.Errorf("it is %s", state())
		}
		all.Wait()
		if state() != observe.KeyOK {
			t.Errorf("paid, it is %s by an answer from before", state())
		}
		do(t, tr, get(t, "http://a.test/"))
		if state() != observe.KeyNoCredit {
			t.Errorf("it is %s by a new answer", state())
		}
	})
}

// Keys beyond those that can be remembered count by themselves, which is said once.
func TestTooManyKeysForTheirOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		o := newOffices(map[string]string{"a": "one", "b": "one", "c": "one", "d": "one"}, 10, time.Second, time.Millisecond)
		c := o.visitors(t, func(c *transport.Config) {
			c.MaxPartitions, c.MaxFrozen, c.Logger = 2, 2048, slog.New(slog.NewTextHandler(&log, nil))
		})
		for range 2 {
			for _, key := range []string{"a", "b", "c", "d"} {
				c.send(1, key)
				c.wait()
				time.Sleep(time.Minute)
			}
		}
		if n := strings.Count(log.String(), "counts by itself"); n != 1 || len(o.served["d"]) != 2 {
			t.Errorf("said %d times; %v", n, &log)
		}
	})
}

// A copy of what is slow goes with a key of its own.
func TestKeysAndHedges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newKeyed()
		b.answers["a"] = func(r *http.Request) *http.Response {
			select {
			case <-r.Context().Done():
			case <-time.After(time.Minute):
			}
			return reply(200, "slow")
		}
		tr := mustNew(t, transport.Config{Base: b, Keys: keys(t, 1, "a", "b"), Hedge: transport.Hedge{After: time.Second / 2, Share: 1}})
		if _, body, err := do(t, tr, get(t, "http://a.test/")); body != "fine" || time.Since(b.begin) != time.Second/2 {
			t.Errorf("%q, %v after %v", body, err, time.Since(b.begin))
		}
		if n := b.count(); n["a"] != 1 || n["b"] != 1 {
			t.Errorf("%v", n)
		}
		time.Sleep(time.Minute)
	})
}

// A request that fits no key's limit fails as one that never fits, whichever keys are out.
func TestKeysThatAreTooSmall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newKeyed()
		b.answers["a"] = always(429, unpaid)
		tr := mustNew(t, transport.Config{Base: b, Keys: keys(t, 5, "a", "b"), Cost: func(r *http.Request, c limit.Cost) limit.Cost {
			if r.URL.Path == "/large" {
				c[limit.Requests] = 6
			}
			return c
		}})
		for range 3 {
			_, _, err := do(t, tr, get(t, "http://a.test/large"))
			if e, _ := errors.AsType[*transport.Error](err); !errors.Is(err, paceline.ErrNever) || e.Size != 6 || e.Limit != 5 {
				t.Errorf("%v", err)
			}
			do(t, tr, get(t, "http://a.test/"))
		}
		if k := tr.Snapshot().Keys[0]; k.State != observe.KeyNoCredit {
			t.Errorf("%+v", k)
		}
	})
}

// All of it at once, with requests that give up: nothing is left behind.
func TestKeysComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newKeyed()
		tr := mustNew(t, transport.Config{Base: b, Keys: keys(t, 50, "a", "x/b", "x/c", "d"), Client: clients(nil), MaxWait: atMost(3 * time.Second)})
		crowd := newCrowd(t)
		for round := range 20 {
			name := string("abcd"[round%4])
			b.mu.Lock()
			switch round % 3 {
			case 0:
				b.answers[name] = always(401, "")
			case 1:
				b.answers[name] = always(429, unpaid)
			default:
				b.answers[name] = nil
			}
			b.mu.Unlock()
			crowd.ask(t, tr, 200, "client"+name, root)
			time.Sleep(700 * time.Millisecond)
			tr.Readmit(name)
			if round%5 == 4 {
				crowd.leave()
				crowd = newCrowd(t)
			}
		}
		crowd.leave()
		for _, p := range tr.Partitions() {
			if p.Waiting != 0 || p.InFlight != 0 {
				t.Errorf("%+v", p)
			}
		}
		if n := transport.Active(tr); n != 0 {
			t.Errorf("%d hold a partition", n)
		}
	})
}

func TestKeysAreChecked(t *testing.T) {
	apply := func(*http.Request) {}
	for want, c := range map[string]transport.Config{
		"Keys[0] has no Name":                           {Keys: []transport.Key{{Apply: apply}}},
		`Keys[1]: another has the Name "a", too`:        {Keys: []transport.Key{{Name: "a", Apply: apply}, {Name: "a", Apply: apply}}},
		`Keys[0]: "a" has no Apply`:                     {Keys: []transport.Key{{Name: "a"}}},
		"Keys and Organization are set: whose a key is": {Keys: []transport.Key{{Name: "a", Apply: apply}}, Organization: func(*http.Request) string { return "" }},
	} {
		if _, err := transport.New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// A key that was paused for longer than anybody waits is used again afterwards, although another key
// has been open all the time.
func TestLongPauseOfOneKeyEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKeyed()
		paused := true
		k.answers["b"] = func(*http.Request) *http.Response {
			if paused {
				return reply(429, "", "Retry-After", "600")
			}
			return reply(200, "")
		}
		tr := mustNew(t, transport.Config{Base: k, Keys: keys(t, 100, "a", "b")})
		for range 4 {
			do(t, tr, get(t, "http://a.test/"))
		}
		paused = false
		k.count()
		time.Sleep(20 * time.Minute)
		for range 20 {
			do(t, tr, get(t, "http://a.test/"))
		}
		if n := k.count(); n["b"] < 5 {
			t.Errorf("by key: %v, want both", n)
		}
	})
}
