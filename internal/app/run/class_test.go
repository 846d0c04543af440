package run

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
)

// The class of a dead letter depends on the outcome of its last attempt.
func TestDeadLettersHaveAClass(t *testing.T) {
	srv, _ := counting(t, func(w http.ResponseWriter, q *http.Request) {
		switch what := q.URL.Path[1:]; what {
		case "reset":
			c, _, _ := http.NewResponseController(w).Hijack()
			_ = c.(*net.TCPConn).SetLinger(0)
			c.Close()
		case "half":
			w.Header().Set("Content-Length", "10")
			fmt.Fprint(w, "half")
		case "silent":
			time.Sleep(400 * time.Millisecond)
		case "nowhere":
			w.Header().Set("Location", "ftp://there/")
			w.WriteHeader(http.StatusFound)
		default:
			status, _ := strconv.Atoi(what)
			w.WriteHeader(status)
		}
	})
	b := newBench(t)
	b.config.Attempts, b.config.Timeout, b.config.Redirects = 1, 200*time.Millisecond, 1
	want := map[string]string{
		"reset": "outage", "half": "outage", "silent": "outage", "408": "outage", "425": "outage", "502": "outage", "503": "outage", "504": "outage",
		"500": "failed", "520": "failed", "429": "limited", "401": "refused", "403": "refused",
		"400": "invalid", "404": "invalid", "410": "invalid", "422": "invalid", "501": "invalid", "505": "invalid", "nowhere": "redirect",
	}
	for _, status := range []int{http.StatusPaymentRequired, http.StatusProxyAuthRequired} { // these end a run; older results have them
		if class := format.DeadClassOfStatus(status).String(); class != "refused" {
			t.Errorf("%d: %q, expected refused", status, class)
		}
	}
	var lines []string
	for what := range want {
		if what != "429" { // a denial right after it would be a ban
			lines = append(lines, request(what, srv.URL+"/"+what))
		}
	}
	got := b.run(lines...)
	b.config.Out += "2"
	maps.Copy(got.dead, b.run(request("429", srv.URL+"/429")).dead)
	for what, class := range want {
		if r := got.dead[what]; r.State != "dead" || r.Class != class {
			t.Errorf("%s: %q is dead of %q, expected %s", what, r.State, r.Class, class)
		}
	}
}

// Only those of the named classes are sent again, and the last letter of a request counts.
func TestRetryDeadOfAClass(t *testing.T) {
	status := map[string]*atomic.Int32{"a": {}, "b": {}, "c": {}}
	srv, seen := counting(t, func(w http.ResponseWriter, q *http.Request) {
		w.WriteHeader(int(status[q.URL.RawQuery].Load()))
	})
	b := newBench(t)
	b.config.Attempts = 1
	lines := []string{request("a", srv.URL+"?a"), request("b", srv.URL+"?b"), request("c", srv.URL+"?c")}
	for _, c := range []struct {
		retry, answers     string
		done, dead, passed int
		after              string // the class of each, and how it is called in the last line
		sent               string // so far
	}{
		{"", "a503 b404 c429", 0, 3, 0, "outage invalid limited: 3 dead: 1 outage, 1 limited, 1 invalid; --retry-dead=outage,limited sends those again", "1 1 1"},
		{"", "a200 b200 c200", 0, 0, 3, "outage invalid limited: 3 dead: 1 outage, 1 limited, 1 invalid; --retry-dead=outage,limited sends those again", "1 1 1"},
		{"refused", "a200 b200 c200", 0, 0, 3, "outage invalid limited: 3 dead: 1 outage, 1 limited, 1 invalid; --retry-dead=outage,limited sends those again", "1 1 1"},
		{"outage,limited", "a404 b200 c401", 0, 2, 1, "invalid invalid refused: 3 dead: 1 refused, 2 invalid; --retry-dead=refused,invalid sends those again, once the cause that their errors name is gone (refused: 1 had no credential; --key-env NAME and --header 'Authorization: Bearer {key}' send one)", "2 1 2"},
		{"outage,limited", "a200 b200 c200", 0, 0, 3, "invalid invalid refused: 3 dead: 1 refused, 2 invalid; --retry-dead=refused,invalid sends those again, once the cause that their errors name is gone", "2 1 2"},
		{"all", "a200 b500 c200", 2, 1, 0, "invalid failed refused: 1 dead: 1 failed; --retry-dead=failed sends those again", "3 2 3"},
	} {
		for w := range strings.FieldsSeq(c.answers) {
			n, _ := strconv.Atoi(w[1:])
			status[w[:1]].Store(int32(n))
		}
		b.config.RetryDead = 0
		if c.retry != "" {
			var err error
			if b.config.RetryDead, err = format.ParseDead(c.retry); err != nil {
				t.Fatal(err)
			}
		}
		got := b.run(lines...)
		after := fmt.Sprintf("%s %s %s: %s", got.dead["a"].Class, got.dead["b"].Class, got.dead["c"].Class, got.again)
		sent := fmt.Sprint(seen("a"), seen("b"), seen("c"))
		if got.err != nil || got.Done != c.done || got.Dead != c.dead || got.SkippedDead != c.passed || got.Lost != 0 || after != c.after || sent != c.sent {
			t.Fatalf("--retry-dead=%s: %+v, %v\n%s\nsent %s, expected %+v", c.retry, got.Totals, got.err, after, sent, c)
		}
	}
}

