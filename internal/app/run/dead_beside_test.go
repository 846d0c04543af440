package run

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/output"
)

// refusesOne is a server to which one request is wrong.
func refusesOne(w http.ResponseWriter, r *http.Request) {
	if r.URL.RawQuery == "1" {
		w.WriteHeader(http.StatusNotFound)
	}
}

// The dead letters of a run belong to its Out. A run with another Out skips none of its requests, and
// waits for no window that only the other one used.
func TestDeadLettersBelongToTheirOut(t *testing.T) {
	for _, c := range []struct{ first, second, dead string }{
		{"x.jsonl", "x.csv", "x.csv.dead.jsonl"}, {"x.csv", "x.jsonl", "x.dead.jsonl"}, {"x.csv", "x.tsv", "x.tsv.dead.jsonl"},
		{"x.jsonl", "x.CSV", "x.CSV.dead.jsonl"}, {"x.jsonl", "x.txt", "x.txt.dead.jsonl"}, {"x.jsonl", "x.csv.jsonl", "x.csv.dead.jsonl"},
		{"x", "x.csv", "x.csv.dead.jsonl"}, {"x.dead.jsonl", "x.csv", "x.csv.dead.jsonl"}, {"x.jsonl", "y.jsonl", "y.dead.jsonl"},
	} {
		synctest.Test(t, func(t *testing.T) {
			b, url, _ := virtualBench(t, refusesOne)
			b.config.Limits = []format.Rate{{N: 3, Per: time.Hour, Text: "3/h"}}
			lines := make([]string, 3)
			for i := range lines {
				lines[i] = fmt.Sprintf(`{"id":"%d","url":"%s?%d"}`, i, url, i)
			}
			dir := filepath.Dir(b.config.Out)
			b.config.Out = filepath.Join(dir, c.first)
			if out := b.run(lines...); out.err != nil || out.Done != 2 || out.Dead != 1 {
				t.Fatalf("%v: %+v", out.err, out.Totals)
			}
			began := time.Now()
			b.config.Out = filepath.Join(dir, c.second)
			out := b.run(lines...)
			if out.err != nil || out.Done != 2 || out.Dead != 1 || out.SkippedDead != 0 || time.Since(began) > time.Second {
				t.Errorf("%s after %s: %v, %d done, %d dead, %d skipped, in %v", c.second, c.first, out.err, out.Done, out.Dead, out.SkippedDead, time.Since(began))
			}
			if dead, _ := readResults(t, filepath.Join(dir, c.dead)); len(dead) != 1 {
				t.Errorf("%s after %s: %d dead letters in %s", c.second, c.first, len(dead), c.dead)
			}
			if out := b.run(lines...); out.err != nil || out.SkippedDead != 1 || out.SkippedDone != 2 {
				t.Errorf("%s goes on: %v, %+v", c.second, out.err, out.Totals)
			}
		})
	}
}

// Two results whose dead letters would be in one file are refused before anything is sent, unless
// the user names a file.
func TestDeadLettersOfTwo(t *testing.T) {
	for _, c := range [][2]string{{"x.jsonl", "x"}, {"x", "x.jsonl"}, {"x.csv.jsonl", "x.csv"}} {
		b := newBench(t)
		srv, seen := counting(t, refusesOne)
		dir := filepath.Dir(b.config.Out)
		b.config.Out = filepath.Join(dir, c[0])
		b.run(fmt.Sprintf(`{"id":"1","url":"%s?1"}`, srv.URL))
		b.config.Out = filepath.Join(dir, c[1])
		_, err := New(b.config)
		if want := filepath.Join(dir, c[0]) + ": expected a file of its own for those of --out " + filepath.Join(dir, c[1]); !errors.Is(err, ErrUnsent) || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%s after %s: %v, want %q", c[1], c[0], err, want)
		}
		b.config.Dead = filepath.Join(dir, "else")
		if _, err := New(b.config); err != nil || seen("1") != 1 {
			t.Errorf("with another file: %v, %d sent", err, seen("1"))
		}
	}
}

// Dead letters that an earlier version named without the ending of a table are found when the run
// goes on.
func TestDeadLettersOfAnEarlierVersion(t *testing.T) {
	for _, shared := range []bool{false, true} {
		b := newBench(t)
		srv, seen := counting(t, refusesOne)
		line := fmt.Sprintf(`{"id":"1","url":"%s?1"}`, srv.URL)
		dir := filepath.Dir(b.config.Out)
		b.config.Out = filepath.Join(dir, "x.csv")
		b.run(line)
		if err := os.Rename(b.config.Out+".dead.jsonl", filepath.Join(dir, "x.dead.jsonl")); err != nil {
			t.Fatal(err)
		}
		if got, want := output.DeadBeside(b.config.Out), filepath.Join(dir, "x.dead.jsonl"); got != want {
			t.Errorf("they are in %s, want %s", got, want)
		}
		if shared { // it is also that of another run
			if err := os.WriteFile(filepath.Join(dir, "x.jsonl.journal"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		out := b.run(line)
		if !shared && (out.SkippedDead != 1 || seen("1") != 1 || out.notices != "") {
			t.Errorf("%d skipped, %d sent; %s", out.SkippedDead, seen("1"), out.notices)
		}
		if shared && (out.SkippedDead != 0 || !strings.Contains(out.notices, "may have earlier ones: --dead ")) {
			t.Errorf("%d skipped; %s", out.SkippedDead, out.notices)
		}
		if out := b.run(line); shared && (out.SkippedDead != 1 || strings.Contains(out.notices, "may have earlier ones")) {
			t.Errorf("with a file of its own by now: %d skipped; %s", out.SkippedDead, out.notices)
		}
	}
}
