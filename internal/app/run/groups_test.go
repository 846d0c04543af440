package run

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/meter"
	"github.com/paceline-go/paceline/internal/app/run/output"
	"github.com/paceline-go/paceline/internal/app/run/tally"
	"github.com/paceline-go/paceline/internal/testkit/fakeconn"
	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/internal/text/rate"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/pool"
	"github.com/paceline-go/paceline/ratetest/latency"
	"github.com/paceline-go/paceline/ratetest/llm"
)

// ofModel returns n prompts of a model, from p<from> on.
func ofModel(model string, from, n int) string {
	var b strings.Builder
	for i := from; i < from+n; i++ {
		fmt.Fprintf(&b, `{"custom_id":"p%d","method":"POST","url":"/v1/chat/completions","body":{"model":%q,"max_tokens":100,"messages":[{"role":"user","content":"x"}]}}`+"\n", i, model)
	}
	return b.String()
}

// If the provider has limits for each model, a file sorted by model takes as long as the longest of
// its models, and nothing is refused. Attempts in flight are bounded over all models. Otherwise all
// models share the limits.
func TestLLMEachModel(t *testing.T) {
	t.Parallel()
	sorted := ofModel("gpt-4o", 0, 75) + ofModel("gpt-4.1", 75, 75) + ofModel("gpt-4.1-2025-04-14", 150, 15)
	for _, c := range []struct {
		name        string
		of          string
		each        bool
		rpm         int64
		concurrency int
		keys        int
		want        time.Duration // by the plan, and so it is
		late        time.Duration // the first of a model goes alone, and then the last answer: a second each
	}{
		{"of each model", "openai", true, 30, 64, 1, 120 * time.Second, 3 * time.Second},
		{"two keys", "openai", true, 30, 64, 2, 30 * time.Second, 4 * time.Second},
		{"of the user's", "openai", false, 30, 64, 1, 270 * time.Second, 3 * time.Second},
		{"nobody knows", "", true, 30, 64, 1, 270 * time.Second, 3 * time.Second},
		{"what is in flight", "openai", true, 6000, 5, 1, 0, 36 * time.Second},
	} {
		if race.Enabled && c.name != "two keys" {
			continue // the same goroutines, a second each
		}
		t.Run(c.name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out.jsonl")
			synctest.Test(t, func(t *testing.T) {
				rate := minutely(c.rpm, limit.Requests, true)
				rate.EachModel = c.each
				v := &virtually{t: t, llm: format.LLMConfig{LimitsOf: c.of}, server: llm.Config{Limits: llm.Limits{Requests: c.rpm}, First: latency.Constant(time.Second)},
					config: Config{Out: out, Limits: []format.Rate{rate}, Queue: 10, Concurrency: c.concurrency}}
				for i := range c.keys {
					v.config.Keys = append(v.config.Keys, format.Key{Name: fmt.Sprint("K", i), Secret: fmt.Sprintf("s3cret-Of-9a7Kq-%d", i)})
				}
				v.config.Organizations = map[string]string{"K0": "a", "K1": "b"} // so that the plan knows
				v.run(sorted)
				v.once(165)
				if v.err != nil || v.report.Verdicts["accepted"] != 165 || len(v.report.Verdicts) != 1 {
					t.Errorf("%v; the server: %v", v.err, v.report.Verdicts)
				}
				planned := time.Duration(v.opened.Seconds * float64(time.Second))
				if planned != c.want || v.plan.Seconds != v.opened.Seconds || v.plan.EachModel != (c.each && c.of != "") {
					t.Errorf("the plan is %v, then %v, of each model: %v", time.Duration(v.plan.Seconds*float64(time.Second)), planned, v.plan.EachModel)
				}
				if v.took > planned+c.late || v.took < planned+c.late-3*time.Second || v.totals.Percent > 100.1 || v.totals.Keys[0].Percent > 100.1 {
					t.Errorf("it took %v of %v, %+v", v.took, planned, v.totals)
				}
			})
		})
	}
}

// Sends of an earlier run count in the limits of their model. If that run did not separate models,
// they count in the limits of all.
func TestLLMEachModelResumes(t *testing.T) {
	t.Parallel()
	input := ofModel("gpt-4o", 0, 50) + ofModel("gpt-4.1", 50, 50)
	for _, c := range []struct {
		name          string
		first, second bool // of each model
		want          time.Duration
	}{
		{"each, and each", true, true, 40 * time.Second},
		{"all, and each", false, true, 110 * time.Second},
		{"each, and all", true, false, 70 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out.jsonl")
			synctest.Test(t, func(t *testing.T) {
				l, err := llm.New(llm.Config{Limits: llm.Limits{Requests: 30}, First: latency.Constant(time.Second)})
				if err != nil {
					t.Fatal(err)
				}
				network := fakeconn.New()
				srv := &http.Server{Handler: l}
				go func() { _ = srv.Serve(network) }()
				rate := minutely(30, limit.Requests, true)
				v := &virtually{t: t, llm: format.LLMConfig{LimitsOf: "openai"}, config: Config{Out: out}}
				took := time.Duration(0)
				for i, each := range []bool{c.first, c.second} {
					rate.EachModel = each
					v.config.Limits = []format.Rate{rate}
					v.tamper = nil
					if i == 0 {
						v.tamper = func(r *Run) { time.AfterFunc(10*time.Second, r.Drain) }
					}
					v.send(network, input)
					took += v.took
					if text, err := os.ReadFile(output.JournalOf(out)); i == 0 && (err != nil || strings.Contains(string(text), `"A/gpt-4.1"`) != each) {
						t.Errorf("%v: the journal is\n%.2000s", err, text)
					}
				}
				v.once(100)
				_ = srv.Close()
				_ = l.Close()
				synctest.Wait()
				r := l.Report()
				t.Logf("%v; %v", took, r.Verdicts)
				if v.err != nil || r.Verdicts["accepted"] != 100 || len(r.Verdicts) != 1 || took < c.want-5*time.Second || took > c.want+8*time.Second {
					t.Errorf("%v; the server: %v, in %v", v.err, r.Verdicts, took)
				}
			})
		})
	}
}

