package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/output"
)

// stream sends the requests of in, which cannot be read twice.
func (b *bench) stream(in io.Reader) ran {
	b.t.Helper()
	r := b.made(b.config)
	if err := r.Open(); err != nil {
		b.t.Fatal(err)
	}
	if b.tamper != nil {
		b.tamper(r)
	}
	if b.drain != nil {
		go b.drain(r)
	}
	out := ran{err: r.Send(context.Background(), "in", in)}
	var err error
	if out.Totals, err = r.Close(); err != nil {
		b.t.Error(err)
	}
	out.results, out.lines = readResults(b.t, b.config.Out)
	out.dead, _ = readResults(b.t, output.DeadBeside(b.config.Out))
	return out
}

func timed(id, url, deadline string) string {
	return fmt.Sprintf(`{"id":%q,"url":%q,"deadline":%q}`, id, url, deadline)
}

func (r ran) states(ids string) string {
	var all []string
	for id := range strings.FieldsSeq(ids) {
		state := r.results[id].State
		if d, dead := r.dead[id]; dead && state == "" {
			state = d.State + " " + d.Class
		}
		all = append(all, state)
	}
	return strings.Join(all, ", ")
}

// The time of a line read late from a pipe begins then, or when the line was created.
func TestDeadlineOfAStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, url, _ := virtualBench(t, func(http.ResponseWriter, *http.Request) {})
		in, w := io.Pipe()
		go func() {
			time.Sleep(400 * time.Millisecond)
			created := time.Now().Add(-10 * time.Second).Format(time.RFC3339Nano)
			for i, ttl := range []string{"5s", "1m"} {
				fmt.Fprintf(w, `{"id":"created%d","url":%q,"deadline":%q,"created":%q}`+"\n", i, url, ttl, created)
			}
			fmt.Fprintln(w, timed("late", url, "300ms"))
			w.Close()
		}()
		if got := b.stream(in); got.err != nil || got.states("created0 created1 late") != "expired, done, done" {
			t.Errorf("%s: %+v, %v", got.states("created0 created1 late"), got.Totals, got.err)
		}
	})
}

// A run that resumes goes on with the time left. In a stream it counts from the first reading of
// each line.
func TestDeadlineOfAStreamResumed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, url, _ := virtualBench(t, func(http.ResponseWriter, *http.Request) {})
		b.config.Limits = []format.Rate{{N: 1, Per: time.Minute, Text: "1/m"}}
		text := strings.Join([]string{timed("first", url, "1h"), timed("waits", url, "300ms"), timed("longer", url, "1h")}, "\n")
		b.drain = func(r *Run) { // once all are read
			for r.Progress().Waiting < 2 || r.Progress().Done < 1 {
				time.Sleep(time.Millisecond)
			}
			r.Drain()
		}
		if got := b.stream(strings.NewReader(text)); got.err != nil || got.Done != 1 || got.Left != 2 {
			t.Fatalf("%+v, %v", got.Totals, got.err)
		}
		time.Sleep(300 * time.Millisecond)
		b.config.Limits, b.drain = nil, nil
		if got := b.stream(strings.NewReader(text + "\n" + timed("new", url, "300ms"))); got.err != nil || got.states("first waits longer new") != "done, expired, done, done" {
			t.Errorf("%s: %+v, %v", got.states("first waits longer new"), got.Totals, got.err)
		}
	})
}

// In a file the time counts from the first run that had the line. A line appended since is new, and
// so is another file with the same results.
func TestDeadlineOfAFileResumed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, url, _ := virtualBench(t, func(http.ResponseWriter, *http.Request) {})
		b.config.TTL = 400 * time.Millisecond
		b.tamper = (*Run).Drain
		lines := requests(3, url)
		lines[2] = timed("r2", url, "1h")
		if got := b.run(lines...); got.err != nil || got.Left != 3 {
			t.Fatalf("%+v, %v", got.Totals, got.err)
		}
		b.tamper = nil
		b.config.TTL = time.Minute
		if got := b.run(lines[0]); got.states("r0") != "done" {
			t.Errorf("a longer one has not passed: %s", got.states("r0"))
		}
		time.Sleep(400 * time.Millisecond)
		b.config.TTL = 400 * time.Millisecond
		lines = append(lines, request("appended", url))
		if got := b.run(lines...); got.states("r0 r1 r2 appended") != "done, expired, done, done" || got.Lost != 0 {
			t.Errorf("%s: %+v", got.states("r0 r1 r2 appended"), got.Totals)
		}
		b.config.Append = true
		if got := b.run(request("x", url), request("y", url)); got.states("x y") != "done, done" {
			t.Errorf("another file: %s", got.states("x y"))
		}
	})
}

