package run

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/observe"
	"github.com/paceline-go/paceline/ratetest/latency"
	"github.com/paceline-go/paceline/ratetest/llm"
	"github.com/paceline-go/paceline/transport"
)

// A snapshot after a run has the figures of its totals, in total and for each model. During the run
// more requests wait than later.
func TestSources(t *testing.T) {
	t.Parallel()
	for _, each := range []bool{false, true} {
		out := filepath.Join(t.TempDir(), "out.jsonl")
		synctest.Test(t, func(t *testing.T) {
			rate := minutely(60, limit.Requests, true)
			rate.EachModel = each
			var r *Run
			var waiting atomic.Int64
			v := &virtually{t: t, llm: format.LLMConfig{LimitsOf: "openai"}, server: llm.Config{Limits: llm.Limits{Requests: 60}, First: latency.Constant(time.Second)},
				config: Config{Out: out, Limits: []format.Rate{rate}, Prices: Prices{Input: 1, Output: 2}, Keys: []format.Key{{Name: "K", Secret: "s3cret-Of-9a7Kq-1"}}}}
			v.tamper = func(x *Run) {
				r = x
				time.AfterFunc(10*time.Second, func() {
					for _, s := range x.Sources() {
						waiting.Add(int64(s.Snapshot().Waiting))
					}
				})
			}
			v.run(ofModel("gpt-4o", 0, 40) + ofModel("gpt-4.1", 40, 80))
			names := []string{}
			var input, output, money, accepted int64
			for _, source := range r.Sources() {
				s := source.Snapshot()
				names = append(names, s.Name)
				input, output, money, accepted = input+s.Used.Input, output+s.Used.Output, money+s.Used.Money, accepted+s.Accepted
				if m := v.totals.Models; s.Name != "" && (s.Name != m[0].Model || s.Used.Input != m[0].InputTokens || s.Used.Output != m[0].OutputTokens) &&
					(s.Name != m[1].Model || s.Used.Input != m[1].InputTokens || s.Used.Output != m[1].OutputTokens) {
					t.Errorf("%s used %+v, the totals say %+v", s.Name, s.Used, m)
				}
				if data, err := json.Marshal(s); err != nil || strings.Contains(string(data), "s3cret") {
					t.Errorf("%v: %s", err, data)
				}
			}
			if want := map[bool]string{false: "", true: "gpt-4.1 gpt-4o"}[each]; strings.Join(names, " ") != want {
				t.Errorf("the sources are %q", names)
			}
			if input != v.totals.InputTokens || output != v.totals.OutputTokens || input == 0 || accepted != 120 {
				t.Errorf("in all %d tokens in, %d out, %d accepted; the totals are %+v", input, output, accepted, v.totals)
			}
			if usd := *v.totals.Models[0].USD + *v.totals.Models[1].USD; float64(money)/1e6 > usd || float64(money)/1e6 < usd-3e-6 || usd == 0 {
				t.Errorf("of each %v: in all %d of money; the totals say %v", each, money, usd)
			}
			if waiting.Load() == 0 {
				t.Error("nobody waited")
			}
		})
	}
}

// The next look at a group without a head comes after a fiftieth of the time for which there was none. A run that waits
// for its input, or for answers, wakes the less the longer that takes.
func TestLooksRarelyWithoutAHead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.config.Limits = []format.Rate{minutely(1, limit.Requests, false)}
		r := b.made(b.config)
		if err := r.Open(); err != nil {
			t.Fatal(err)
		}
		g := r.groups[0]
		if next := g.look(); next != 0 {
			t.Errorf("the first look is followed by one after %v", next)
		}
		for _, idle := range []time.Duration{time.Second, 49 * time.Second} {
			time.Sleep(idle)
			if next, want := g.look(), time.Since(g.headAt)/50; next != want {
				t.Errorf("after %v: %v until the next look, want %v", time.Since(g.headAt), next, want)
			}
		}
		if since := time.Since(g.headAt); since != 50*time.Second {
			t.Errorf("the last head was %v ago", since)
		}
		if _, err := r.Close(); err != nil {
			t.Error(err)
		}
	})
}

// The limits of a Base are among what the page shows, under its name.
func TestSourcesOfABase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newInTime(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		byServers(perSecond(5), perSecond(3))(v)
		v.config.Beside = []observe.Source{observe.NameSource("things", v.config.Base.(*transport.Transport))}
		var all []observe.Source
		v.opened = func(r *Run) { all = r.Sources() }
		v.run(requests(8, "http://server/"))
		if len(all) != 2 {
			t.Fatalf("%d sources", len(all))
		}
		s := all[1].Snapshot()
		if len(s.Limits) != 2 || s.Limits[0].Target+s.Limits[1].Target != "server0server1" {
			t.Errorf("%+v", s.Limits)
		}
	})
}
