package scenario_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/lab/sim/fleet"
)

// Each published law, written as formulas, has the same report as the Go of package strategy in the same seed: every
// request, every sleep. A law of the demo has one thread per process here. With more, the first to be
// refused retries for all, which no formula says.
func TestFormulasArePublishedLaws(t *testing.T) {
	const gem = "sleep *= choose(tries > 0, 1.2, 1); "
	const demo = "sleep *= choose(tries > 0, 2, 1)"
	floor := func(decrease string) string { return "sleep = max(sleep - " + decrease + ", min_sleep/10)" }
	for _, c := range []struct{ name, limited, ok, group string }{
		{"exponential-increase-gradual-decrease", gem + "sleep += min_sleep", gem + "sleep -= min_sleep", "threads: 5"},
		{"exponential-increase-proportional-decrease", gem + "sleep += min_sleep", gem + "sleep -= sleep/limit", "threads: 5"},
		{"exponential-increase-proportional-remaining-decrease", gem + "sleep += min_sleep",
			gem + "sleep -= sleep*remaining/limit", "threads: 5"},
		{"exponential-increase-proportional-remaining-decrease", gem + "sleep += min_sleep",
			gem + "sleep -= sleep*remaining/limit", "threads: 5, params: {sharing: shared}"},
		{"demo-second", demo, floor("1"), "params: {start: 800ms}"},
		{"demo-half-second", demo, floor("0.5"), "params: {start: 800ms}"},
		{"demo-limit", demo, floor("1/limit"), "params: {start: 800ms}"},
		{"demo-remaining", demo, floor("remaining/limit"), "params: {start: 800ms}"},
		{"demo-remaining-sleep", demo, floor("remaining*sleep/limit"), "params: {start: 800ms}"},
		{"demo-remaining-sleep-20", demo, floor("remaining*sleep/limit/20"), "params: {start: 800ms}"},
	} {
		law := fmt.Sprintf("{on_limited: %q, on_ok: %q}", c.limited, c.ok)
		want, refused := report(t, c.name, c.group)
		if got, _ := report(t, law, c.group); got != want {
			t.Errorf("%s as %s: the report is\n%s\nand of the strategy\n%s", c.name, law, got, want)
		}
		if refused == 0 {
			t.Errorf("%s: nothing was refused, so only half of the law ran", c.name)
		}
	}
}

// report is what a strategy of five processes came to in three hours, without its name.
func report(t *testing.T, strategy, group string) (text string, refused int) {
	t.Helper()
	s, err := read(fmt.Sprintf("version: 1\nduration: 3h\nseed: 11\nserver: {quota: 4500/h}\ngroups:\n"+
		"  - {strategy: %s, processes: 5, link: 'uniform:20ms-40ms', %s}\n", strategy, group))
	if err != nil {
		t.Fatal(err)
	}
	f, err := fleet.New(s)
	if err != nil {
		t.Fatal(err)
	}
	f.Advance(3 * time.Hour)
	r := f.Report()
	r.Groups[0].Strategy = ""
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b), r.Limited
}

// A mistake in a formula is shown where it is in the file.
func TestMistakesInFormulas(t *testing.T) {
	for text, want := range map[string]string{
		"      on_limited: sleep*slow\n      on_ok: sleep\n":             `test.yaml:5:25: on_limited: "slow" is not known: want sleep, remaining`,
		"      on_limited: 'sleep*slow'\n      on_ok: sleep\n":           `test.yaml:5:26: on_limited: "slow" is not known`,
		"      on_limited: |\n        2*slow\n      on_ok: sleep\n":      `test.yaml:5:19: on_limited: "slow" is not known`,
		"      on_limited: sleep\n":                                      `test.yaml:5:7: on_ok is missing in strategy`,
		"      on_limited: sleep\n      on_ok:\n":                        `test.yaml:6:13: on_ok: nothing is no formula`,
		"      on_limited: sleep\n      on_ok: [1]\n":                    `test.yaml:6:14: on_ok: a list is no formula`,
		"      on_refused: sleep\n      on_limited: 1\n      on_ok: 2\n": `test.yaml:5:7: "on_refused" is not known in strategy: want on_limited, on_ok`,
	} {
		_, err := read(head + "groups:\n  - strategy:\n" + text)
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v\nwant %s", text, err, want)
		}
	}
}
