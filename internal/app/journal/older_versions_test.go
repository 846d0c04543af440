package journal

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
)

// A run continues from journals of earlier versions, of any age. A later version is refused, and so
// is a file that is no journal.
func TestVersions(t *testing.T) {
	for name, want := range map[string]History{
		"first.journal": {Last: 37, Sends: make([]Sent, 10), Open: map[string]struct{}{"r6": {}, "r7": {}, "r8": {}}},
		"guard.journal": {Last: 10, Sends: make([]Sent, 10), Open: map[string]struct{}{"r6": {}, "r7": {}, "r8": {}}},
	} {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		for _, off := range []time.Duration{-5 * 365 * 24 * time.Hour, 0} {
			m := &machine{boot: "b", off: off}
			conf := m.config(filepath.Join(t.TempDir(), "j"))
			if err := os.WriteFile(conf.Path, text, 0o600); err != nil {
				t.Fatal(err)
			}
			for range 2 { // the second reads what the first has made of it
				_, h, err := Open(conf, m.now())
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if h.Last < want.Last || len(h.Sends) != len(want.Sends) || h.Gone != "" || h.Open != nil && len(h.Doubts) < len(h.Open) {
					t.Errorf("%s: %+v", name, h)
				}
				if want.Open != nil && !maps.Equal(h.Open, want.Open) {
					t.Errorf("%s: unanswered are %v", name, h.Open)
				}
				want.Open = nil
				for _, s := range h.Sends {
					if age := m.now().Sub(time.Unix(0, s.Counts)); age < -Late || age > 5*time.Second {
						t.Errorf("%s: a send is %v old, and nothing says that more than the seconds of that run have passed", name, age)
					}
				}
				if held := time.Unix(0, h.Holds["KEY_A"]).Sub(m.now()); held < 9*time.Minute || held > 10*time.Minute+time.Millisecond {
					t.Errorf("%s: KEY_A is held for %v", name, held)
				}
				if h.Nonces["KEY_A"] < 1795342728674 && name == "guard.journal" {
					t.Errorf("%s: nonces %v", name, h.Nonces)
				}
			}
			want.Open = map[string]struct{}{"r6": {}, "r7": {}, "r8": {}}
		}
	}
	for text, want := range map[string]string{
		`{"run":"x","version":7}`:                 "j: a journal of version 7, which is later than this paceline's (6): go on with the one that wrote it",
		`{"run":"x","version":7,"novelty":1}`:     "j: a journal of version 7, which is later than this paceline's (6): go on with the one that wrote it",
		`{"run":"x"}{"send":1}`:                   `j:1: no journal of paceline, or damaged ("{\"send\":1}" follows the record)`,
		`{"run":"x","version":4}`:                 "",
		`{"run":"x"} notes`:                       `j:1: no journal of paceline, or damaged ("notes" follows the record)`,
		"{\"run\":\"x\"}\x00\x00":                 `j:1: no journal of paceline, or damaged (`,
		"{\"run\":\"x\"}\n\x00\x00\n{\"send\":1}": `j:2: no journal of paceline, or damaged (`,
		"{\"run\":\"x\"}\n\n{\"send\":1}":         `j:2: no journal of paceline, or damaged (EOF)`,
		"{\"run\":\"x\"}\n{\"send\":1,\"id":       "",
		`{"send":1,"at":-1}`:                      `j:1: no journal of paceline, or damaged (a number is negative)`,
	} {
		if !strings.HasSuffix(text, `"id`) {
			text += "\n"
		}
		_, err := read(strings.NewReader(text), "j")
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// The version before had no lessons: a run of it that was killed is gone on with, by the one clock
// that both tell.
func TestSecondVersion(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "second.journal"))
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{boot: "b"}
	conf := m.config(filepath.Join(t.TempDir(), "j"))
	if err := os.WriteFile(conf.Path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	j, h, err := Open(conf, m.now())
	if err != nil || h.Last != 173 || len(h.Sends) < 18 || len(h.Open) != 1 || len(h.Fits) != 0 {
		t.Fatalf("%+v, %v", h, err)
	}
	if err := errors.Join(j.Learn("KEY_A", Fit{"25/s", limit.Lesson{Fits: 20}}, m.now()), j.Close()); err != nil {
		t.Fatal(err)
	}
	if _, h, err := Open(conf, m.now()); err != nil || len(h.Fits["KEY_A"]) != 1 || h.run.Version != version || len(h.Sends) < 18 {
		t.Errorf("%+v, %v", h, err)
	}
}

// The third version had neither weight nor money: what it says of tokens still holds, and what
// comes after it may say all, also that nothing was used.
func TestThirdVersion(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "third.journal"))
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{boot: "b"}
	conf := m.config(filepath.Join(t.TempDir(), "j"))
	if err := os.WriteFile(conf.Path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	admitted := limit.Cost{limit.Requests: 1, limit.Input: 100, limit.Output: 50, limit.Tokens: 150}
	want := []limit.Cost{admitted, {limit.Requests: 1, limit.Input: 90, limit.Output: 5, limit.Tokens: 95}, admitted, admitted, admitted, admitted}
	j, h, err := Open(conf, m.now())
	if got := costs(h); err != nil || !slices.Equal(got, want) {
		t.Fatalf("%v, %v, expected %v", got, err, want)
	}
	paid := limit.Cost{1, 2, 3, 4, 5, 6, 7, 8}
	for i, a := range []Answer{{Actual: &limit.Cost{limit.Requests: 1}}, {}, {Actual: &limit.Cost{limit.Requests: 1, limit.Weight: 20, limit.Money: 70}}} {
		n, err := j.Send(Send{Key: "k", Cost: paid}, m.now())
		a.Result, a.Counts = limit.Accepted, m.now().Add(time.Duration(i+1)*time.Second)
		if err := errors.Join(err, j.answer(n, a)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := j.Send(Send{Key: "k", Cost: paid}, m.now()); err != nil {
		t.Fatal(err)
	}
	want = append(want, limit.Cost{limit.Requests: 1}, paid, limit.Cost{limit.Requests: 1, limit.Weight: 20, limit.Money: 70}, paid)
	for range 2 { // the second reads what the first has compacted
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		if j, h, err = Open(conf, m.now()); err != nil || h.run.Version != version || !sameCosts(costs(h), want) {
			t.Errorf("%v, %v, expected %v", costs(h), err, want)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

// costs are those of the sends that are remembered.
func costs(h *History) (all []limit.Cost) {
	if h == nil {
		return nil
	}
	for _, s := range h.Sends {
		all = append(all, s.Cost)
	}
	return all
}

// sameCosts compares without regard to the order.
func sameCosts(a, b []limit.Cost) bool {
	sorted := func(all []limit.Cost) []limit.Cost {
		all = slices.Clone(all)
		slices.SortFunc(all, func(a, b limit.Cost) int { return slices.Compare(a[:], b[:]) })
		return all
	}
	return slices.Equal(sorted(a), sorted(b))
}

// The first version has only the wall clock, and has some facts only in its first line.
func TestFirstVersionsClock(t *testing.T) {
	at := func(d time.Duration) int64 { return epoch.Add(d).UnixNano() }
	for _, c := range []struct {
		name, text string
		ages       []time.Duration // of the sends
		held       time.Duration
	}{
		{"nothing but a hold", fmt.Sprintf("{\"run\":\"2027-01-15T08:00:00.000Z\"}\n{\"key\":\"A\",\"hold\":%d}\n", at(600*time.Second)), nil, 600 * time.Second},
		{"nothing at all", fmt.Sprintf("{\"key\":\"A\",\"hold\":%d}\n", at(600*time.Second)), nil, 600*time.Second + 24*time.Hour},
		{"set back by an hour between two sends", fmt.Sprintf("{\"run\":\"2027-01-15T08:00:00.000Z\"}\n{\"send\":1,\"key\":\"A\",\"at\":%d}\n{\"answer\":1,\"result\":\"accepted\",\"at\":%d}\n"+
			"{\"send\":2,\"key\":\"A\",\"at\":%d}\n{\"answer\":2,\"result\":\"accepted\",\"hold\":%d,\"at\":%d}\n", at(time.Hour), at(time.Hour), at(time.Minute), at(2*time.Minute), at(time.Minute)),
			[]time.Duration{0, -59 * time.Minute}, time.Minute},
	} {
		m := &machine{boot: "b", off: -24 * time.Hour}
		conf := m.config(filepath.Join(t.TempDir(), "j"))
		if err := os.WriteFile(conf.Path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, h, err := Open(conf, m.now())
		if err != nil {
			t.Fatal(err)
		}
		var ages []time.Duration
		for _, s := range h.Sends {
			ages = append(ages, m.now().Sub(time.Unix(0, s.Counts)))
		}
		if held := time.Unix(0, h.Holds["A"]).Sub(m.now()); held != c.held || !slices.Equal(ages, c.ages) {
			t.Errorf("%s: held for %v, ages %v; want %v, %v", c.name, held, ages, c.held, c.ages)
		}
	}
}

// A run that sends nothing still ages the earlier sends by its own time. The next run, which has no
// other clock, keeps that age.
func TestAgeIsKept(t *testing.T) {
	m := &machine{boot: "b"}
	conf := m.config(filepath.Join(t.TempDir(), "j"))
	j, _, err := Open(conf, m.now())
	if err == nil {
		_, err = j.Send(Send{ID: "a", Key: "A", Cost: limit.One}, m.now())
	}
	if err == nil {
		err = j.answer(1, Answer{Result: limit.Accepted, Counts: m.now()})
	}
	m.passed += time.Hour
	if err == nil {
		_, _, err = Open(conf, m.now())
	}
	m.boot = "other"
	m.passed += time.Minute
	_, h, oerr := Open(conf, m.now())
	if err != nil || oerr != nil || len(h.Sends) != 1 || m.now().Sub(time.Unix(0, h.Sends[0].Counts)) != time.Hour {
		t.Errorf("%+v, %v, %v", h, err, oerr)
	}
}
