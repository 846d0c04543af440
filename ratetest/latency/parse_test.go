package latency_test

import (
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/ratetest/latency"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		text string
		want latency.Law
		name string
	}{
		{"constant:10ms", latency.Constant(10 * ms), "constant:10ms"},
		{"constant:0", latency.Law{}, "constant:0"},
		{"constant:60s", latency.Constant(time.Minute), "constant:1m"},
		{"constant:1h", latency.Constant(time.Hour), "constant:1h"},
		{"uniform:0-50ms", latency.Uniform(0, 50*ms), "uniform:0-50ms"},
		{"uniform:150-250ms", latency.Uniform(150*ms, 250*ms), "uniform:150ms-250ms"},
		{"uniform:1.5ms-1s", latency.Uniform(1500*time.Microsecond, time.Second), "uniform:1.5ms-1s"},
		{"exponential:20ms", latency.Exponential(20*ms, 0), "exponential:20ms"},
		{"exponential:20ms+5ms", latency.Exponential(20*ms, 5*ms), "exponential:20ms+5ms"},
		{"lognormal:10ms,p99=100ms", latency.Lognormal(10*ms, 100*ms), "lognormal:10ms,p99=100ms"},
		{"bimodal:0ms,3s@0.1", latency.Bimodal(0, 3*time.Second, 0.1), "bimodal:0,3s@0.1"},
		{"pareto:5ms,1.1", latency.Pareto(5*ms, 1.1), "pareto:5ms,1.1"},
	} {
		got, err := latency.Parse(c.text, nil)
		if err != nil || got != c.want || got.String() != c.name {
			t.Errorf("%s: %v, %v; want %s", c.text, got, err, c.name)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, c := range []struct{ text, why string }{
		{"", "is no law"},
		{"50ms", "is no law"},
		{"unifrom:0-50ms", `no law is called "unifrom"`},
		{"uniform:50ms", `no "-"`},
		{"uniform:0-50", `"50" is not a duration`},
		{"uniform:50ms-0", "larger"},
		{"uniform:0--5ms", `"-5ms"`},
		{"constant:-5ms", `"-5ms"`},
		{"constant:2000000h", "is not from 0"},
		{"exponential:20ms++5ms", `"+5ms"`},
		{"lognormal:10ms,100ms", "p99="},
		{"lognormal:10ms,p99=5ms", "median 10ms"},
		{"bimodal:0,3s", "probability"},
		{"bimodal:0,3s@1.1", "1.1"},
		{"bimodal:0,3s@NaN", "NaN"},
		{"pareto:5ms", "exponent"},
		{"pareto:5ms,0", "exponent 0"},
		{"recorded:", "names no file"},
	} {
		_, err := latency.Parse(c.text, nil)
		if err == nil {
			t.Errorf("%q was accepted", c.text)
			continue
		}
		for _, part := range []string{c.text, c.why, latency.Forms} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q: the error does not say %q: %v", c.text, part, err)
			}
		}
	}
	if _, err := latency.Parse("recorded:rtt.txt", nil); err == nil || !strings.Contains(err.Error(), "rtt.txt") {
		t.Errorf("Parse opened a file: %v", err)
	}
}

func TestReadRecording(t *testing.T) {
	open := func(text string) func(string) (io.ReadCloser, error) {
		return func(name string) (io.ReadCloser, error) {
			if name != "rtt.txt" {
				return nil, errors.New("no such file")
			}
			return io.NopCloser(strings.NewReader(text)), nil
		}
	}
	for _, c := range []struct {
		text           string
		mean, min, max time.Duration
		err            string
	}{
		{"10ms\n20.5\n\n# half a second\n  500ms\r\n", 176833333, 10 * ms, 500 * ms, ""},
		{"0", 0, 0, 0, ""},
		{"", 0, 0, 0, "holds no latency"},
		{"1\n2\nx12\n", 0, 0, 0, `rtt.txt:3: "x12"`},
		{"1\n-2\n", 0, 0, 0, `rtt.txt:2: "-2"`},
		{"1\n-2ms\n", 0, 0, 0, "rtt.txt:2: latency -2ms"},
		{"NaN\n", 0, 0, 0, `rtt.txt:1: "NaN"`},
		{"1e300\n", 0, 0, 0, `rtt.txt:1: "1e300"`},
		{"1\n" + strings.Repeat("1", 1<<17), 0, 0, 0, "rtt.txt:2: "},
	} {
		l, err := latency.Parse("recorded:rtt.txt", open(c.text))
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%.20q: %v, want %s", c.text, err, c.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		mean, _ := l.Mean()
		most, _ := l.Max()
		if mean != c.mean || l.Min() != c.min || most != c.max || l.String() != "recorded:rtt.txt" {
			t.Errorf("%q: %v: mean %v, min %v, max %v", c.text, l, mean, l.Min(), most)
		}
	}
	if _, err := latency.Parse("recorded:gone.txt", open("")); err == nil || !strings.Contains(err.Error(), "gone.txt: no such file") {
		t.Errorf("a missing file: %v", err)
	}
}

// FuzzParse: every law that Parse accepts has a name that means the same law. Its draws are within
// its bounds.
func FuzzParse(f *testing.F) {
	for _, l := range laws() {
		f.Add(l.String())
	}
	f.Add("uniform:1h0m0.5s-2562047h")
	f.Add("pareto:1ns,1e-300")
	f.Fuzz(func(t *testing.T, s string) {
		l, err := latency.Parse(s, nil)
		if err != nil {
			return
		}
		again, err := latency.Parse(l.String(), nil)
		if err != nil || again != l {
			t.Fatalf("%q is %v, which is read as %v, %v", s, l, again, err)
		}
		rng := rand.New(rand.NewPCG(1, 2))
		for range 20 {
			d := l.Draw(rng)
			most, bounded := l.Max()
			if d < l.Min() || bounded && d > most || d > latency.Longest {
				t.Fatalf("%v drew %v", l, d)
			}
		}
		if mean, ok := l.Mean(); ok && mean < l.Min() {
			t.Fatalf("%v: mean %v, smallest %v", l, mean, l.Min())
		}
	})
}
