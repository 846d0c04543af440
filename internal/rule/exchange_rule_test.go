package rule_test

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/limit/mono"
)

const ms = mono.Time(time.Millisecond)

func newExchange(t testing.TB, c rule.ExchangeConfig) *rule.Exchange {
	t.Helper()
	x, err := rule.NewExchange(c)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// TestExchange: instant, key, nonce, answer.
func TestExchange(t *testing.T) {
	type step struct {
		at    mono.Time
		key   int
		nonce uint64
		want  rule.Verdict
	}
	for _, c := range []struct {
		name   string
		config rule.ExchangeConfig
		steps  []step
	}{
		{"the window is closed and counted in whole milliseconds", rule.ExchangeConfig{Keys: 2, Limit: 2}, []step{
			{999_999, 0, 1, rule.Accepted}, // in millisecond 0
			{500 * ms, 0, 2, rule.Accepted},
			{1001*ms - 1, 0, 3, rule.Limited},
			{1001*ms - 1, 1, 3, rule.Accepted}, // another key
			{1001 * ms, 0, 3, rule.Accepted},
			{1500*ms + 999_999, 0, 4, rule.Limited},
			{1501 * ms, 0, 4, rule.Accepted},
		}},
		{"before the epoch milliseconds are taken down as well", rule.ExchangeConfig{Limit: 1, Window: time.Millisecond}, []step{
			{-1, 0, 1, rule.Accepted}, // in millisecond -1
			{ms - 1, 0, 2, rule.Limited},
			{ms, 0, 2, rule.Accepted},
		}},
		{"a refusal uses no slot", rule.ExchangeConfig{Limit: 1}, []step{
			{0, 0, 1, rule.Accepted},
			{1000 * ms, 0, 2, rule.Limited},
			{1001 * ms, 0, 2, rule.Accepted},
		}},
		{"a bad nonce uses a slot and leaves the last nonce", rule.ExchangeConfig{Limit: 2}, []step{
			{0, 0, 100, rule.Accepted},
			{1 * ms, 0, 100, rule.BadNonce},
			{2 * ms, 0, 101, rule.Limited}, // the rate is checked first
			{1001 * ms, 0, 99, rule.BadNonce},
			{1002 * ms, 0, 101, rule.Accepted},
			{2002 * ms, 0, 102, rule.Accepted},
		}},
		{"a limited request leaves the last nonce", rule.ExchangeConfig{Limit: 1}, []step{
			{0, 0, 1, rule.Accepted},
			{1 * ms, 0, 50, rule.Limited},
			{1001 * ms, 0, 2, rule.Accepted},
		}},
		{"the first nonce may be any", rule.ExchangeConfig{}, []step{
			{0, 0, 0, rule.Accepted},
			{0, 0, 0, rule.BadNonce},
			{0, 0, math.MaxUint64, rule.Accepted},
			{0, 0, math.MaxUint64, rule.BadNonce},
		}},
		{"any nonce", rule.ExchangeConfig{AnyNonce: true}, []step{
			{0, 0, 5, rule.Accepted},
			{0, 0, 5, rule.Accepted},
			{0, 0, 4, rule.Accepted},
		}},
		{"the second refusal bans for good", rule.ExchangeConfig{Keys: 2, Limit: 1, BanAfter: 2}, []step{
			{0, 0, 1, rule.Accepted},
			{0, 0, 2, rule.Limited},
			{1001 * ms, 0, 2, rule.Accepted}, // successes between do not help
			{1002 * ms, 0, 3, rule.Limited},
			{1003 * ms, 0, 3, rule.Banned},
			{90_000 * ms, 0, 3, rule.Banned},
			{90_000 * ms, 1, 3, rule.Accepted},
			{90_000 * ms, 2, 3, rule.UnknownKey},
			{90_000 * ms, -1, 3, rule.UnknownKey},
		}},
		{"a clock that went back", rule.ExchangeConfig{Limit: 1}, []step{
			{5000 * ms, 0, 1, rule.Accepted},
			{1000 * ms, 0, 2, rule.Limited},
			{6000 * ms, 0, 2, rule.Limited},
			{6001 * ms, 0, 2, rule.Accepted},
		}},
	} {
		x := newExchange(t, c.config)
		for i, s := range c.steps {
			if got := x.Arrive(s.at, s.key, s.nonce); got != s.want {
				t.Errorf("%s: step %d at %v: %v, want %v", c.name, i, s.at, got, s.want)
			}
		}
		if n := x.Total().Total(); n != len(c.steps) {
			t.Errorf("%s: counted %d of %d requests", c.name, n, len(c.steps))
		}
	}
}

func TestDefaultsAreTheStrictExchange(t *testing.T) {
	x := newExchange(t, rule.ExchangeConfig{})
	for i := range 20 {
		if v := x.Arrive(mono.Time(i)*ms, 4, uint64(i)); v != rule.Accepted {
			t.Fatalf("request %d: %v", i, v)
		}
	}
	for i := range 10 {
		if x.Banned(4) {
			t.Fatalf("banned after %d refusals", i)
		}
		if v := x.Arrive(1000*ms, 4, 100); v != rule.Limited {
			t.Fatalf("refusal %d: %v", i, v)
		}
	}
	if v := x.Arrive(2000*ms, 4, 100); v != rule.Banned || !x.Banned(4) {
		t.Errorf("after ten refusals: %v", v)
	}
	if v := x.Arrive(0, 5, 1); v != rule.UnknownKey {
		t.Errorf("a sixth key: %v", v)
	}
	if got, want := x.Counts(4), (rule.Counts{Accepted: 20, Limited: 10, Banned: 1}); got != want {
		t.Errorf("counts %v, want %v", got, want)
	}
	for v, status := range map[rule.Verdict]int{rule.Accepted: 200, rule.BadNonce: 400, rule.UnknownKey: 401, rule.Banned: 403, rule.Limited: 429} {
		if v.Status() != status {
			t.Errorf("%v: status %d", v, v.Status())
		}
	}
}

func TestNeverBans(t *testing.T) {
	x := newExchange(t, rule.ExchangeConfig{Limit: 1, BanAfter: -1})
	for i := range 100 {
		x.Arrive(0, 0, uint64(i))
	}
	if x.Banned(0) || x.Counts(0).Limited != 99 {
		t.Errorf("banned %v, %v", x.Banned(0), x.Counts(0))
	}
}

func TestNewExchangeRefuses(t *testing.T) {
	for _, c := range []struct {
		config rule.ExchangeConfig
		why    string
	}{
		{rule.ExchangeConfig{Keys: -1}, "Keys -1"},
		{rule.ExchangeConfig{Limit: -3}, "Limit -3"},
		{rule.ExchangeConfig{Window: -time.Second}, "Window -1s"},
		{rule.ExchangeConfig{Window: 1500 * time.Microsecond}, "Window 1.5ms"},
	} {
		if _, err := rule.NewExchange(c.config); err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%+v: %v", c.config, err)
		}
		if _, err := rule.NewJudge(c.config, 0); err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%+v: %v", c.config, err)
		}
	}
}

