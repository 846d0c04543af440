package run

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/pool"
)

// If the only key is denied everything, that costs two requests and not the file. The run reports
// it, tries ever more rarely, and ends so that another run can resume. Before, 400 of 400 were dead
// after 20 s.
func TestOnlyKeyDenies(t *testing.T) {
	for _, c := range []struct {
		key, body, says, ends string
	}{
		{"A", "", "key A is denied all requests (401, 403), 3 in a row now; one request at a time tests it, more and more rarely, and tests do not count in --attempts",
			"key A denies all for 1m3s: answered 403 Forbidden"},
		{"A", `{"error_msg":"your IP is banned"}`, "3 in a row now: answered 403 Forbidden: your IP is banned; one request at a time tests it, more and more rarely, and tests do not count " +
			"in --attempts; if this is a ban, --ban-status 401,403 takes the key out of use at its first such answer", "key A denies all for 1m3s: answered 403 Forbidden: your IP is banned"},
		{"", "", "the server denies all requests (401, 403), 3 in a row now; one request at a time tests it", "the server denies all for 1m3s: answered 403 Forbidden"},
	} {
		synctest.Test(t, func(t *testing.T) {
			asked, mended := 0, false
			v := newInTime(t, oneByOne(func(w http.ResponseWriter, _ *http.Request) {
				if asked++; !mended {
					w.WriteHeader(http.StatusForbidden)
					fmt.Fprint(w, c.body)
				}
			}), perSecond(20))
			v.config.Attempts = 1
			if c.key != "" {
				v.keys(c.key)
			}
			const n = 200
			lines := requests(n, "http://server/")
			got := v.run(lines)
			// 16 were in flight together. Two more went when two were dead. After pauses of 1, 2,
			// 4, 8, 16 and 32 s one goes as a probe.
			if !errors.Is(got.err, pool.ErrExhausted) || got.err.Error() != c.ends || got.Dead != 2 || got.Left != n-2 || got.Lost != 0 || asked > 16+2+6 {
				t.Errorf("%+v, %v; asked %d times", got.Totals, got.err, asked)
			}
			if strings.Count(got.notices, c.says) != 1 || strings.Contains(got.notices, "--ban-status") != (c.body != "") || strings.Contains(got.notices, "default") {
				t.Errorf("%s", got.notices)
			}
			journal, err := os.ReadFile(v.config.Out + ".journal")
			if answers := strings.Count(string(journal), `{"answer"`); err != nil || answers != asked {
				t.Errorf("%d of %d answers are in the journal, %v", answers, asked, err)
			}
			mended = true
			v.config.RetryDead = format.AllDead
			if got = v.run(lines); got.err != nil || got.Done != n || strings.Contains(got.notices, "not answered") {
				t.Errorf("again: %+v, %v: %s", got.Totals, got.err, got.notices)
			}
		})
	}
}

// keysOut are denials that say in words that the key is out of use, without an end.
var keysOut = []struct {
	status     int
	body, says string
}{
	{403, `{"error_msg":"api_key is banned"}`, "is banned: answered 403 Forbidden: api_key is banned; waiting does not help"},
	{403, `{"error":{"message":"Your API key has been revoked."}}`, "is denied: answered 403 Forbidden: Your API key has been revoked.; waiting does not help"},
	{401, `{"error":{"message":"Your API key has been revoked."}}`, "is denied: answered 401 Unauthorized: Your API key has been revoked."},
}

