package fleet

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/lab/strategy"
)

func TestParseExpectation(t *testing.T) {
	for text, want := range map[string]string{
		"limted < 3 %":  `"limted" is no figure: want one of limited, limited_steady,`,
		"Jain > 0.9":    "did you mean jain",
		"limited = 3":   `"limited = 3" is no expectation: want a figure, <, <=, > or >=, and a number`,
		"limited < 3 s": "the unit of limited is %",
		"served < 3 %":  "served is a number without a unit",
		"cv < 1.2.3":    "1.2.3 is no number",
	} {
		if _, err := ParseExpectation(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// Each operator holds on its side of the bound, and what never came holds no bound.
func TestJudge(t *testing.T) {
	r := Report{RetryPercentPooled: 3, UnusedPercent: 2, Shares: Shares{Least: math.NaN()}}
	for text, want := range map[string]bool{
		"limited < 3 %": false, "limited <= 3 %": true, "limited > 3": false, "limited>=3%": true, "limited < 3.1 %": true,
		"limited > 2.9": true, "throughput >= 98 %": true, "throughput > 98": false,
		"settle < 1000 s": false, "settle > 1": false, "settle >= 1 s": false, "poorest > 0": false, "poorest <= 5": false,
	} {
		e, err := ParseExpectation(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := e.judge(&r); got.Held != want || got.Expect != text {
			t.Errorf("%s: %+v, want held %v", text, got, want)
		}
	}
}

// A run says of its expectations what it came to, at its end alone.
func TestExpected(t *testing.T) {
	fair, err := strategy.Named("fair")
	if err != nil {
		t.Fatal(err)
	}
	s := Scenario{Duration: time.Hour, Groups: []Group{{Strategy: fair, Processes: 2}}}
	for _, text := range []string{"requests > 4000", "limited < 1 %", "requests < 4000"} {
		e, err := ParseExpectation(text)
		if err != nil {
			t.Fatal(err)
		}
		s.Expect = append(s.Expect, e)
	}
	f, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	f.Advance(time.Minute)
	if r := f.Report(); r.Expected != nil || r.Missed() != nil {
		t.Errorf("after a minute of an hour: %+v, %v", r.Expected, r.Missed())
	}
	f.Advance(time.Hour)
	r := f.Report()
	if len(r.Expected) != 3 || !r.Expected[0].Held || !r.Expected[1].Held || r.Expected[2].Held ||
		*r.Expected[2].Value != float64(r.Requests) {
		t.Errorf("%d requests: %+v", r.Requests, r.Expected)
	}
	if err := r.Missed(); err == nil || err.Error() != "1 expectation is missed, of 3" {
		t.Errorf("Missed: %v", err)
	}
}
