package tally

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/pool"
)

// A failure more than a minute ago is not in lately, but in the sum. Rare failures are counted
// together.
func TestFailures(t *testing.T) {
	var f failures
	now := time.Unix(1e9, 0)
	f.count(now, "503", "answered 503", 1, 0)
	f.count(now.Add(5*time.Second), "503", "answered 503 again", 1, 0)
	f.count(now.Add(30*time.Second), "timeout", "no answer within 30s", 1, 0)
	f.count(now.Add(31*time.Second), "timeout", "", 0, 1)
	for _, c := range []struct {
		after time.Duration
		want  string
	}{
		{31 * time.Second, "[{503 2 0 answered 503 0} {timeout 1 1 no answer within 30s 0}]"},
		{59 * time.Second, "[{503 2 0 answered 503 0} {timeout 1 1 no answer within 30s 0}]"},
		{60 * time.Second, "[{timeout 1 1 no answer within 30s 0}]"},
		{91 * time.Second, "[]"},
	} {
		if got := fmt.Sprint(f.Lately(now.Add(c.after))); got != c.want {
			t.Errorf("%v: %s, want %s", c.after, got, c.want)
		}
	}
	f.count(now.Add(time.Hour), "503", "", 1, 0) // the same slot of the ring
	if got := fmt.Sprint(f.Lately(now.Add(time.Hour))); got != "[{503 1 0 answered 503 0}]" {
		t.Errorf("an hour later: %s", got)
	}
	for i := range 2 * mostFailures {
		f.count(now, fmt.Sprint("kind ", i), "", 1, 0)
	}
	all, n := f.All(), 0
	for _, one := range all {
		n += one.Attempts
	}
	if len(all) != mostFailures+1 || all[0].What != otherFailures || n != 4+2*mostFailures {
		t.Errorf("%d kinds with %d attempts: %v", len(all), n, all)
	}
}

// A request that failed is open until it fails in another way, or ends.
func TestFailuresThatAreAnsweredSince(t *testing.T) {
	tally := New(0, NewFigures([]format.Key{{Name: "A"}}, nil, 0, false))
	tally.Pace.Begin(time.Now(), nil)
	open := func(want string) {
		t.Helper()
		var got strings.Builder
		for _, f := range tally.Failed.Lately(time.Now()) {
			got.WriteString(fmt.Sprintf("%s %d of %d, ", f.What, f.Open, f.Attempts))
		}
		if got.String() != want {
			t.Errorf("%s, want %s", got.String(), want)
		}
	}
	tally.Fails("", "503", "")
	tally.Fails("", "503", "")
	open("503 2 of 2, ")
	tally.Fails("503", "timeout", "")
	open("503 1 of 2, timeout 1 of 1, ")
	tally.Ended([]End{{State: pool.Done, Request: &format.Request{}, Failed: "timeout", Written: true}}, false)
	open("503 1 of 2, timeout 0 of 1, ")
	tally.Ended([]End{{State: pool.Dead, Request: &format.Request{}, Failed: "503", Written: true}}, false)
	open("503 0 of 2, timeout 0 of 1, ")
}

// Where all reasons differ, only the first of them are kept. Those are still counted.
func TestReasonsOfTheDeadAreBounded(t *testing.T) {
	tally := New(0, figures{})
	for i := range mostReasons {
		tally.because(fmt.Sprint("reason ", i))
	}
	for range 3 {
		tally.because("one too many")
	}
	tally.because("reason 7")
	if most, n, _ := tally.DeadBecause(); most != "reason 7" || n != 2 || len(tally.reasons) != mostReasons {
		t.Errorf("%d have %q, of %d reasons", n, most, len(tally.reasons))
	}
}