// With Renew a retry has a new time, and so has another run. An instant stays an instant. A request
// that is late each time is a dead letter.
func TestRenew(t *testing.T) {
	answers := func(w http.ResponseWriter, q *http.Request) {
		if time.Sleep(150 * time.Millisecond); q.URL.RawQuery != "waits" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}
	for _, renew := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b, url, seen := virtualBench(t, answers)
			b.config.Renew, b.config.Attempts, b.config.TTL = renew, 3, 250*time.Millisecond
			b.config.Concurrency = 2
			at := time.Now().Add(250 * time.Millisecond).Format(time.RFC3339Nano)
			got := b.run(request("fails", url+"?fails"), timed("instant", url+"?instant", at))
			want, class, sent := "expired, expired", "", 2
			if renew {
				want, class, sent = "dead outage, expired", "outage", 3
			}
			if got.err != nil || got.states("fails instant") != want || got.dead["fails"].Class != class {
				t.Errorf("renew %v: %s, want %s", renew, got.states("fails instant"), want)
			}
			if n := seen("fails"); n != sent { // in its time; or three times with a time for each
				t.Errorf("renew %v: it was sent %d times, want %d", renew, n, sent)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) { // it never gets a turn
		b, url, _ := virtualBench(t, answers)
		b.config.Renew, b.config.Attempts, b.config.TTL = true, 2, 60*time.Millisecond
		b.config.Limits = []format.Rate{{N: 1, Per: time.Second / 2, Text: "1/500ms"}}
		got := b.run(timed("first", url+"?waits", "1h"), request("second", url+"?waits"))
		if got.states("first second") != "done, dead expired" || got.dead["second"].Attempts != 2 {
			t.Fatalf("%s: %+v", got.states("first second"), got.dead["second"])
		}
		// A request that is sent again has its whole time again.
		b.config.Limits, b.config.RetryDead = nil, 1<<format.DeadExpired
		b.config.TTL = 20 * time.Millisecond
		if got = b.run(timed("first", url+"?waits", "1h"), request("second", url+"?waits")); got.states("second") != "done" {
			t.Errorf("%s: %+v", got.states("second"), got.dead["second"])
		}
	})
}

// due returns how long a request may wait first, and how long each of its retries.
func TestDue(t *testing.T) {
	for _, c := range []struct {
		age            time.Duration
		renew, again   bool
		first, renewal time.Duration // to the second
	}{
		{80 * time.Second, false, false, 10 * time.Second, 90 * time.Second},
		{100 * time.Second, false, false, -10 * time.Second, 90 * time.Second},
		{100 * time.Second, false, true, -10 * time.Second, 90 * time.Second},
		{80 * time.Second, true, false, 10 * time.Second, 90 * time.Second},
		{100 * time.Second, true, false, 90 * time.Second, 90 * time.Second}, // late, which is an attempt
		{80 * time.Second, true, true, 90 * time.Second, 90 * time.Second},   // a dead letter: this run is a retry
		{-time.Hour, false, false, time.Hour + 90*time.Second, 90 * time.Second},
	} {
		r, err := New(Config{TTL: 90 * time.Second, Renew: c.renew, RetryDead: format.AllDead})
		if err != nil {
			t.Fatal(err)
		}
		if c.again {
			r.tally.Note(format.Entry{ID: "a", State: "dead", Class: "outage"})
		}
		first, renewal := r.starts.due(&format.Request{ID: "a", Created: time.Now().Add(-c.age)})
		if first.Round(time.Second) != c.first || renewal != c.renewal {
			t.Errorf("%+v: %v, %v", c, first, renewal)
		}
	}
}

