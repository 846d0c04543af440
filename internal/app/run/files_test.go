package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/journal"
	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/output"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
)

// Only the user may read new files, also after the journal is compacted.
func TestPrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("has no such modes")
	}
	srv, _ := counting(t, func(w http.ResponseWriter, q *http.Request) {
		if q.URL.RawQuery == "1" {
			w.WriteHeader(http.StatusBadRequest)
		}
	})
	b := newBench(t)
	for range 2 { // the second opens and compacts
		b.run(requests(3, srv.URL)...)
		for _, path := range []string{b.config.Out, output.DeadBeside(b.config.Out), b.config.Out + ".journal"} {
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			if info.Mode().Perm() != 0o600 {
				t.Errorf("%s is %v", filepath.Base(path), info.Mode())
			}
		}
	}
}

// A compaction of the journal does not follow a link.
func TestCompactFollowsNoLink(t *testing.T) {
	srv, _ := counting(t, func(http.ResponseWriter, *http.Request) {})
	b := newBench(t)
	precious := filepath.Join(t.TempDir(), "precious")
	if err := os.WriteFile(precious, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(precious, b.config.Out+".journal.new"); err != nil {
		t.Skip(err)
	}
	got := b.run(requests(3, srv.URL)...)
	if text, _ := os.ReadFile(precious); got.Done != 3 || string(text) != "precious" {
		t.Errorf("%+v, %v; then it says %.30q", got.Totals, got.err, text)
	}
}

// If there are results, an empty journal is reported, and the unknown sends count as sent. They
// count from now or, if the clock is trusted, from the time of the results. The next run, which has
// a journal, keeps that.
func TestJournalGone(t *testing.T) {
	srv, _ := counting(t, func(http.ResponseWriter, *http.Request) {})
	for _, c := range []struct {
		name    string
		spoil   func(journal string) error
		trusted bool
		age     time.Duration // of the results
		free    int           // of 3 a minute and key
		said    string
	}{
		{"as it was", func(string) error { return nil }, false, 0, 2, ""},
		{"missing", os.Remove, false, 0, 0, "is missing"},
		{"empty", func(j string) error { return os.Truncate(j, 0) }, false, 0, 0, "is empty"},
		{"all NUL", func(j string) error { return os.WriteFile(j, make([]byte, 4096), 0o600) }, false, 0, 0, "has not one whole line"},
		{"missing, and the results are old, they say", os.Remove, false, time.Hour, 0, "is missing"},
		{"trusted", os.Remove, true, 0, 0, "is missing"},
		{"trusted, and the results are old", os.Remove, true, time.Hour, 3, "is missing"},
		{"trusted, and the results are young", os.Remove, true, 20 * time.Second, 0, "is missing"},
		{"trusted, and the results are of tomorrow", os.Remove, true, -24 * time.Hour, 0, "is missing"},
	} {
		for _, bucket := range []bool{false, true} {
			b := newBench(t)
			b.config.Limits = []format.Rate{{N: 3, Per: time.Minute, Text: "3/m", Bucket: bucket}, {N: 1000, Per: time.Second, Text: "1000/s"}}
			b.run(requests(1, srv.URL)...)
			then := time.Now().Add(-c.age)
			if err := errors.Join(c.spoil(b.config.Out+".journal"), os.Chtimes(b.config.Out, then, then), os.Chtimes(output.DeadBeside(b.config.Out), then, then)); err != nil {
				t.Fatal(err)
			}
			b.config.TrustClock = c.trusted
			for _, said := range []string{c.said, ""} {
				var notices strings.Builder
				b.config.Notice = func(s string) { io.WriteString(&notices, s) }
				r, err := New(b.config)
				if err == nil {
					err = r.Open()
				}
				if err != nil {
					t.Fatal(err)
				}
				l, free := r.groups[0].of[0].limiters[0], 0
				if first := l.Ready(0, limit.One).Sub(0); first > time.Minute+journal.Late+time.Second {
					t.Errorf("%s, bucket %v: the first may go after %v", c.name, bucket, first)
				}
				for ; l.Ready(0, limit.One) == 0 && free < 9; free++ {
					limittest.Admit(l, 0, limit.One)
				}
				if bucket && c.said == "" {
					free = c.free // it holds nothing else that is known
				}
				if _, err := r.Close(); err != nil {
					t.Fatal(err)
				}
				if free != c.free || strings.Contains(notices.String(), b.config.Out+".journal "+said) != (said != "") || said == "" && notices.Len() > 0 {
					t.Errorf("%s, bucket %v: %d may go, want %d; told %q, want %q", c.name, bucket, free, c.free, notices.String(), said)
				}
			}
		}
	}
}

// A line appended to the input during a run is not lost: it is left, counted, and sent by the next
// run. A change in the input is an error.
func TestInputGrows(t *testing.T) {
	for _, c := range []struct {
		name     string
		change   func(path string) error
		appended int
		done     int
		err      string
	}{
		{"lines", appends("\n" + strings.Repeat(" \n", 3) + request("x", "http://127.0.0.1:1/") + "\n" + request("y", "http://127.0.0.1:1/")), 2, 5, ""},
		{"half a line, which is no JSON yet", appends("\n{\"url\":"), 1, 5, ""},
		{"blank lines", appends("\n\n  \n"), 0, 5, ""},
		{"nothing", appends(""), 0, 5, ""},
		{"it becomes shorter", func(path string) error { return os.Truncate(path, 100) }, 0, 1, " has become shorter since it was checked"},
		{"it is cut within a line", func(path string) error { return os.Truncate(path, 120) }, 0, 1, " has become shorter since it was checked"},
		{"a line is another", func(path string) error {
			text, err := os.ReadFile(path)
			return errors.Join(err, os.WriteFile(path, []byte(strings.Replace(string(text), `"r2","url":"http://127.0.0.1`, `"r2","url":"http://127.0.0.9`, 1)), 0o600))
		}, 0, 2, `:3:7: id "r2" is not what this line had when it was checked`},
	} {
		path := filepath.Join(t.TempDir(), "in.jsonl")
		srv, _ := counting(t, func(http.ResponseWriter, *http.Request) {})
		text := strings.Join(requests(5, srv.URL), "\n") // without a line break at its end
		if c.done == 1 {
			text = requests(1, srv.URL)[0] + strings.Repeat(" ", 101-len(requests(1, srv.URL)[0])) + text[len(requests(1, srv.URL)[0]):]
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		in, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		conf := newBench(t).config
		var notices strings.Builder
		conf.MaxOutage = -1
		conf.Notice = func(s string) { notices.WriteString(s) }
		r, err := New(conf)
		if err == nil {
			err = r.Check(path, in)
		}
		if err == nil {
			_, err = in.Seek(0, io.SeekStart)
		}
		if err == nil {
			err = errors.Join(c.change(path), r.Open())
		}
		if err != nil {
			t.Fatal(err)
		}
		err = r.Send(context.Background(), path, in)
		if (err == nil) != (c.err == "") || err != nil && (!errors.Is(err, ErrInput) || !strings.Contains(err.Error(), path+c.err)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.err)
		}
		n, err := r.Close()
		if err != nil || n.Lost != 0 || n.Done != c.done || n.Left != 5-c.done || n.Appended != c.appended {
			t.Errorf("%s: %+v, %v", c.name, n, err)
		}
		if strings.Contains(notices.String(), "appended") != (c.appended > 0) {
			t.Errorf("%s: told %q", c.name, notices.String())
		}
	}
}

func appends(text string) func(string) error {
	return func(path string) error {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteString(text)
		return errors.Join(err, f.Close())
	}
}

// A user who changes a column of a long file changes every line. The files of earlier runs are not
// read whole for each line, but only for the first, listed lines.
func TestEveryRequestChanged(t *testing.T) {
	srv, _ := counting(t, func(http.ResponseWriter, *http.Request) {})
	lines := func(path string) (all []string) {
		for i := range 3 * maxListed {
			all = append(all, fmt.Sprintf(`{"id":"%d","url":"%s/%s"}`, i, srv.URL, path))
		}
		return all
	}
	b := newBench(t)
	if first := b.run(lines("before")...); first.Done != 3*maxListed {
		t.Fatalf("%+v, %v", first.Totals, first.err)
	}
	b.config.SkipInvalid = true
	var told lockedBuffer
	b.config.Notice = func(s string) { fmt.Fprintln(&told, s) }
	got := b.stream(strings.NewReader(strings.Join(lines("after"), "\n"))) // all mistakes in a stream are reported
	if named, all := strings.Count(told.String(), "than on line"), strings.Count(told.String(), "is another request than"); named != maxListed || all != 3*maxListed {
		t.Errorf("%d of %d say which line: %+v\n%s", named, all, got.Totals, told.String())
	}
	// A file is checked as a whole. One message is enough then.
	b = newBench(t)
	b.run(lines("before")...)
	want := fmt.Sprintf("in: 30 lines are other requests than their ids have in %s: the method, the URL, a header or the body has "+
		"changed. The first is \"0\" on line 1. For other requests, such as to another model, expected another --out\n", b.config.Out)
	if got := b.run(append(lines("after"), "none")...); !strings.HasSuffix(got.notices, want) ||
		strings.Count(got.notices, "\n") != 2 || got.Done != 0 || !errors.Is(got.err, ErrInput) {
		t.Errorf("%+v, %v, told\n%s\nwant one line beside the wrong one:\n%s", got.Totals, got.err, got.notices, want)
	}
}

// An id that has ended belongs to one request. Another request with that id is an error that names
// both lines, before anything is sent.
func TestSameIDOtherRequest(t *testing.T) {
	srv, seen := counting(t, func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Path == "/dead" {
			w.WriteHeader(http.StatusBadRequest)
		}
	})
	line := func(id, path, more string) string {
		return `{"id":"` + id + `","url":"` + srv.URL + path + `","method":"POST"` + more + `}`
	}
	body := `,"body":{"a":1},"headers":{"X":"1","Y":["2","3"]}`
	for _, c := range []struct {
		name, second string
		retry        format.DeadSet
		done         int    // of the second run
		want         string // of the notice
	}{
		{"the same", line("b", "/?b", body), 0, 1, ""},
		{"written otherwise", line("b", "/?b", `,"headers":{"Y":["2","3"],"x":"1"}, "body" : { "a" : 1 }`), 0, 1, ""},
		{"another priority, cost and deadline", line("b", "/?b", body+`,"priority":3,"cost":2,"deadline":"1h"`), 0, 1, ""},
		{"another body", line("b", "/?b", `,"body":{"a":2},"headers":{"X":"1","Y":["2","3"]}`), 0, 0, `in:2:7: id "b" is another request than on line 1 of OUT: the method, the URL, a header or the body has changed; expected the same request, another --out, or an id of its own` + "\n"},
		{"another url", line("b", "/?c", body), 0, 0, `in:2:7: id "b" is another`},
		{"another header", line("b", "/?b", `,"body":{"a":1},"headers":{"X":"1","Y":["2","4"]}`), 0, 0, `in:2:7: id "b" is another`},
		{"another method", strings.Replace(line("b", "/?b", body), "POST", "PUT", 1), 0, 0, `in:2:7: id "b" is another`},
		{"a dead letter", line("dead", "/?other", ""), 0, 0, `in:2:7: id "dead" is another request than on line 1 of DEAD: the method, the URL, a header or the body has changed; expected the same request, another --out, or an id of its own; --retry-dead sends it as it is now`},
		{"a dead letter, mended", line("dead", "/?mended", ""), format.AllDead, 2, ""},
	} {
		b := newBench(t)
		if first := b.run(line("b", "/?b", body), line("dead", "/dead", "")); first.Done != 1 || first.Dead != 1 {
			t.Fatalf("%+v, %v", first.Totals, first.err)
		}
		b.config.RetryDead = c.retry
		got := b.run(line("new", "/?"+strings.ReplaceAll(c.name, " ", "-"), ""), c.second)
		want := strings.NewReplacer("OUT", b.config.Out, "DEAD", output.DeadBeside(b.config.Out)).Replace(c.want)
		if !strings.Contains(got.notices, want) || (want == "") != (got.err == nil) || want != "" && !(errors.Is(got.err, ErrInput) && errors.Is(got.err, ErrUnsent)) || got.Done != c.done {
			t.Errorf("%s: %v, %d done, told\n%s\nwant %s", c.name, got.err, got.Done, got.notices, want)
		}
		if sent := seen(strings.ReplaceAll(c.name, " ", "-")); (sent > 0) != (c.want == "") {
			t.Errorf("%s: the other was sent %d times", c.name, sent)
		}
		if want == "" {
			continue
		}
		b.config.SkipInvalid = true
		if got := b.run(line("new", "/?n", ""), c.second); got.Done != 1 || got.Invalid != 1 || got.Lost != 0 {
			t.Errorf("%s, passed over: %+v, %v", c.name, got.Totals, got.err)
		}
	}
	// Earlier results have no digest of their requests.
	b := newBench(t)
	if err := os.WriteFile(b.config.Out, []byte(`{"id":"b","state":"done","attempts":1}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := b.run(line("b", "/?whatever", "")); got.err != nil || got.SkippedDone != 1 {
		t.Errorf("%+v, %v", got.Totals, got.err)
	}
}
