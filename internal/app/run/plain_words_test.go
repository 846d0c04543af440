package run

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/output"
	"github.com/paceline-go/paceline/internal/app/run/telling"
	"github.com/paceline-go/paceline/limit"
)

// If the server accepted as much as the limit allows, the limit is not too large.
func TestWordsOfALimitThatFits(t *testing.T) {
	thirty := limit.Rule{N: 30, Per: time.Second}
	for fits, want := range map[int64]string{
		30: "key A kept to 30/s and was refused: the limit changed in the run, or others use the key, too; 30 in 1s were accepted: the limit would fit",
		20: "key A kept to 30/s and was refused: the true limit is smaller, or others use the key, too; 20 in 1s were accepted: --limit 20/s would fit",
	} {
		told := ""
		s := lessons{epoch: time.Now(), c: &Config{Limits: []format.Rate{{N: 30, Per: time.Second, Text: "30/s"}}},
			teller: telling.New(func(s string) { told = s }, false, false)}
		s.tellMisfit("A", &limit.Misfit{Rule: thirty, Fits: fits}, true, "")
		if !strings.HasPrefix(told, want) {
			t.Errorf("%d fit: %s", fits, told)
		}
	}
}

// A message about a promise that proved wrong names its flag, and the change that helps.
func TestWordsOfARetreat(t *testing.T) {
	c := Config{Gap: 5 * time.Millisecond, Arrivals: limit.Arrivals{OneWayMax: 50 * time.Millisecond}}
	for _, w := range []struct {
		keyless bool
		of      limit.Retreat
		want    string
	}{
		{false, limit.Retreat{Limit: "sequence", Option: "Gap"}, "--nonce-gap 5ms is too short: a request of key A overtook the one before it, and a nonce was refused. Until 21:01:34 one request of key A is in flight at a time; expected a longer --nonce-gap, or none"},
		{true, limit.Retreat{Limit: "sequence", Option: "Gap"}, "--nonce-gap 5ms is too short: a request overtook the one before it, and a nonce was refused. Until 21:01:34 one request is in flight at a time; expected a longer --nonce-gap, or none"},
		{false, limit.Retreat{Limit: "20/s", Option: "OneWayMax"}, "--latency-max 50ms is too short: requests of key A were refused that keep to it and to the limit. Until 21:01:34 the limit counts without it; expected a longer --latency-max, or none"},
	} {
		c.keyless = w.keyless
		if got := (&denials{c: &c}).retreatText("A", &w.of, "21:01:34"); got != w.want {
			t.Errorf("%s", got)
		}
	}
}

// After a nonce gap proved too short, a request waits for the answer before it, and not until the gap counts again.
func TestWaitAfterAShortNonceGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int32
		b, url, _ := virtualBench(t, func(w http.ResponseWriter, _ *http.Request) {
			if n.Add(1) == 2 {
				w.WriteHeader(http.StatusBadRequest)
				fmt.Fprint(w, `{"error_msg":"bad nonce: 7 is not above the last one"}`)
			}
			time.Sleep(200 * time.Millisecond)
		})
		b.config.Gap = 5 * time.Millisecond
		var err error
		if b.config.Query, err = format.ParseQuery([]string{"nonce={nonce}"}); err != nil {
			t.Fatal(err)
		}
		waits, looked := 0, make(chan struct{})
		b.drain = func(r *Run) {
			defer close(looked)
			for range 30 {
				time.Sleep(100 * time.Millisecond)
				p := r.Progress()
				if strings.Contains(p.Why, nonceOrder) {
					waits++
				}
				if p.WaitLeft > time.Second || p.ETA > time.Minute {
					t.Errorf("%d done: waiting for %s, %v; ETA %v", p.Done, p.Why, p.WaitLeft, p.ETA)
				}
			}
		}
		got := b.run(requests(50, url)...)
		<-looked
		if got.err != nil || got.Done != 50 || got.ClientError == 0 || !strings.Contains(got.notices, "--nonce-gap 5ms is too short") || waits == 0 {
			t.Errorf("%+v, %v, %d waits\n%s", got.Totals, got.err, waits, got.notices)
		}
	})
}

