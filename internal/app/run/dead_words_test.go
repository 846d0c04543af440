package run

import (
	"bytes"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/output"
)

// What a run says of its dead letters names their file only where that is another than the results,
// and what can be done only where another run can know of them.
func TestWordsAboutTheDead(t *testing.T) {
	srv, _ := counting(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) })
	for name, c := range map[string]struct {
		dead  func(out string) string
		where string
	}{
		"beside": {func(string) string { return "" }, " in OUT.dead.jsonl"}, "in the results": {nil, ""},
		"elsewhere": {func(out string) string { return filepath.Join(filepath.Dir(out), "d.jsonl") }, " in DIR/d.jsonl"},
	} {
		b := newBench(t)
		out := b.config.Out
		if c.dead == nil {
			b.config.Out, b.config.Stdout = "-", new(bytes.Buffer)
		} else {
			b.config.Dead = c.dead(out)
		}
		b.config.Notice = func(string) {}
		r := b.made(b.config)
		text := strings.Join(requests(2, srv.URL), "\n")
		err := r.Check("in", strings.NewReader(text))
		if err == nil {
			err = r.Open()
		}
		if err == nil {
			err = r.Send(t.Context(), "in", strings.NewReader(text))
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Close(); err != nil {
			t.Fatal(err)
		}
		where := strings.NewReplacer("OUT", strings.TrimSuffix(out, ".jsonl"), "DIR", filepath.Dir(out)).Replace(c.where)
		if got, want := r.DeadBecause(), "2 dead letters"+where+", 2 of them because: answered 404 Not Found"; got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// An expired request whose duration passed can be renewed by a run that knows of it. Where the
// results go to the standard output none does, and nothing is said of that.
func TestWordsAboutTheExpired(t *testing.T) {
	srv, _ := counting(t, func(w http.ResponseWriter, q *http.Request) { w.WriteHeader(http.StatusNotFound) })
	for out, want := range map[string]string{
		"":  "1 dead: 1 invalid; 1 expired; --retry-dead=expired --renew sends those again",
		"-": "1 dead: 1 invalid; --retry-dead=invalid sends those again, once the cause that their errors name is gone",
	} {
		b := newBench(t)
		dead := output.DeadBeside(b.config.Out)
		if out != "" {
			b.config.Out, b.config.Dead, b.config.Stdout = out, dead, new(bytes.Buffer)
		}
		b.config.Limits = []format.Rate{{N: 1, Per: 3600e9, Text: "1/h"}}
		got := b.run(request("x", srv.URL), fmt.Sprintf(`{"id":"y","url":%q,"deadline":"1s"}`, srv.URL))
		if got.again != want {
			t.Errorf("--out %q: %q, want %q (%+v)", out, got.again, want, got.Totals)
		}
	}
}