// A request to be sent again that was not sent, since the run ended before, is left. The dead
// letter of the earlier run does not count as its end.
func TestRetryDeadLeft(t *testing.T) {
	srv, _ := counting(t, func(w http.ResponseWriter, q *http.Request) { w.WriteHeader(http.StatusNotFound) })
	b := newBench(t)
	b.run(requests(3, srv.URL)...)
	b.config.RetryDead, b.tamper = format.AllDead, (*Run).Drain
	if got := b.run(requests(3, srv.URL)...); got.err != nil || got.Left != 3 || got.Lost != 0 {
		t.Fatalf("%+v, %v", got.Totals, got.err)
	}
}

// An expired request is no dead letter, but goes again if that class is named.
func TestRetryExpired(t *testing.T) {
	srv, seen := counting(t, func(http.ResponseWriter, *http.Request) {})
	b := newBench(t)
	late := fmt.Sprintf(`{"id":"a","url":"%s?a","deadline":"2020-01-01T00:00:00Z"}`, srv.URL)
	if got := b.run(late); got.Expired != 1 {
		t.Fatalf("%+v", got.Totals)
	}
	inTime := request("a", srv.URL+"?a")
	b.config.RetryDead = format.AllDead
	if got := b.run(inTime); got.SkippedExpired != 1 || got.SkippedDone != 0 || seen("a") != 0 {
		t.Fatalf("plain: %+v", got.Totals)
	}
	b.config.RetryDead, _ = format.ParseDead("expired")
	if got := b.run(inTime); got.Done != 1 || got.Lost != 0 || seen("a") != 1 {
		t.Fatalf("named: %+v", got.Totals)
	}
	if got := b.run(inTime); got.SkippedDone != 1 || seen("a") != 1 {
		t.Fatalf("and is done: %+v", got.Totals)
	}
}

// Ports, ids and times differ; reasons do not.
func TestReasonsGroup(t *testing.T) {
	n := atomic.Int32{}
	srv, _ := counting(t, func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Path == "/said" {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"error":{"message":"no such thing as req_%dab, try again in %d.5s"}}`, n.Add(1), n.Load())
			return
		}
		c, _, _ := http.NewResponseController(w).Hijack()
		_ = c.(*net.TCPConn).SetLinger(0)
		c.Close()
	})
	b := newBench(t)
	b.config.Attempts = 1
	got := b.run(requests(5, srv.URL)...)
	for id, r := range got.dead {
		if r.Error != "no answer: read: connection reset by peer" {
			t.Errorf("%s: %s", id, r.Error)
		}
	}
	a, c := "answered 400 Bad Request: no such thing as req_7ab, try again in 1.5s", "answered 400 Bad Request: no such thing as req_8ab, try again in 2.5s"
	if format.AlikeReason(a) != format.AlikeReason(c) || format.AlikeReason(a) == format.AlikeReason(strings.Replace(c, "400", "404", 1)) || format.AlikeReason("no answer within 30s") != "no answer within 30s" {
		t.Errorf("%q, %q", format.AlikeReason(a), format.AlikeReason(c))
	}
}

// Each format keeps the class of its dead letters. Of Anthropic's, failures are outages.
func TestClassIsReadBack(t *testing.T) {
	for _, c := range []struct {
		class  format.DeadClass
		status int
		body   string
		want   map[string]format.DeadClass // where it is another
	}{
		{format.DeadOutage, 0, "", nil}, {format.DeadOutage, 503, `{"type":"error","error":{"type":"overloaded_error"}}`, nil},
		{format.DeadFailed, 500, `{"type":"error","error":{"type":"api_error"}}`, map[string]format.DeadClass{"anthropic-batch": format.DeadOutage}},
		{format.DeadLimited, 429, `{"type":"error","error":{"type":"rate_limit_error"}}`, nil},
		{format.DeadRefused, 401, `{"type":"error","error":{"type":"authentication_error"}}`, nil},
		{format.DeadInvalid, 400, `{"type":"error","error":{"type":"invalid_request_error"}}`, nil},
		{format.DeadHeld, 0, "", map[string]format.DeadClass{"anthropic-batch": format.DeadOutage}},
	} {
		openAI, _ := format.NewLLM(format.LLMConfig{Provider: format.OpenAI})
		anthropic, _ := format.NewLLM(format.LLMConfig{Provider: format.Anthropic})
		for name, f := range map[string]format.Format{"plain": format.Plain{}, "openai-batch": openAI, "anthropic-batch": anthropic} {
			r := format.Result{ID: "a", State: "dead", Status: c.status, Class: c.class.String(), Error: "x", Request: json.RawMessage("{}")}
			if c.body != "" {
				r.Body = &c.body
			}
			want := c.class
			if other, ok := c.want[name]; ok {
				want = other
			}
			e, ok := f.Entry(f.Line(nil, &r), true)
			if got := format.DeadClassOf(e.Class, e.Status); !ok || e.State != "dead" || got != want {
				t.Errorf("%s: %v with %d is read as %v %v", name, c.class, c.status, e.State, got)
			}
		}
	}
	// A letter of the version before has none.
	if e, _ := (format.Plain{}).Entry([]byte(`{"id":"a","state":"dead","status":404}`), true); format.DeadClassOf(e.Class, e.Status) != format.DeadInvalid {
		t.Errorf("%+v", e)
	}
}

// No other run knows the requests on standard output.
func TestNothingToRetry(t *testing.T) {
	srv, _ := counting(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) })
	b := newBench(t)
	b.config.Out, b.config.Stdout = "-", new(strings.Builder)
	if got := b.run(request("a", srv.URL)); got.again != "1 dead: 1 invalid" {
		t.Error(got.again)
	}
}