// A key that is out of use by the words of an answer gets nothing more, and no request is lost for it. With 403 each
// of its requests was asked again and again.
func TestKeyOutInWords(t *testing.T) {
	for _, c := range keysOut {
		for _, names := range [][]string{{"A"}, {"A", "B"}} {
			synctest.Test(t, func(t *testing.T) {
				refused := 0
				v := newInTime(t, oneByOne(func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Query().Get("api_key") == "A" {
						refused++
						w.WriteHeader(c.status)
						fmt.Fprint(w, c.body)
					}
				}), perSecond(20))
				v.keys(names...)
				const n, together = 60, 20
				got := v.run(requests(n, "http://server/"))
				done := n * (len(names) - 1)
				if got.Done != done || got.Left != n-done || got.Dead != 0 || refused > together || len(got.OutOfUse) != 1 ||
					errors.Is(got.err, pool.ErrExhausted) != (done == 0) {
					t.Errorf("%d %s of %v: %+v, %v; refused %d times", c.status, c.body, names, got.Totals, got.err, refused)
				}
				if strings.Count(got.notices, "key A "+c.says) != 1 {
					t.Errorf("%d of %v: %s", c.status, names, got.notices)
				}
			})
		}
	}
}

// Where the run knows no key, such words end it if its requests carry a credential. Otherwise they may be about one
// page, and end it as 403 does.
func TestOwnKeyOutInWords(t *testing.T) {
	for _, c := range []struct {
		header, query string
		ends          bool
	}{
		{"X-Api-Key: b", "", true}, {"", "api_key=b", true}, {"", "page=2", false},
	} {
		synctest.Test(t, func(t *testing.T) {
			asked := 0
			v := newInTime(t, oneByOne(func(w http.ResponseWriter, _ *http.Request) {
				if asked++; asked > 5 {
					w.WriteHeader(http.StatusForbidden)
					fmt.Fprint(w, keysOut[0].body)
				}
			}), perSecond(20))
			if c.header != "" {
				v.config.Header, _ = format.ParseHeaders([]string{c.header})
			}
			if c.query != "" {
				v.config.Query, _ = format.ParseQuery([]string{c.query})
			}
			got := v.run(requests(60, "http://server/"))
			if errors.Is(got.err, pool.ErrExhausted) != c.ends || got.Done != 5 || (got.Dead == 0) != c.ends ||
				strings.Contains(got.notices, "nothing more is sent") != c.ends {
				t.Errorf("%s%s: %+v, %v: %s", c.header, c.query, got.Totals, got.err, got.notices)
			}
		})
	}
}

// If a key is denied for a while, no request is lost. A request that is denied while others are
// served is dead at once.
func TestDeniedForAWhile(t *testing.T) {
	for _, c := range []struct {
		name       string
		keyless    bool
		denies     func(id int, since time.Duration) bool
		dead, most int // seconds
	}{
		{"one of them", false, func(id int, _ time.Duration) bool { return id == 70 }, 1, 21},
		{"every tenth", false, func(id int, _ time.Duration) bool { return id%10 == 0 }, 40, 21},
		{"a time", false, func(_ int, since time.Duration) bool { return since > 2*time.Second && since < 5*time.Minute }, 2, 600},
		{"30 together", false, func(id int, _ time.Duration) bool { return id >= 100 && id < 130 }, 30, 900},
		{"200 together, and nobody has a key", true, func(id int, _ time.Duration) bool { return id >= 100 && id < 300 }, 200, 21},
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			v := newInTime(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var id int
				_, _ = fmt.Sscan(r.FormValue("id"), &id)
				// Answers in one instant come in any order. Three denials among them could be the
				// last three of a second.
				time.Sleep(time.Duration(id) * time.Microsecond)
				if c.denies(id, time.Since(began)) {
					w.WriteHeader(http.StatusForbidden)
				}
			}), perSecond(20))
			if !c.keyless {
				v.keys("A")
			}
			const n = 400
			var lines []string
			for i := range n {
				lines = append(lines, request(fmt.Sprint("q", i), fmt.Sprint("http://server/?id=", i)))
			}
			got := v.run(lines)
			if got.err != nil || got.Dead > c.dead || got.Done != n-got.Dead || c.name != "a time" && got.Dead != c.dead || got.took > time.Duration(c.most)*time.Second {
				t.Errorf("%s: %+v, %v in %v: %s", c.name, got.Totals, got.err, got.took, got.notices)
			}
		})
	}
}

