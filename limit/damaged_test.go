package limit_test

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// written returns a state of a kind. Instants have the type mono.Time, and all else are numbers.
func written(kind byte, all ...any) []byte {
	b := []byte{kind, 1}
	for _, v := range all {
		switch v := v.(type) {
		case mono.Time:
			b = binary.AppendVarint(b, int64(v))
		case int:
			b = binary.AppendUvarint(b, uint64(v))
		case uint64:
			b = binary.AppendUvarint(b, v)
		case []byte:
			b = append(append(b, byte(len(v))), v...)
		}
	}
	return b
}

// The numbers of a state have bounds. A number beyond its bound is refused. The error says where
// the number is, and what it is.
func TestDamagedStates(t *testing.T) {
	const late, half = mono.Time(100), math.MaxInt64 / 2
	rolling := func(window int, log ...any) []byte {
		return written('r', append([]any{late, 5, window, 0, mono.Time(0)}, log...)...)
	}
	anchored := func(epochs ...any) []byte {
		return written('m', append([]any{late, 5, 1000}, epochs...)...)
	}
	bucket := func(rest ...any) []byte { return written('b', append([]any{late, 5, 1000}, rest...)...) }
	produced := func(rest ...any) []byte { return written('p', append([]any{late}, rest...)...) }
	const second = int(time.Second)
	for _, c := range []struct {
		kind  string
		state []byte
		want  string // "": no error
	}{
		{"Rolling", nil, "Rolling: state, byte 0 of 0: it has 0 bytes"},
		{"Rolling", []byte{'r'}, "byte 0 of 1: it has 1 bytes"},
		{"Rolling", []byte{'r', 1}, "byte 2 of 2: the last change: no number"},
		{"Rolling", []byte{'r', 2, 0}, "byte 1 of 3: version 2, not 1"},
		{"Rolling", []byte{'c', 1}, `byte 0 of 2: it begins with 'c', not 'r': it is of another kind`},
		{"Rolling", rolling(1000, 0), ""},
		{"Rolling", append(rolling(1000, 0), 0), "1 bytes too many"},
		{"Rolling", written('r', late, 0, 1000, 0, late, 0), "byte 4 of 11: the limit, 0, is not between 1 and 17592186044416"},
		{"Rolling", written('r', late, 1, 1000, 0, late, 0), ""},
		{"Rolling", written('r', late, limit.MaxCost, 1000, 0, late, 0), ""},
		{"Rolling", written('r', late, limit.MaxCost+1, 1000, 0, late, 0), "the limit, 17592186044417, is not between"},
		{"Rolling", rolling(0, 0), "the window, 0, is not between 1 and"},
		{"Rolling", rolling(999, 0), "Window 999ns is shorter than 1µs"},
		{"Rolling", written('r', late, 5, uint64(1<<63), 0, late, 0), "the window, 9223372036854775808, is not between 1 and"},
		{"Rolling", written('r', mono.Max, 5, 1000, 0, mono.Max, 0), ""},
		{"Rolling", written('r', limit.AfterSettle, 5, 1000, 0, late, 0), "byte 12 of 19: the last change is no instant"},
		{"Rolling", written('r', late, 5, 1000, half, late, 0), ""},
		{"Rolling", written('r', late, 5, 1000, half+1, late, 0), "what was forgotten, 4611686018427387904, is not between 0 and 4611686018427387903"},
		{"Rolling", rolling(1000, 1, late, 1), ""},
		{"Rolling", rolling(1000, 1, late, 0), "what an arrival counts, 0, is not between 1 and"},
		{"Rolling", rolling(1000, 1), "the number of arrivals, 1, is not between 0 and 0"},
		{"Rolling", rolling(1000, 2, late, 1, 1, 3), ""},
		{"Rolling", rolling(1000, 2, late, 1, 0, 3), "an arrival is not after the one before"},
		{"Rolling", rolling(1000, 2, late, half-1, 1, 1), ""},
		{"Rolling", rolling(1000, 2, late, half-1, 1, 2), "what an arrival counts, 2, is not between 1 and 1"},
		{"Rolling", rolling(1000, 2, late, half, 1, 1), "is not between 1 and 0"},
		{"Rolling", rolling(1000, 2, late, 1, uint64(math.MaxUint64), 1), "an arrival is not after the one before"},
		{"Rolling", rolling(1000, 2, late, 1, uint64(math.MaxInt64)-100, 1), "an arrival is no instant"},
		{"Calendar", written('c', late, 5, 1000, limit.Never, 0, late, 0), "the last arrival is no instant"},
		{"Weighted", written('w', late, 5, 1000, 0, late, 1, late, 0), "what an arrival counts, 0, is not"},
		{"Bucket", bucket(5, 1000, late, 0, 0, late, 0), ""},
		{"Bucket", bucket(0, 1000, late, 0, 0, late, 0), "the refill, 0, is not between 1 and"},
		{"Bucket", bucket(1, 1, late, 0, 0, late, 0), ""},
		{"Bucket", bucket(1, 0, late, 0, 0, late, 0), "its window, 0, is not between 1 and"},
		{"Bucket", bucket(1, uint64(math.MaxInt64), late, 0, 0, late, 0), "Bucket: "}, // five of them are above the maximum
		{"Bucket", bucket(5, 1000, late, 1, late, 3, 0, late, 0), ""},
		{"Bucket", bucket(5, 1000, late, 2, late, 3, 0, 3, 0, late, 0), ""},
		{"Bucket", bucket(5, 1000, late, 2, late, 3, 1, 2, 0, late, 0), ""},
		{"Bucket", bucket(5, 1000, late, 2, late, 3, 1, 4, 0, late, 0), "what has gone since a level, 4, is not between 0 and 3"},
		{"Bucket", bucket(5, 1000, late, 1, late, 1<<61, 0, late, 0), ""},
		{"Bucket", bucket(5, 1000, late, 1, late, 1<<61+1, 0, late, 0), "what has gone since a level"},
		{"Bucket", bucket(5, 1000, late, 4, 0, 0, 0, 0), "the number of levels, 4, is not between 0 and 2"},
		{"Anchored", anchored(0, mono.Min, 0, 0, 0, mono.Min, 0), ""},
		{"Anchored", anchored(1, late, 0, 0, uint64(100)+1<<63, 0, 0, 0, late, 0), ""},
		{"Anchored", anchored(1, late, 0, 0, uint64(101)+1<<63, 0, 0, 0, late, 0), "the epoch begins after the last change"},
		{"Anchored", anchored(1, late, 1, late, 0, uint64(100)+1<<63, 0, 0, 0, late, 0), ""},
		{"Anchored", anchored(1, late, 2, late, 0, uint64(100)+1<<63, 0, 0, 0, late, 0), "whether there is a witness, 2, is not between 0 and 1"},
		{"Anchored", anchored(1, late, 0, 1<<60, uint64(100)+1<<63, 1<<61, 1<<62, 0, late, 0), ""},
		{"Anchored", anchored(1, late, 0, 1<<60+1, uint64(100)+1<<63, 0, 0, 0, late, 0), "what is fresh, "},
		{"Anchored", anchored(1, late, 0, 0, uint64(100)+1<<63, 1<<61+1, 0, 0, late, 0), "what was carried over, "},
		{"Anchored", anchored(1, late, 0, 0, uint64(100)+1<<63, 0, 1<<62+1, 0, late, 0), "what was fresh, "},
		{"Anchored", anchored(1<<62+1, late, 0, 0), "the number of the epoch, "},
		{"Anchored", anchored(2, late, 0, 0, uint64(100)+1<<63, 0, 0, 0, 0, 0, 0, late, 0), ""}, // two that begin at one instant
		{"Produced", produced(5000, 5000, second, late, 0, 0), ""},
		{"Produced", produced(0, 5000, second, late, 0, 0), "the burst, 0, is not between 1 and"},
		{"Produced", produced(5000, 0, second, late, 0, 0), "the refill, 0, is not between 1 and"},
		{"Produced", produced(5000, 5000, 0, late, 0, 0), "its window, 0, is not between 1 and"},
		{"Produced", produced(1, 5000, second, late, 0, 0), "Burst 1 at 5000 per 1s is refilled within a tick"},
		{"Produced", produced(5000, 5000, second, late, uint64(math.MaxInt64), 0), ""},
		{"Produced", produced(5000, 5000, second, late, uint64(1<<63), 0), "what was drawn, 9223372036854775808, is not between 0 and"},
		{"Produced", produced(5000, 5000, second, late, 0, 2, uint64(100)+1<<63, late, 0, 0, late, limit.MaxCost), ""}, // they end at one instant
		{"Produced", produced(5000, 5000, second, late, 0, 1, uint64(100)+1<<63, late, limit.MaxCost+1), "its cost, 17592186044417, is not between 0 and"},
		{"Cooldown", written('d', late, mono.Time(50)), ""},
		{"Cooldown", append(written('d', late, mono.Time(50)), 1), "1 bytes too many"},
		{"All", written('a', late, 1, written('r', late, 5, 1000, 0, late, 0)), "All: state, byte 5 of 17: it is of 1 limits, not 2"},
		{"All", written('a', late, 2, written('r', late, 5, 1000, 0, late, 0), written('r', late, 50, 1000, 0, late, 0)), ""},
		{"All", written('a', late, 2, written('r', late, 5, 1000, 0, late, 0), written('r', late, 0, 1000, 0, late, 0)), "limit: All: limit 2 of 2: minute: limit: Rolling: state, byte 4 of"},
		{"All", append(written('a', late, 2, written('r', late, 5, 1000, 0, late, 0)), 9, 0), "a limit has 9 bytes, and 1 are left"},
		{"Named", written('r', late, 0, 1000, 0, late, 0), "it: limit: Rolling: state, byte 4 of 11"},
	} {
		l := keepers[c.kind]()
		err := limit.Restore(l, c.state)
		if c.want == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, % x: %v, want %q", c.kind, c.state, err, c.want)
		}
		if err == nil {
			if again := limit.AppendState(nil, l); string(again) != string(c.state) {
				t.Errorf("%s: of % x comes % x", c.kind, c.state, again)
			}
		}
	}
}

