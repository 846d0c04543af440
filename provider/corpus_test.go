package provider_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/corpus"
	"github.com/paceline-go/paceline/internal/testkit/golden"
	"github.com/paceline-go/paceline/provider"
)

// TestCorpus: each answer that is kept is read as before. After a change: -update, and read what differs against the source of the answer.
func TestCorpus(t *testing.T) {
	total := 0
	for _, name := range provider.Names() {
		d, ok := provider.Lookup(name)
		if !ok {
			t.Fatalf("%s is not found by its name", name)
		}
		all := corpus.Load(t, "testdata", name)
		if len(all) < 2 { // of some no more were ever published
			t.Errorf("%s: %d responses, want 2 at least", name, len(all))
		}
		total += len(all)
		for _, s := range all {
			if s.Source == "" {
				t.Errorf("%s does not name its source", s.Name)
			}
			o := d.Read(s.Now, s.Response)
			check(t, s.Name, s.Now, o)
			got, err := json.MarshalIndent(o, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, strings.TrimSuffix(strings.TrimPrefix(s.Name, "testdata/"), ".http")+".json", string(got)+"\n")
		}
	}
	if total < 150 {
		t.Errorf("the corpus has %d responses: some were lost", total)
	}
}

// TestCorpusIsWhole: no folder of testdata is for a dialect that is gone, and no reading for a response.
func TestCorpusIsWhole(t *testing.T) {
	files, err := filepath.Glob("testdata/*/*")
	if err != nil || len(files) == 0 {
		t.Fatal(err, len(files))
	}
	for _, f := range files {
		dir := filepath.Base(filepath.Dir(f))
		if _, ok := provider.Lookup(dir); !ok && dir != "fuzz" && dir != filepath.Base(strangers) && !strings.HasPrefix(dir, "Fuzz") {
			t.Errorf("%s: no dialect %q", f, dir)
		}
		if base, ok := strings.CutSuffix(f, ".json"); ok {
			if _, err := os.Stat(base + ".http"); err != nil {
				t.Error(err)
			}
		}
	}
}

// check is what holds for every reading of anything.
func check(t testing.TB, name string, now time.Time, o provider.Observation) {
	t.Helper()
	fail := func(format string, args ...any) {
		t.Helper()
		t.Errorf(name+": "+format+"\n%+v", append(args, o)...)
	}
	if o.RetryAfter < 0 || o.RetryAfter > provider.MaxWait {
		fail("retry after %v", o.RetryAfter)
	}
	if o.Worked < 0 || o.Worked > provider.MaxWait {
		fail("worked %v", o.Worked)
	}
	if len(o.Policies) > 32 || len(o.Limits) > 32 || len(o.RefusedBy) > 32 || len(o.Notes) > 32 || len(o.Problems) > 32 {
		fail("a list is longer than 32")
	}
	for _, p := range o.Policies {
		if p.Limit < 0 || p.Limit > provider.MaxCount || p.Burst < 0 || p.Burst > provider.MaxCount || p.Window < 0 || p.Window > provider.MaxWait || p.Unit == "" {
			fail("policy %+v", p)
		}
		if p.Limit == 0 && p.Window == 0 {
			fail("policy %+v says nothing", p)
		}
	}
	for _, l := range o.Limits {
		for _, c := range []provider.Count{l.Remaining, l.Used} {
			if c.N < 0 || c.N > provider.MaxCount || !c.OK && c.N != 0 {
				fail("count %+v", c)
			}
		}
		if !l.Reset.IsZero() && (l.Reset.Before(now) || l.Reset.After(now.Add(provider.MaxWait))) {
			fail("reset %v", l.Reset)
		}
		if l.Unit == "" {
			fail("limit %+v has no unit", l)
		}
	}
	if at, ok := o.ComeBack(now); ok && (at.Before(now) || at.After(now.Add(provider.MaxWait))) {
		fail("come back at %v", at)
	}
	for _, s := range append(append([]string(nil), o.Notes...), append(o.Problems, o.RefusedBy...)...) {
		if strings.ContainsAny(s, "\x00\x1b\n\r\x7f\u202e") || len(s) > 600 {
			fail("text %q", s)
		}
	}
	if _, err := json.Marshal(o); err != nil {
		fail("%v", err)
	}
}
