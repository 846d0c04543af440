package latency_test

import (
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/ratetest/latency"
)

// Laws at their edges: without any randomness left, and with figures as long as Longest. No latency
// is beyond Longest. A mean beyond Longest is none.
func TestLawsAtTheirEdges(t *testing.T) {
	const longest, none = latency.Longest, time.Duration(-1)
	for text, want := range map[string]struct{ mean, min, max time.Duration }{
		"bimodal:1s,3s@0":                      {time.Second, time.Second, time.Second},
		"bimodal:1s,3s@1":                      {3 * time.Second, 3 * time.Second, 3 * time.Second},
		"bimodal:3s,1s@0":                      {3 * time.Second, 3 * time.Second, 3 * time.Second},
		"bimodal:3s,1s@1":                      {time.Second, time.Second, time.Second},
		"bimodal:3s,1s@0.25":                   {2500 * ms, time.Second, 3 * time.Second},
		"exponential:0":                        {0, 0, 0},
		"exponential:0+5ms":                    {5 * ms, 5 * ms, 5 * ms},
		"exponential:1ns":                      {1, 0, none},
		"lognormal:7ms,p99=7ms":                {7 * ms, 7 * ms, 7 * ms},
		"lognormal:1ns,p99=1ns":                {1, 1, 1},
		"uniform:5ms-5ms":                      {5 * ms, 5 * ms, 5 * ms},
		"pareto:1ns,2":                         {2, 1, none},
		"pareto:4s,5":                          {5 * time.Second, 4 * time.Second, none},
		"constant:2305843009213693951ns":       {longest - 1, longest - 1, longest - 1},
		"constant:2305843009213693952ns":       {longest, longest, longest},
		"exponential:2305843009213693952ns":    {longest, 0, none},
		"exponential:2305843009213693952ns+1s": {none, time.Second, none},
		"uniform:0-2305843009213693952ns":      {longest / 2, 0, longest},
	} {
		l, err := latency.Parse(text, nil)
		if err != nil {
			t.Error(err)
			continue
		}
		mean, ok := l.Mean()
		if !ok {
			mean = none
		}
		most, bounded := l.Max()
		if !bounded {
			most = none
		}
		if mean != want.mean || l.Min() != want.min || most != want.max {
			t.Errorf("%s: a mean of %v, from %v to %v; want %v, from %v to %v", text, mean, l.Min(), most, want.mean, want.min, want.max)
		}
		if d := l.Draw(rand.New(rand.NewPCG(1, 1))); d < want.min || want.max != none && d > want.max || d > longest {
			t.Errorf("%s: drew %v", text, d)
		}
	}
}

// Parse checks every figure of a law, the second like the first. Figures beyond Longest, below 0,
// or that are no figures, are refused by name.
func TestParseLooksAtEveryFigure(t *testing.T) {
	const over = "2305843009213693953ns"
	for text, why := range map[string]string{
		"constant:" + over: "latency 640511h56m49.213693953s", "uniform:0-" + over: "largest 640511h56m49.213693953s", "uniform:" + over + "-" + over: "smallest 640511h56m49.213693953s",
		"exponential:" + over: "mean 640511h56m49.213693953s", "exponential:1s+" + over: "floor 640511h56m49.213693953s", "exponential:x": `"x"`, "exponential:1s+x": `"x"`,
		"lognormal:1s,p99=" + over: "p99 640511h56m49.213693953s", "lognormal:0,p99=1s": "median 0s", "lognormal:x,p99=1s": `"x"`, "lognormal:1s,p99=x": `"x"`,
		"bimodal:" + over + ",0@0.5": "first 640511h56m49.213693953s", "bimodal:0," + over + "@0.5": "second 640511h56m49.213693953s", "bimodal:0,1s@-0.1": "probability -0.1",
		"bimodal:x,1s@0.1": `"x"`, "bimodal:1s,x@0.1": `"x"`, "bimodal:0,1s@x": `"x" is not a number`, "bimodal:0@1": `no ","`,
		"pareto:" + over + ",2": "scale 640511h56m49.213693953s", "pareto:0,2": "scale 0s", "pareto:1s,x": `"x" is not a number`, "pareto:x,2": `"x"`,
		"pareto:1s,-1": "exponent -1", "pareto:1s,+Inf": "exponent +Inf", "pareto:1s,-Inf": "exponent -Inf", "pareto:1s,NaN": "exponent NaN",
		"constant:x": `"x"`, "constant:": `""`, "constant:/5": `"/5" is not a duration of 0`, "constant::5": `":5" is not a duration of 0`,
		"uniform:x-1s": `"x"`, "uniform:1s-x": `"x"`,
	} {
		if _, err := latency.Parse(text, nil); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: want %q: %v", text, why, err)
		}
	}
	for text, want := range map[string]time.Duration{"constant:.5s": 500 * ms, "constant:0ms": 0, "constant:9ms": 9 * ms} {
		if l, err := latency.Parse(text, nil); err != nil || l.Min() != want {
			t.Errorf("%s: %v, %v", text, l, err)
		}
	}
}

// A recording is rounded to the nanosecond, and may be as long as any law.
func TestRecordingAtItsEdges(t *testing.T) {
	read := func(text string) (latency.Law, error) {
		open := func(string) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }
		return latency.Parse("recorded:x", open)
	}
	l, err := read("0.0\n1ns\n2ns\n2305843009213.693952\n")
	if most, ok := l.Max(); err != nil || !ok || most != latency.Longest || l.Min() != 0 {
		t.Errorf("from %v to %v: %v", l.Min(), most, err)
	}
	if l, err = latency.Recorded("x", []time.Duration{0, 1, 1}); err != nil {
		t.Fatal(err)
	} else if mean, ok := l.Mean(); mean != 1 || !ok {
		t.Errorf("a mean of %v", mean)
	}
	for _, bad := range []string{"2305843009214", "-1", "-1ns", "2305843009213693953ns", "NaN", "+Inf"} {
		if _, err := read("5\n\n" + bad); err == nil || !strings.Contains(err.Error(), "x:3: ") {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if _, err := latency.Recorded("x", []time.Duration{1, -1}); err == nil || !strings.Contains(err.Error(), "number 2") {
		t.Error(err)
	}
}

// zeros is a source of the smallest random numbers.
type zeros struct{}

func (zeros) Uint64() uint64 { return 0 }

// A latency without probability never happens, whatever the draw.
func TestBimodalOfNoProbability(t *testing.T) {
	if d := latency.Bimodal(time.Second, time.Hour, 0).Draw(rand.New(zeros{})); d != time.Second {
		t.Errorf("drew %v", d)
	}
}