// A served request ends a time of denials. The next time begins with its own first denial.
func TestDeniedSince(t *testing.T) {
	var d denials
	now := time.Now()
	denied, served := pool.Answer{Denied: true}, pool.Answer{Outcome: limit.Outcome{Result: limit.Accepted}}
	for i, c := range []struct {
		ans    pool.Answer
		since  int
		served bool
	}{{pool.Answer{}, -1, false}, {denied, 1, false}, {denied, 1, false}, {pool.Answer{}, 1, false}, {served, -1, true}, {denied, 5, true}} {
		d.heard(now.Add(time.Duration(i)), &c.ans)
		since, was := d.last()
		if was != c.served || since.IsZero() != (c.since < 0) || c.since >= 0 && since != now.Add(time.Duration(c.since)) {
			t.Errorf("%d: since %v, served %v", i, since, was)
		}
	}
}

// A request that died of a denial and is sent again dies again, alone or with many.
func TestDeniedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newInTime(t, oneByOne(func(w http.ResponseWriter, r *http.Request) {
			if r.FormValue("id") != "" {
				w.WriteHeader(http.StatusForbidden)
			}
		}), perSecond(20))
		v.keys("A")
		v.config.Concurrency = 1 // between two denials something is served, and not only in the input: on a busy machine goroutines overtake one another
		var lines []string
		for i := range 20 {
			lines = append(lines, request(fmt.Sprint("q", i), "http://server/?id=1"), request(fmt.Sprint("r", i), "http://server/"))
		}
		if got := v.run(lines); got.err != nil || got.Done != 20 || got.Dead != 20 {
			t.Errorf("%+v, %v", got.Totals, got.err)
		}
		v.config.RetryDead = format.AllDead
		if got := v.run(lines); got.err != nil || got.Dead != 20 || got.took > 2*time.Second {
			t.Errorf("again: %+v, %v in %v", got.Totals, got.err, got.took)
		}
		v.config.Out += "2"
		if got := v.run(lines[:1:1]); got.err != nil || got.Dead != 1 {
			t.Errorf("one: %+v, %v", got.Totals, got.err)
		}
	})
}

// If the user gave no key, notices name none.
func TestNoKeyIsNamed(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer func(http.ResponseWriter)
		says   []string
		ends   string
	}{
		{"banned", func(w http.ResponseWriter) { w.WriteHeader(418) }, []string{"the server refuses for good: answered 418 I'm a teapot; nothing more is sent"},
			"the server refuses for good: answered 418 I'm a teapot"},
		{"refused", func(w http.ResponseWriter) { w.WriteHeader(429) }, []string{"the server refuses all, 4 times in a row, with nothing served between; one request at a time"}, ""},
		{"told to wait", func(w http.ResponseWriter) { w.Header().Set("Retry-After", "90"); w.WriteHeader(429) }, []string{"the server asks to stay away for 1m30s, until "}, ""},
		{"nonces", func(w http.ResponseWriter) { w.WriteHeader(409) }, []string{"the server refuses nonces, 4 in a row now, which rose and were in order: another process counts on"}, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			v := newInTime(t, oneByOne(func(w http.ResponseWriter, _ *http.Request) {
				if time.Since(began) < 2*time.Minute {
					c.answer(w)
				}
			}), perSecond(5))
			v.config.BanStatus, v.config.NonceStatus = []int{418}, []int{409}
			if c.name == "nonces" {
				v.nonces()
			}
			got := v.run(requests(20, "http://server/"))
			for _, want := range c.says {
				if !strings.Contains(got.notices, want) {
					t.Errorf("%s: %s", c.name, got.notices)
				}
			}
			var why strings.Builder
			for _, p := range got.progress {
				why.WriteString(p.Why + "\n")
			}
			if err := fmt.Sprint(got.err); c.ends != "" && err != c.ends || c.ends == "" && got.err != nil || strings.Contains(err+got.notices+why.String(), "default") || strings.Contains(got.notices, "key") || got.OutOfUse != nil {
				t.Errorf("%s: %v, %s%s", c.name, got.err, got.notices, why.String())
			}
		})
	}
}
