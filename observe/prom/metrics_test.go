package prom_test

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/observe"
	"github.com/paceline-go/paceline/observe/prom"
)

// fixed is a Source that always says the same.
type fixed observe.Snapshot

func (f *fixed) Snapshot() observe.Snapshot { return observe.Snapshot(*f) }

// scrape returns what is served, by series.
func scrape(t *testing.T, sources ...observe.Source) (text string, series map[string]float64) {
	t.Helper()
	return scrapeOf(t, prom.New(sources...))
}

func scrapeOf(t *testing.T, c *prom.Collector) (text string, series map[string]float64) {
	t.Helper()
	w := httptest.NewRecorder()
	c.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	b, err := io.ReadAll(w.Body)
	if err != nil || w.Code != 200 {
		t.Fatalf("%d %v: %s", w.Code, err, b)
	}
	series = map[string]float64{}
	for line := range strings.Lines(string(b)) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		i := strings.LastIndexByte(line, ' ')
		var v float64
		if _, err := fmt.Sscan(line[i+1:], &v); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if _, ok := series[line[:i]]; ok {
			t.Fatalf("twice: %s", line)
		}
		series[line[:i]] = v
	}
	return string(b), series
}

func counted(n int64) observe.Times {
	return observe.Times{Count: n, Sum: time.Duration(n) * time.Second, Upto: []int64{n / 2, n}}
}

// All that a Snapshot has is there under its name, and in base units.
func TestSeries(t *testing.T) {
	now := time.Now()
	_, got := scrape(t, &fixed{
		Name: "s", At: now, Resent: 3, Pauses: 2, Bounds: []time.Duration{time.Second, 2 * time.Second},
		Limits: []observe.LimitState{{
			Whose: observe.Whose{Host: "h", Key: "k", Model: "m"}, Name: "requests", Unit: "requests", Used: 5, Allowed: 10, Window: time.Minute, PerWindow: 10, Total: 70, Share: 0.4, Waiting: 2, Fits: 8, Store: observe.StoreAway,
		}, {Name: "concurrency", Unit: "in flight", Used: 1, Allowed: 4}},
		Clients: []observe.ClientState{{Name: "c", Waiting: 2, InFlight: 1, LongestWait: 1500 * time.Millisecond, LastGoes: now.Add(75 * time.Second), Counts: observe.Counts{
			Sent: 9, Accepted: 4, Limited: 1, Failed: 2, Unknown: 1, Never: 6, Late: 7, Full: 8, Cancelled: 11, Used: observe.Amounts{Input: 100, Output: 20, Tokens: 120, Money: 1_500_000},
		}}},
		Keys:     []observe.KeyState{{Host: "h", Name: "k", State: observe.KeyBanned}},
		Paused:   []observe.PauseState{{Whose: observe.Whose{Host: "h", Key: "k"}, Until: now.Add(90 * time.Second)}, {Whose: observe.Whose{Host: "away"}, Down: true}},
		Waits:    []observe.WaitTimes{{Limit: "", Client: "c", Times: counted(6)}, {Limit: "requests", Client: "c", Times: counted(2)}},
		Upstream: []observe.UpstreamTimes{{Host: "h", Times: counted(8)}},
		Frozen:   observe.FrozenState{Partitions: 3, Bytes: 750, Most: 1000, Clients: 2, ClientBytes: 500, ClientMost: 2000, Refused: 4},
	})
	const limit = `client="",host="h",key="k",limit="requests",model="m",route="",source="s",unit="requests",window="1m0s"`
	for series, want := range map[string]float64{
		`paceline_requests_total{client="c",result="accepted",source="s"}`: 4, `paceline_requests_total{client="c",result="limited",source="s"}`: 1,
		`paceline_requests_total{client="c",result="failed",source="s"}`: 2, `paceline_requests_total{client="c",result="unknown",source="s"}`: 1,
		`paceline_requests_total{client="c",result="never",source="s"}`: 6, `paceline_requests_total{client="c",result="late",source="s"}`: 7,
		`paceline_requests_total{client="c",result="full",source="s"}`: 8, `paceline_requests_total{client="c",result="cancelled",source="s"}`: 11,
		`paceline_sent_total{client="c",source="s"}`: 9, `paceline_resent_total{source="s"}`: 3, `paceline_pauses_total{source="s"}`: 2,
		`paceline_waiting{client="c",source="s"}`: 2, `paceline_in_flight{client="c",source="s"}`: 1, `paceline_longest_wait_seconds{client="c",source="s"}`: 1.5,
		`paceline_last_goes_seconds{client="c",source="s"}`:         75,
		`paceline_tokens_total{client="c",kind="input",source="s"}`: 100, `paceline_tokens_total{client="c",kind="output",source="s"}`: 20,
		`paceline_tokens_total{client="c",kind="other",source="s"}`: 0, `paceline_money_total{client="c",source="s"}`: 1.5,
		`paceline_limit_used{` + limit + `}`: 5, `paceline_limit_ceiling{` + limit + `}`: 10, `paceline_limit_per_window{` + limit + `}`: 10, `paceline_limit_fits{` + limit + `}`: 8,
		`paceline_share_state{` + strings.Replace(limit, "unit=", `state="away",unit=`, 1) + `}`: 1, `paceline_share_state{` + strings.Replace(limit, "unit=", `state="ok",unit=`, 1) + `}`: 0,
		`paceline_limit_window_seconds{` + limit + `}`: 60, `paceline_limit_share{` + limit + `}`: 0.4, `paceline_limit_counted_total{` + limit + `}`: 70, `paceline_limit_waiting{` + limit + `}`: 2,
		`paceline_limit_used{client="",host="",key="",limit="concurrency",model="",route="",source="s",unit="in flight",window=""}`: 1,
		`paceline_paused_seconds{client="",host="h",key="k",model="",route="",source="s"}`:                                          90,
		`paceline_host_down{host="away",source="s"}`:                                                                                1, `paceline_host_down{host="h",source="s"}`: 0,
		`paceline_key_state{host="h",key="k",source="s",state="banned"}`: 1, `paceline_key_state{host="h",key="k",source="s",state="ok"}`: 0,
		`paceline_wait_seconds_bucket{client="c",limit="none",source="s",le="1"}`: 3, `paceline_wait_seconds_bucket{client="c",limit="none",source="s",le="+Inf"}`: 6,
		`paceline_wait_seconds_sum{client="c",limit="requests",source="s"}`: 2, `paceline_wait_seconds_count{client="c",limit="requests",source="s"}`: 2,
		`paceline_frozen{source="s",what="partitions"}`: 3, `paceline_frozen_bytes{source="s",what="partitions"}`: 750, `paceline_frozen_bytes_max{source="s",what="partitions"}`: 1000,
		`paceline_frozen{source="s",what="clients"}`: 2, `paceline_frozen_bytes{source="s",what="clients"}`: 500, `paceline_frozen_bytes_max{source="s",what="clients"}`: 2000,
		`paceline_no_room_total{source="s"}`: 4, `paceline_upstream_seconds_bucket{host="h",source="s",le="2"}`: 8, `paceline_upstream_seconds_count{host="h",source="s"}`: 8,
	} {
		if v, ok := got[series]; !ok || math.Abs(v-want) > 1e-9 {
			t.Errorf("%s is %v (%v), want %v", series, v, ok, want)
		}
	}
}