// A request is open in the epoch in which the program starts anew. It is still the witness of that
// epoch.
func TestAnchoredGoesOnInItsEpoch(t *testing.T) {
	made := func() timeline {
		return newTimeline[*limit.Anchored](t)(limit.NewAnchored(limit.AnchoredConfig{Limit: 2, Window: time.Second, Margin: -1}))
	}
	for _, epochs := range []int{1, 2, 300} { // more epochs than in memory
		was, is := made(), made()
		now := time.Duration(0)
		for range epochs - 1 {
			was.send(now, 1, "before")
			was.answered(now, "before", limit.Accepted)
			now += time.Second
		}
		was.send(now, 1, "witness")
		was.send(now+100*ms, 1, "slow")
		is.send(now, 1, "witness")
		is.send(now+100*ms, 1, "slow")
		if err := limit.Restore(is.Limiter, limit.AppendState(nil, was.Limiter)); err != nil {
			t.Fatal(err)
		}
		for _, l := range []timeline{was, is} {
			l.answered(now+200*ms, "witness", limit.Accepted)
			l.answered(now+900*ms, "slow", limit.Accepted)
			l.ready(now+900*ms, 2, at(now+1200*ms)) // both intervals are over
		}
	}
}

// Equal configurations have equal lines, however they were written.
func TestConfigurationsSay(t *testing.T) {
	calendar := func(phase mono.Time, late time.Duration, free bool) limit.Limiter {
		return must(limit.NewCalendar(limit.CalendarConfig{Limit: 5, Window: time.Minute, Phase: phase, Arrivals: limit.Arrivals{Late: late, RejectsFree: free}}))
	}
	for _, c := range []struct {
		l    limit.Limiter
		want string
	}{
		{calendar(0, 0, false), "Calendar: 5 requests per 1m0s, from 0s, skew 50ms"},
		{calendar(at(-time.Second), 5*time.Second, false), "Calendar: 5 requests per 1m0s, from 59s, skew 50ms"},
		{calendar(at(61*time.Second), -1, true), "Calendar: 5 requests per 1m0s, late 0s, rejects free, from 1s, skew 50ms"},
		{calendar(at(-time.Minute), 4*time.Second, false), "Calendar: 5 requests per 1m0s, late 4s, from 0s, skew 50ms"},
		{must(limit.NewCooldown(time.Second)), "Cooldown: pause 1s"},
		{limit.NewAll(limit.Named("n", opaque{limit.MustRolling(1, time.Second)}), must(limit.NewCooldown(0))), `All ["n" limit_test.opaque; Cooldown: pause 0s]`},
		{limit.NewFitted(limit.MustRolling(1, time.Second)), "Rolling: 1 request per 1s, margin 1.2ms"},
	} {
		if got := limit.Configuration(c.l); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	all := limit.NewAll(opaque{must(limit.NewCooldown(time.Hour))}, limit.MustRolling(1, time.Second), must(limit.NewCooldown(3*time.Second)), must(limit.NewCooldown(2*time.Second)))
	if limit.Span(all) != 3*time.Second {
		t.Errorf("the longest span is %v", limit.Span(all))
	}
	varying := limit.NewVarying(must(limit.NewConcurrency(limit.ConcurrencyConfig{Limit: 1})))
	if limit.Keeps(varying) == nil || limit.Keeps(limit.NewVarying(must(limit.NewCooldown(0)))) != nil {
		t.Error("what varies can be kept where what is in it cannot, or the reverse")
	}
	if err := limit.Restore(limit.NewFitted(varying), nil); err == nil || !strings.Contains(err.Error(), "cannot be kept") {
		t.Errorf("Restore: %v", err)
	}
}
