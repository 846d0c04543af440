package formula_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/lab/strategy"
	"github.com/paceline-go/paceline/lab/strategy/formula"
	"github.com/paceline-go/paceline/limit/mono"
)

// after runs one answer through a formula and returns the next sleep in seconds.
func after(t *testing.T, source string, a strategy.Answer) float64 {
	t.Helper()
	f, err := formula.Compile(source)
	if err != nil {
		t.Fatalf("%s: %v", source, err)
	}
	p, err := formula.Strategy(f, f).New(strategy.Params{Rate: 1.25, Burst: 4500, Start: 10e9, Jitter: -1})
	if err != nil {
		t.Fatal(err)
	}
	th := p.Thread(rand.New(rand.NewPCG(1, 1)))
	now := th.Send(mono.Time(0))
	th.Answer(now, a)
	return th.Sleep().Seconds()
}

func TestValues(t *testing.T) {
	told := strategy.Answer{Known: true, Remaining: 450, RetryAfter: 7e9, Reset: 3e9}
	for source, want := range map[string]float64{
		"sleep": 10, "sleep*1.2 + min_sleep": 12.8, "sleep -= sleep*remaining/limit": 9, "sleep += 1; sleep *= 2": 22,
		"sleep /= 4": 2.5, "sleep = 3": 3, " sleep=3": 3, "sleep == 10": 1, "sleep != 10": 0, "sleep -20": 0,
		"min(5, sleep, 7)": 5, "max(5, sleep, 7)": 10, "choose(tries > 0, 1, 2)": 2, "retry_after": 7, "reset": 3, "now": 10,
		"(1 + 2) * 3 - -1": 10, "!0 && !(1 > 2) || 0": 1, "1 <= 1 && 2 >= 3": 0, "1 < 2": 1, "pow(2, 5)": 32,
		"exp(log(5) - 0)": 5, "sqrt(9)": 3, "abs(-2)": 2, "floor(2.9)": 2, "random < 1 && random >= 0": 1,
		"sleep*0/0": 10, "1/0": 365 * 24 * 3600, // no number; an infinite one
	} {
		if got := after(t, source, told); got < want-1e-9 || got > want+1e-9 {
			t.Errorf("%s is %v, want %v", source, got, want)
		}
	}
}

func TestMistakes(t *testing.T) {
	for _, c := range []struct {
		source, want string
		at           int
	}{
		{"", "nothing is here", 0}, {"sleep; ", "nothing is here", 6}, {"sleep *", "expected operand", 7},
		{"sleep -= slep", `"slep" is not known: want sleep, remaining`, 9}, {"slep", "did you mean sleep", 0},
		{"sleep*2; sleep += 1 + left", `"left" is not known`, 22}, {"1 % 2", "the operator % is not known", 4},
		{"^1", "the operator ^ is not known", 0}, {`"a"`, `"a" is no number`, 0}, {"a[1]", "this is no arithmetic", 0},
		{"func() {}", "this is no arithmetic", 0}, {"mim(1, 2)", `"mim" is no function: want min, max`, 0},
		{"sleep.x()", "this is no function", 0}, {"2*min(1)", "min has 1 argument: want 2", 2},
		{"choose(1, 2)", "choose has 2 arguments: want 3", 0}, {"pow(1, 2, 3)", "pow has 3 arguments: want 2", 0},
		{"remaining = 3", "expected", 10},
	} {
		_, err := formula.Compile(c.source)
		mistake, ok := err.(*formula.Error)
		if !ok || !strings.Contains(mistake.Problem, c.want) || mistake.At != c.at {
			t.Errorf("%q: %v, want %q after %d bytes", c.source, err, c.want, c.at)
		}
	}
}

// A formula costs no garbage: a flood of requests would drown in it.
func TestNoAllocation(t *testing.T) {
	f, err := formula.Compile("sleep *= choose(tries > 0, 1.2, 1); sleep = min(max(sleep, min_sleep*random), pow(now, 2))")
	if err != nil {
		t.Fatal(err)
	}
	p, err := formula.Strategy(f, f).New(strategy.Params{Rate: 1.25, Burst: 4500})
	if err != nil {
		t.Fatal(err)
	}
	th := p.Thread(rand.New(rand.NewPCG(1, 1)))
	now := mono.Time(0)
	if n := testing.AllocsPerRun(1000, func() {
		now = th.Send(now)
		th.Answer(now, strategy.Answer{Limited: true})
	}); n != 0 {
		t.Errorf("a try allocates %v times", n)
	}
}

func FuzzCompile(f *testing.F) {
	f.Add("sleep -= sleep*remaining/limit")
	f.Add("choose(tries > 0, min(1, 2), !random); -now")
	f.Fuzz(func(t *testing.T, source string) {
		_, err := formula.Compile(source)
		if mistake, ok := err.(*formula.Error); err != nil && (!ok || mistake.At < 0 || mistake.At > len(source)) {
			t.Errorf("%q: %v", source, err)
		}
	})
}