// New sources are there, removed ones are not. A source that stays keeps its labels, and two of one
// name differ.
func TestLive(t *testing.T) {
	of := func(name, client string, sent int64) observe.Source {
		return &fixed{Name: name, Clients: []observe.ClientState{{Name: client, Counts: observe.Counts{Sent: sent}}}}
	}
	now := []observe.Source{of("a", "x", 1)}
	c := prom.Live(func() []observe.Source { return now })
	has := func(want ...string) {
		t.Helper()
		_, series := scrapeOf(t, c)
		n := 0
		for s := range series {
			if strings.HasPrefix(s, "paceline_sent_total") {
				n++
			}
		}
		for _, s := range want {
			if _, ok := series[`paceline_sent_total{`+s+`}`]; !ok || n != len(want) {
				t.Errorf("of %v, %s is there: %v", series, s, ok)
			}
		}
	}
	has(`client="x",source="a"`)
	now = []observe.Source{of("b", "y", 5), of("a", "x", 2)}
	has(`client="x",source="a"`, `client="y",source="b"`)
	now = []observe.Source{of("b", "y", 6), of("b", "y", 1)}
	has(`client="y",source="b"`, `client="y",source="b2"`)
	now = nil
	has()
	// 100 names have their own series, and a name keeps its series although others have come
	// meanwhile.
	first := of("a", "first", 1)
	now = []observe.Source{first}
	has(`client="first",source="a"`)
	many := &fixed{Name: "a"}
	for i := range 200 {
		many.Clients = append(many.Clients, observe.ClientState{Name: fmt.Sprint(i)})
	}
	now = []observe.Source{many}
	scrapeOf(t, c)
	now = []observe.Source{first}
	has(`client="first",source="a"`)
}