func TestNoncesOfAnyLength(t *testing.T) {
	const python = "173263680012313996437203660801" // a timestamp, a thread and a counter, one after the other
	for _, c := range []struct {
		last, next string
		want       rule.Verdict
	}{
		{"1", "2", rule.Accepted},
		{"9", "10", rule.Accepted},
		{"10", "9", rule.BadNonce},
		{"7", "007", rule.BadNonce},
		{"007", "8", rule.Accepted},
		{"18446744073709551615", "18446744073709551616", rule.Accepted},
		{"18446744073709551616", "18446744073709551615", rule.BadNonce},
		{"18446744073709551616", "18446744073709551616", rule.BadNonce},
		{"99999999999999999999", "100000000000000000000", rule.Accepted},
		{python + "1", python + "2", rule.Accepted},
		{python + "9", python + "10", rule.Accepted},
		{python + "10", python + "9", rule.BadNonce}, // how the counter breaks such nonces: a digit more, for good
		{python + "10", "0" + python + "11", rule.Accepted},
		{python, "1732636800124", rule.BadNonce},
		{"0", "", rule.BadNonce},
		{"0", "-1", rule.BadNonce},
		{"0", "1e9", rule.BadNonce},
		{"0", "1 ", rule.BadNonce},
		{"0", "٣", rule.BadNonce},
		{"000", "0", rule.BadNonce},
		{"0", strings.Repeat("9", 1000), rule.Accepted},
	} {
		x := newExchange(t, rule.ExchangeConfig{})
		if v := x.ArriveDigits(0, 0, c.last); v != rule.Accepted {
			t.Fatalf("first nonce %s: %v", c.last, v)
		}
		if v := x.ArriveDigits(0, 0, c.next); v != c.want {
			t.Errorf("%s after %s: %v, want %v", c.next, c.last, v, c.want)
		}
	}
}