// A key that is banned in one model's requests is not used for another model.
func TestLLMEachModelHearsOfBans(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out.jsonl")
	synctest.Test(t, func(t *testing.T) {
		rate := minutely(60, limit.Requests, true)
		rate.EachModel = true
		v := &virtually{t: t, llm: format.LLMConfig{LimitsOf: "openai"}, server: llm.Config{Limits: llm.Limits{Requests: 60}, Script: []string{"unpaid"}},
			config: Config{Out: out, Limits: []format.Rate{rate}, Concurrency: 1, Keys: []format.Key{{Name: "A", Secret: "s3cret-Of-9a7Kq-0"}, {Name: "B", Secret: "s3cret-Of-9a7Kq-1"}}}}
		v.run(ofModel("gpt-4o", 0, 10) + ofModel("gpt-4.1", 10, 10))
		v.once(20)
		if v.err != nil || v.totals.Done != 20 {
			t.Errorf("%v: %+v", v.err, v.totals)
		}
		for _, a := range v.report.Accounts {
			if a.Key == "key 1" && a.Accepted > 0 {
				t.Errorf("the banned key: %+v", a)
			}
		}
	})
}

// A host that goes down in several groups is reported once. It is back when it is back in the last
// group.
func TestHostsAreNewsOnce(t *testing.T) {
	h := newHosts(nil, nil)
	for i, c := range []struct{ down, want bool }{{true, true}, {true, false}, {false, false}, {false, true}, {true, true}, {false, true}} {
		if got := h.isNews("http://h", c.down); got != c.want {
			t.Errorf("%d: %v, expected %v", i, got, c.want)
		}
	}
}

// A name in the journal is that of a key, or of a key in the limits of a model.
func TestGroupKey(t *testing.T) {
	r := &Run{c: Config{Keys: []format.Key{{Name: "A"}, {Name: "AB"}}}}
	for _, c := range []struct {
		model, name string
		key         int
		ours        bool
	}{
		{"", "A", 0, true}, {"", "AB", 1, true}, {"", "AB/m", 1, true}, {"", "C", 0, false},
		{"m", "A", 0, true}, {"m", "AB/m", 1, true}, {"m", "A/n", 0, false}, {"m", "A/m/m", 0, false}, {"m", "A/", 0, false},
		{"meta/m", "AB/meta/m", 1, true},
	} {
		if key, ours := (&group{r: r, model: c.model}).key(c.name); key != c.key || ours != c.ours {
			t.Errorf("%q in %q: %d, %v", c.name, c.model, key, ours)
		}
	}
}

// Limits of a named model are its own, and it goes beside the others. The others share the rest, or
// have it each if the provider documents that. A later run counts the sends in the same limits.
func TestLLMLimitsOfAModel(t *testing.T) {
	t.Parallel()
	input := ofModel("gpt-4o-2024-08-06", 0, 75) + ofModel("gpt-4.1", 75, 25) + ofModel("o3", 100, 20)
	for _, c := range []struct {
		name, of string
		stop     time.Duration // of a first run
		want     time.Duration
	}{
		{"the others together", "", 0, 120 * time.Second},
		{"in two runs", "", 30 * time.Second, 120 * time.Second},
		{"each of the others", "openai", 0, 90 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out.jsonl")
			synctest.Test(t, func(t *testing.T) {
				l, err := llm.New(llm.Config{Limits: llm.Limits{Requests: 30}, First: latency.Constant(time.Second)})
				if err != nil {
					t.Fatal(err)
				}
				network := fakeconn.New()
				srv := &http.Server{Handler: l}
				go func() { _ = srv.Serve(network) }()
				others, named := minutely(15, limit.Requests, true), minutely(30, limit.Requests, true)
				others.EachModel, named.Model = c.of != "", "gpt-4o"
				v := &virtually{t: t, llm: format.LLMConfig{LimitsOf: c.of}, config: Config{Out: out, Limits: []format.Rate{others, named}}}
				took := time.Duration(0)
				if c.stop > 0 {
					v.tamper = func(r *Run) { time.AfterFunc(c.stop, r.Drain) }
					v.send(network, input)
					took, v.tamper = v.took, nil
				}
				v.send(network, input)
				took += v.took
				v.once(120)
				_ = srv.Close()
				_ = l.Close()
				synctest.Wait()
				r := l.Report()
				if v.err != nil || r.Verdicts["accepted"] != 120 || len(r.Verdicts) != 1 || took < c.want-time.Second || took > c.want+8*time.Second {
					t.Errorf("%v; the server: %v, in %v, want %v", v.err, r.Verdicts, took, c.want)
				}
				if planned := time.Duration(v.plan.Seconds * float64(time.Second)); c.stop == 0 && planned != c.want {
					t.Errorf("the plan is %v: %+v", planned, v.plan.Limits)
				}
				if v.totals.Percent > 100.1 || v.totals.Keys[0].Percent > 100.1 {
					t.Errorf("%+v", v.totals)
				}
			})
		})
	}
}