// What a server says of a refusal is in the reason, whatever its status.
func TestReasonHasTheWordsOfTheServer(t *testing.T) {
	for _, status := range []int{400, 401, 403, 404, 422, 429, 500, 503} {
		synctest.Test(t, func(t *testing.T) {
			b, url, _ := virtualBench(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(status)
				fmt.Fprint(w, `{"error_msg":"no such path: requests go to /api/request"}`)
			})
			b.config.Attempts = 1
			if status == 401 {
				b.config.BanStatus = nil
			}
			if got := b.run(request("a", url)); !strings.Contains(got.dead["a"].Error, "no such path: requests go to /api/request") {
				t.Errorf("%d: %q, %v", status, got.dead["a"].Error, got.err)
			}
		})
	}
}

// A column that is null in the first answers, or in all of a few, is said once, with what is there in its place.
func TestSelectionThatFindsNothing(t *testing.T) {
	const body = "name=.body.nmae (.body has no nmae, but n, name; did you mean name?)"
	for _, c := range []struct {
		selection string
		rows      int
		want      string // empty: nothing is said
	}{
		{"name=.body.nmae", 3 * fewRows, "--select has found nothing in 20 answers: " + body},
		{"name=.body.nmae, id=.id", 3 * fewRows, "--select has found nothing in 20 answers: " + body},
		{"name=.body.nmae, id=.id", 3, "--select has found nothing in 3 answers: " + body},
		{"name=.body.nmae", 1, "--select has found nothing in 1 answer: " + body},
		{".body.nmae", 3 * fewRows, "--select has found nothing in 20 answers: .body.nmae (.body has no nmae, but n, name; did you mean name?)"},
		{"n=.body.n", fewRows, "--select has found nothing in 20 answers: n=.body.n"},
		{"name=.body.name", 3 * fewRows, ""},
		{".body.name", 3, ""},
		{"late=.body.late", 3 * fewRows, ""},
		{"late=.body.late", fewRows, ""}, // the latest has it
	} {
		synctest.Test(t, func(t *testing.T) {
			var asked atomic.Int64
			b, url, _ := virtualBench(t, func(w http.ResponseWriter, _ *http.Request) {
				late := ""
				if asked.Add(1) == fewRows {
					late = `,"late":1`
				}
				fmt.Fprintf(w, `{"name":"x","n":null%s}`, late)
			})
			var err error
			if b.config.Shape, err = output.CompileShape(c.selection, output.JSONL); err != nil {
				t.Fatal(err)
			}
			b.config.Concurrency = 1 // answers side by side are judged in any order
			var told lockedBuffer
			b.config.Notice = func(s string) { fmt.Fprintln(&told, s) }
			r := b.made(b.config)
			text := strings.Join(requests(c.rows, url), "\n")
			if err := r.Check("in", strings.NewReader(text)); err != nil {
				t.Fatal(err)
			}
			if err := r.Open(); err != nil {
				t.Fatal(err)
			}
			if err := r.Send(t.Context(), "in", strings.NewReader(text)); err != nil {
				t.Error(err)
			}
			if _, err := r.Close(); err != nil {
				t.Error(err)
			}
			said := strings.Count(told.String(), "--select")
			if c.want == "" && said > 0 || c.want != "" && (said != 1 || !strings.Contains(told.String(), c.want+"\n")) {
				t.Errorf("%s, %d rows: %s, want %s", c.selection, c.rows, told.String(), c.want)
			}
		})
	}
}

// A weak key is worth a notice, unless it is plainly no secret, or its server is on this machine.
func TestWeakKeys(t *testing.T) {
	for _, c := range []struct {
		key, home string
		want      bool
	}{
		{"hunter2", "https://api.example.com", true}, {"ollama", "https://api.example.com", false},
		{"hunter2", "http://127.0.0.1:9999", false}, {"hunter2", "http://localhost", false}, {"hunter2", "http://[::1]:1", false},
		{"hunter2", "http://10.0.0.1", true}, {"hunter2", "http://localhost.example.com", true},
	} {
		b := newBench(t)
		b.config.Keys = []format.Key{{Name: "A", Secret: c.key}}
		var err error
		if b.config.Header, err = format.ParseHeaders([]string{"X-Key: {key}"}); err != nil {
			t.Fatal(err)
		}
		var told lockedBuffer
		b.config.Notice = func(s string) { fmt.Fprintln(&told, s) }
		r := b.made(b.config)
		if err := errors.Join(r.Check("in", strings.NewReader(request("a", c.home+"/"))), r.Open()); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Close(); err != nil {
			t.Error(err)
		}
		if got := strings.Contains(told.String(), "if an answer repeats the value of A"); got != c.want {
			t.Errorf("%s at %s: %s", c.key, c.home, told.String())
		}
	}
}