// FuzzEntriesAgree: one rule, two entries. Each nonce goes to three exchanges: as digits, as a
// number if it fits, and alternating. big.Int decides which nonce is above which.
func FuzzEntriesAgree(f *testing.F) {
	f.Add([]byte{1, 2, 3, 3, 200, 201, 7}, "18446744073709551610")
	f.Add([]byte{9, 8, 250, 0, 1}, "0099999999999999999999")
	f.Fuzz(func(t *testing.T, steps []byte, base string) {
		n, ok := new(big.Int).SetString(base, 10)
		if !ok || n.Sign() < 0 || len(base) > 100 {
			return
		}
		config := rule.ExchangeConfig{Keys: 1, Limit: 3, BanAfter: 5}
		digits, fast, mixed := newExchange(t, config), newExchange(t, config), newExchange(t, config)
		now, last, seen := mono.Time(0), new(big.Int), false
		for i, s := range steps {
			now += mono.Time(s%4) * 300 * ms
			nonce := new(big.Int).Add(n, big.NewInt(int64(s)))
			v := digits.ArriveDigits(now, 0, "00"+nonce.String())
			if rises := !seen || nonce.Cmp(last) > 0; v == rule.Accepted && !rises || v == rule.BadNonce && rises {
				t.Fatalf("step %d: %v after %v: %v", i, nonce, last, v)
			}
			if v == rule.Accepted {
				seen, last = true, nonce
			}
			arrive := func(x *rule.Exchange, number bool) rule.Verdict {
				if number && nonce.IsUint64() {
					return x.Arrive(now, 0, nonce.Uint64())
				}
				return x.ArriveDigits(now, 0, nonce.String())
			}
			if a, b := arrive(fast, true), arrive(mixed, i%2 == 0); a != v || b != v {
				t.Fatalf("step %d, nonce %v: digits %v, numbers %v, mixed %v", i, nonce, v, a, b)
			}
		}
	})
}

func TestArriveDoesNotAllocate(t *testing.T) {
	x := newExchange(t, rule.ExchangeConfig{})
	now, nonce := mono.Time(0), uint64(0)
	if n := testing.AllocsPerRun(1000, func() {
		now, nonce = now+20*ms, nonce+1
		x.Arrive(now, int(nonce%6), nonce)
		x.ArriveDigits(now, 0, "18446744073709551615")
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkArrive(b *testing.B) {
	for _, limit := range []int{20, 6000} {
		for name, step := range map[string]mono.Time{"accepted": mono.Time(1100*time.Millisecond) / 5 / mono.Time(limit), "limited": 1} {
			b.Run(fmt.Sprintf("%s/limit=%d", name, limit), func(b *testing.B) {
				x := newExchange(b, rule.ExchangeConfig{Limit: limit, BanAfter: -1})
				now, nonce, key := mono.Time(0), uint64(0), 0
				for b.Loop() {
					now, nonce = now+step, nonce+1
					if key++; key == 5 {
						key = 0
					}
					x.Arrive(now, key, nonce)
				}
			})
		}
	}
	b.Run("digits=33", func(b *testing.B) {
		x := newExchange(b, rule.ExchangeConfig{BanAfter: -1})
		now := mono.Time(0)
		for b.Loop() {
			now += 60 * ms
			x.ArriveDigits(now, 0, "173263680012313996437203660801123")
		}
	})
}

func BenchmarkHear(b *testing.B) {
	x := newExchange(b, rule.ExchangeConfig{BanAfter: -1})
	j, err := rule.NewJudge(x.Config(), 0)
	if err != nil {
		b.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	now, nonce := mono.Time(0), uint64(0)
	for b.Loop() {
		now, nonce = now+mono.Time(rng.IntN(20_000_000)), nonce+1
		key := int(nonce % 5)
		j.Hear(rule.Arrival{At: now, Key: key, Nonce: nonce, Verdict: x.Arrive(now, key, nonce)})
	}
	if j.Report().Faults != 0 {
		b.Fatal(j.Report().FirstFaults)
	}
}
