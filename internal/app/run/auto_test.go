package run

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/app/journal/recalltest"
	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/output"
	"github.com/paceline-go/paceline/internal/testkit/fakeconn"
	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/limit"
)

// brokenOff runs --limit auto against a server for a time, and then breaks it off. Usually it
// drains, as by Ctrl-C. With killed it stops while requests are in flight, and the files stay as
// they are then.
//
// It returns the server's counts in the minute before, those in the minute after another run
// resumed, and the notices of that run. With forgets, the journal is as the version before wrote
// it.
func brokenOff(t *testing.T, of string, killed, forgets bool, known ...format.Rate) (before, after recalltest.Did, says string) {
	server, err := recalltest.New(of)
	if err != nil {
		t.Fatal(err)
	}
	network := fakeconn.New()
	srv := &http.Server{Handler: server}
	go func() { _ = srv.Serve(network) }()
	defer func() {
		time.Sleep(time.Minute) // the server ends what it was asked
		srv.Close()
	}()
	var lines []string
	for i := range 6_000 {
		lines = append(lines, fmt.Sprintf(`{"id":"r%d","url":"http://server.test%s"}`, i, recalltest.Path))
	}
	b := newBench(t)
	b.network = network
	b.config.Auto, b.config.Concurrency, b.config.Attempts = &Auto{Seed: 3}, 16, 50
	b.config.Limits = known
	out := b.config.Out
	b.drain = func(r *Run) {
		time.Sleep(2 * time.Minute)
		server.Since()
		time.Sleep(time.Minute)
		before = server.Since()
		if killed {
			out = filepath.Join(t.TempDir(), "killed.jsonl")
			for from, to := range map[string]string{b.config.Out: out, output.JournalOf(b.config.Out): output.JournalOf(out)} {
				text, err := os.ReadFile(from)
				if err == nil && forgets {
					text = []byte(withoutMemories(string(text)))
				}
				if err == nil {
					err = os.WriteFile(to, text, 0o600)
				}
				if err != nil {
					t.Error(err)
				}
			}
		}
		r.Drain()
	}
	if first := b.run(lines...); first.err != nil {
		t.Error(first.err)
	}
	server.Since()
	b.config.Out = out
	b.drain = func(r *Run) {
		time.Sleep(time.Minute)
		after = server.Since()
		r.Drain()
	}
	second := b.run(lines...)
	if second.err != nil {
		t.Error(second.err)
	}
	return before, after, second.notices
}

// What was found says how many requests were refused while the limit was not known yet, and how many later.
func TestFoundCountsRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		b, url, _ := virtualBench(t, func(w http.ResponseWriter, _ *http.Request) {
			n++
			time.Sleep(10 * time.Second)
			if n == 2 || n == 15 || n == 18 {
				w.Header().Set("Retry-After", "1")
				w.WriteHeader(http.StatusTooManyRequests)
			}
		})
		b.config.Auto, b.config.Concurrency, b.config.Timeout = &Auto{Seed: 3}, 1, time.Minute
		out := b.run(requests(20, url)...)
		if f := out.Found; out.err != nil || len(f) != 1 || f[0].Soon != 1 || f[0].Later != 2 || f[0].By != "refusals" {
			t.Errorf("%v: %+v", out.err, f)
		}
	})
}

// withoutMemories returns a file as the version before wrote it.
func withoutMemories(text string) string {
	var kept strings.Builder
	for line := range strings.Lines(text) {
		if !strings.Contains(line, `"memory"`) {
			kept.WriteString(strings.Replace(line, `"version":6`, `"version":4`, 1))
		}
	}
	return kept.String()
}

// A run that resumes keeps the findings of --limit auto. In its first minute the server refuses one
// request at most, as in any minute, and serves as much as in the minute before. A journal of the
// version before has no findings: then the run searches again.
func TestAutoOverRuns(t *testing.T) {
	race.Without(t) // other tests resume runs, too; these send for minutes
	need.NotShort(t, "TestAutoBesideLimitsOverRuns resumes with what was found")
	for _, c := range []struct {
		of              string
		killed, forgets bool
		says            string
	}{
		{"window", true, false, " ago: 5000 requests per 1h0m0s, as the server says"},
		{"bucket", false, false, "--limit auto goes on with what was found "},
		{"silent", true, false, " ago: about "},
		{"silent", false, false, " ago: about "},
		{"silent", true, true, ""},
	} {
		if !need.Long() && c.of == "silent" && !c.killed {
			continue // a kill keeps less than a clean end
		}
		synctest.Test(t, func(t *testing.T) {
			before, after, says := brokenOff(t, c.of, c.killed, c.forgets)
			t.Logf("%s, killed %v: %+v, then %+v\n%s", c.of, c.killed, before, after, says)
			if !c.forgets && (after.Refused > 3 || after.Served < before.Served*4/5) {
				t.Errorf("%s, killed %v: %+v in the minute before, and %+v in the minute after", c.of, c.killed, before, after)
			}
			if !strings.Contains(says, c.says) || strings.Contains(says, "--limit auto") == c.forgets {
				t.Errorf("%s, killed %v, forgets %v: it says %q, want %q", c.of, c.killed, c.forgets, says, c.says)
			}
		})
	}
}

// The findings are kept beside a known limit, too.
func TestAutoBesideLimitsOverRuns(t *testing.T) {
	race.Without(t) // as TestAutoOverRuns
	synctest.Test(t, func(t *testing.T) {
		before, after, says := brokenOff(t, "silent", true, false, minutely(6000, limit.Requests, false))
		t.Logf("%+v %+v", before, after)
		if after.Refused > 3 || after.Served < before.Served*4/5 || !strings.Contains(says, " ago: about ") {
			t.Errorf("%+v in the minute before, and %+v in the minute after; it says %q", before, after, says)
		}
	})
}