// However many names there are and however long, there are only so many series, nothing is lost, and no counter ever shrinks.
func TestLabelsAreBounded(t *testing.T) {
	race.Without(t) // one call after another
	s := &fixed{Name: strings.Repeat("n", 500), Bounds: []time.Duration{time.Second, 2 * time.Second}}
	grow := func(from, to int) {
		for i := from; i < to; i++ {
			name := fmt.Sprintf("%s\xff\n%d", strings.Repeat("é", 50), i)
			c := observe.ClientState{Name: name, Counts: observe.Counts{Sent: 2, Accepted: 2}}
			s.Clients = append([]observe.ClientState{c}, s.Clients...)
			s.Limits = append([]observe.LimitState{{Whose: observe.Whose{Host: name, Route: name}, Name: name, Used: 1, Allowed: 2, Total: 3}}, s.Limits...)
			s.Keys = append([]observe.KeyState{{Host: name, Name: name, State: observe.KeyOK}}, s.Keys...)
			s.Paused = append(s.Paused, observe.PauseState{Whose: observe.Whose{Host: name, Key: name, Model: name, Route: name, Client: name}})
			s.Waits = append(s.Waits, observe.WaitTimes{Limit: name, Client: name, Times: counted(2)})
			s.Upstream = append(s.Upstream, observe.UpstreamTimes{Host: name, Times: counted(2)})
		}
	}
	grow(0, 60)
	collector := prom.New(s)
	read := func() map[string]float64 {
		r := prometheus.NewPedanticRegistry()
		r.MustRegister(collector)
		families, err := r.Gather()
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]float64{}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				id := f.GetName() + fmt.Sprint(m.GetLabel())
				for _, l := range m.GetLabel() {
					if len(l.GetValue()) > 100 {
						t.Fatalf("a value of %d bytes: %s", len(l.GetValue()), id)
					}
				}
				switch {
				case m.Counter != nil:
					all[id] = m.Counter.GetValue()
				case m.Histogram != nil:
					all[id] = float64(m.Histogram.GetSampleCount())
				default:
					all[id] = 0
				}
			}
		}
		return all
	}
	before := read()
	grow(60, 2000)
	after := read()
	var sent, counted float64
	for id, v := range before {
		if after[id] < v {
			t.Errorf("%s was %v and is %v", id, v, after[id])
		}
	}
	for id, v := range after {
		if strings.HasPrefix(id, "paceline_sent_total") {
			sent += v
		}
		if strings.HasPrefix(id, "paceline_limit_counted_total") {
			counted += v
		}
	}
	if sent != 4000 || counted != 6000 || len(after) > 15_000 {
		t.Errorf("%v were sent and %v counted, in %d series", sent, counted, len(after))
	}
	if again := read(); len(again) != len(after) {
		t.Errorf("%d series, and then %d", len(after), len(again))
	}
}

// Sources without a name, and limits of the same kind and owner, have different labels all the
// same.
func TestNothingIsThereTwice(t *testing.T) {
	gate := func() *paceline.Gate {
		return paceline.NewGate(limit.NewAll(limit.MustRolling(5, time.Second), limit.MustRolling(9, time.Second), limit.MustRolling(100, time.Minute)))
	}
	_, got := scrape(t, gate(), gate(), observe.NameSource("a", gate()), observe.NameSource("a", gate()))
	n := 0
	for id, v := range got {
		if strings.HasPrefix(id, "paceline_limit_ceiling") && v == 9 {
			n++
		}
	}
	if n != 4 {
		t.Errorf("%d of 4 limits of 9 are there", n)
	}
}

// The numbers of a Gate are those of its Stats, and two scrapes at once do no harm.
func TestGate(t *testing.T) {
	g := paceline.NewGate(limit.MustRolling(100, time.Minute))
	for i := range 10 {
		p, err := g.Wait(t.Context(), limit.One)
		if err != nil {
			t.Fatal(err)
		}
		p.Settle(limit.Outcome{Result: []limit.Result{limit.Accepted, limit.Limited}[i%2]})
	}
	h := prom.Handler(g)
	done := make(chan error)
	for range 8 {
		go func() {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
			if w.Code != 200 || !strings.Contains(w.Body.String(), `paceline_requests_total{client="",result="limited",source=""} 5`) {
				done <- errors.New(w.Body.String())
				return
			}
			done <- nil
		}()
	}
	for range 8 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// The names in the alert rules and in the page of the documentation exist.
func TestNamesInUse(t *testing.T) {
	names := map[string]bool{}
	descs := make(chan *prometheus.Desc, 100)
	prom.New().Describe(descs)
	close(descs)
	for d := range descs {
		names[regexp.MustCompile(`fqName: "([a-z_]+)"`).FindStringSubmatch(d.String())[1]] = true
	}
	names["paceline_config_last_reload_successful"] = true // of paceline proxy alone
	told := map[string]bool{"paceline_config_last_reload_successful": true}
	for _, file := range []string{"../../deploy/alerts.yaml", "../../docs/metrics.md"} {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range regexp.MustCompile(`paceline_[a-z_]+[a-z]`).FindAllString(string(b), -1) {
			for _, end := range []string{"_bucket", "_sum", "_count"} {
				name = strings.TrimSuffix(name, end)
			}
			if !names[name] {
				t.Errorf("%s speaks of %s, which does not exist", file, name)
			}
			if strings.HasSuffix(file, ".md") {
				told[name] = true
			}
		}
	}
	for name := range names {
		if !told[name] {
			t.Errorf("docs/metrics.md says nothing of %s", name)
		}
	}
}