// Of a stream with more than its server takes, what is sent is answered in time. What could not be
// answered before its deadline is not sent, and says so.
func TestAnswersInTime(t *testing.T) {
	answer := func(http.ResponseWriter, *http.Request) { time.Sleep(150 * time.Millisecond) }
	overload := func(t *testing.T, answerTime time.Duration) (got ran) {
		synctest.Test(t, func(t *testing.T) {
			b, url, _ := virtualBench(t, answer)
			b.config.Limits, b.config.TTL, b.config.AnswerTime = []format.Rate{perSecond(20)}, time.Second, answerTime
			in, w := io.Pipe()
			go func() {
				for i := range 450 { // 30 a second
					fmt.Fprintln(w, request(fmt.Sprintf("r%d", i), url))
					time.Sleep(time.Second / 30)
				}
				w.Close()
			}()
			got = b.stream(in)
			late := 0
			for id, r := range got.results {
				if r.Late {
					late++
				}
				if is := r.State == "done" && r.WaitedMS+r.LatencyMS >= 1000; is != r.Late {
					t.Errorf("%s: late is %v: %s", id, r.Late, r.Append(nil))
				}
				if r.State == "expired" && answerTime >= 0 && !strings.HasPrefix(r.Error, "not sent, since the answer would be too late: ") && !strings.HasPrefix(r.Error, "the deadline passed before") {
					t.Errorf("%s: %s", id, r.Error)
				}
			}
			if got.err != nil || late != got.Late || got.Lost != 0 || got.Done+got.Expired != 450 {
				t.Errorf("%d results are late: %+v, %v", late, got.Totals, got.err)
			}
		})
		return got
	}
	const sendable = 15 * 20 * 1000 / 1150 // a window begins at the answer that may be the first
	if got := overload(t, 0); got.Late > 15 || got.Done-got.Late < sendable*95/100 {
		t.Errorf("%d done, %d of them late", got.Done, got.Late)
	}
	if got := overload(t, 150*time.Millisecond); got.Late > 0 || got.Done < sendable*95/100 {
		t.Errorf("%d done, %d of them late", got.Done, got.Late)
	}
	if got := overload(t, -1); got.Late < 150 {
		t.Errorf("nothing is kept back, and only %d are late", got.Late)
	}
}

// The whole time of a line of a file counts from the first run that had it. One request at a time
// goes to a host that needs longer, which is said once.
func TestAnswersOfASlowHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, url, seen := virtualBench(t, func(http.ResponseWriter, *http.Request) { time.Sleep(1200 * time.Millisecond) })
		b.config.Limits, b.config.TTL, b.config.Concurrency = []format.Rate{perSecond(20)}, time.Second, 2
		var notices []string
		b.config.Notice = func(s string) { notices = append(notices, s) }
		in, w := io.Pipe()
		go func() {
			for i := range 100 { // 10 a second
				fmt.Fprintln(w, request(fmt.Sprintf("r%d", i), url+"?x"))
				time.Sleep(time.Second / 10)
			}
			w.Close()
		}()
		got := b.stream(in)
		if got.Late != got.Done || got.Done < 8 || got.Done > 11 || seen("x") != got.Done {
			t.Errorf("%+v", got.Totals)
		}
		want := "answers of server take 1.2 s (95 % of them no longer), and requests are of use for 1 s: of those that wait for it one at a time goes"
		if len(notices) != 1 || notices[0] != want {
			t.Errorf("%q", notices)
		}
	})
	synctest.Test(t, func(t *testing.T) { // what is left of its time is not all of it
		b, url, _ := virtualBench(t, func(http.ResponseWriter, *http.Request) { time.Sleep(500 * time.Millisecond) })
		b.config.Limits, b.config.TTL, b.config.Queue = []format.Rate{perSecond(4)}, 4*time.Second, 1
		var notices []string
		b.config.Notice = func(s string) { notices = append(notices, s) }
		if got := b.run(requests(40, url)...); got.Late > 0 || got.Done < 9 || got.Done+got.Expired != 40 {
			t.Errorf("%+v", got.Totals)
		}
		if len(notices) > 0 {
			t.Errorf("%q", notices)
		}
	})
	if _, err := New(Config{TTL: time.Second, AnswerTime: time.Second}); !errors.Is(err, ErrConfig) {
		t.Errorf("%v", err)
	}
}