// Sends count in these limits if an earlier run separated models in another way.
func TestGroupCounts(t *testing.T) {
	own := format.Rate{N: 1, Per: time.Minute, Model: "m"}
	r := &Run{c: Config{Limits: []format.Rate{{N: 2, Per: time.Minute}, own}}}
	for _, c := range []struct {
		model, sent string
		want        bool
	}{
		{"m", "m", true}, {"m", "n", false}, {"m", tally.OtherModels, false},
		{tally.OtherModels, tally.OtherModels, true}, {tally.OtherModels, "n", true}, {tally.OtherModels, "m", false},
		{"n", tally.OtherModels, true}, {"n", "n", true}, {"n", "m", false}, {"", "m", true}, {"", tally.OtherModels, true},
	} {
		g := &group{r: r, model: c.model}
		g.begin(rate.OfModel(r.c.Limits, c.model))
		if got := g.counts(c.sent); got != c.want {
			t.Errorf("%q in the limits of %q: %v", c.sent, c.model, got)
		}
	}
}

// Once the Pool of a group fails, the other groups send no more, and the run ends with the error.
func TestGroupsEndTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all pools
		for range 3 {
			send := func(context.Context, pool.Attempt) pool.Answer { return pool.Answer{} }
			p, err := pool.New(pool.Config{Keys: []pool.Key{{}}, Send: send})
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, &group{pool: p})
		}
		broken := all[1].pool
		broken.Drain()
		if err := broken.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := all.run(ctx); err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "called twice") {
			t.Errorf("the run ends with %v", err)
		}
	})
}

// Models have limits of their own where the provider counts so, and the user names no common one. Nonces and gaps are
// of the key, so they leave one line for all models.
func TestWhatDividesByModel(t *testing.T) {
	own, err := meter.New(meter.Config{Host: "api.openai.com"})
	if err != nil {
		t.Fatal(err)
	}
	other, err := meter.New(meter.Config{Host: "h"})
	if err != nil {
		t.Fatal(err)
	}
	minutely := format.Rate{N: 60, Per: time.Minute}
	each, ofM := minutely, minutely
	each.EachModel, ofM.Model = true, "m"
	for name, c := range map[string]struct {
		c          Config
		each, some bool
	}{
		"each of the provider's": {Config{Meter: own, Limits: []format.Rate{each}}, true, true},
		"a common one":           {Config{Meter: own, Limits: []format.Rate{each, minutely}}, false, false},
		"one that is named":      {Config{Meter: other, Limits: []format.Rate{minutely, ofM}}, false, true},
		"another provider":       {Config{Meter: other, Limits: []format.Rate{minutely}}, false, false},
		"nonces":                 {Config{Meter: own, Limits: []format.Rate{each}, nonces: true}, false, false},
		"a gap":                  {Config{Meter: own, Limits: []format.Rate{each}, Gap: time.Second}, false, false},
		"no limit":               {Config{Meter: own}, false, false},
		"no model":               {Config{Limits: []format.Rate{each}}, false, false},
	} {
		if each, some := c.c.divides(); each != c.each || some != c.some {
			t.Errorf("%s: each %v, some %v", name, each, some)
		}
	}
}

// The order in which models and limits are written changes nothing: neither the order of the groups, nor the words that
// runs compare before they share limits.
func TestOrderOfModelsIsNoDifference(t *testing.T) {
	m, err := meter.New(meter.Config{Host: "h"})
	if err != nil {
		t.Fatal(err)
	}
	input, limits := map[string]*PlanModel{}, []format.Rate{{N: 1, Per: time.Second}}
	names := strings.Split("h d b f a g c e", " ")
	for _, name := range names {
		input[name] = &PlanModel{Model: name}
		limits = append(limits, format.Rate{N: 1, Per: time.Second, Model: name})
	}
	c := Config{Meter: m, Limits: limits}
	if got, want := c.Division(), "with limits of a, b, c, d, e, f, g, h and of all others"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	p := &planning{c: &c, models: input, again: true}
	if got, _ := p.eachModel(false); !slices.IsSorted(got) || len(got) != len(names) {
		t.Errorf("groups of %q, want %q in order", got, names)
	}
}
