package fairshare

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

// lived returns an Auto after all sorts of answers from a server of any kind, with nothing in
// flight.
func lived(t *testing.T, seed uint64) (*Auto, mono.Time) {
	c := AutoConfig{Unit: limit.Unit(seed % 2 * uint64(limit.Tokens)), Sharers: float64(seed % 3), Weight: float64(1 + seed%2), Alone: seed%4 < 2}
	a, r, now := autoOf(t, c), rand.New(rand.NewPCG(seed, 9)), mono.Time(0)
	unit := c.Unit
	cost := limit.Cost{limit.Requests: 1, limit.Tokens: 300}
	per := []time.Duration{time.Second, time.Minute, time.Hour}[r.IntN(3)]
	knows, tells, resets, refuses := r.IntN(3), r.IntN(3) > 0, r.IntN(3), []int{0, 3, 10, 60}[r.IntN(4)]
	drains := seed%10 == 0 // a bucket into which nothing flows
	if drains {
		per, knows, tells, resets, refuses = time.Hour, 1, true, 0, 0
	}
	for i := range 20 + r.IntN(300) {
		now = max(now, a.Ready(now, cost)).Add(time.Duration(r.Int64N(int64(per) / 100)))
		if knows == 1 && i == 3 || knows == 2 && i == 50 {
			n := int64(600 + r.IntN(10_000)) // so that a half of it has room for the cost
			a.State(now, []limit.Rule{{Name: "core", Unit: unit, N: n, Per: per, Counts: limit.Counting(r.IntN(4)), Burst: n / 2 * r.Int64N(2), Documented: r.IntN(2) == 0}})
		}
		l := limittest.Admit(a, now, cost)
		now = now.Add(time.Duration(r.Int64N(int64(time.Second))))
		o := limit.Outcome{Result: limit.Accepted}
		if r.IntN(100) < refuses {
			o.Result, o.RetryAfter = limit.Limited, time.Duration(r.Int64N(int64(per)))*time.Duration(r.IntN(2))
		}
		if tells && r.IntN(20) > 0 {
			o.Known = 1 << unit
			o.Remaining[unit] = int64(r.IntN(500)) * int64(r.IntN(8))
			if drains {
				o.Remaining[unit] = max(9000-1000*int64(i), 300-5*int64(i)) // plenty, and soon a reserve
				if i >= 100 && seed%20 == 10 {
					o.Remaining[unit] = 500 // something comes after all
				}
			}
			if resets == 1 {
				o.Reset[unit] = per - now.Sub(0)%per
			} else if resets == 2 && r.IntN(2) == 0 {
				o.Reset[unit] = time.Duration(r.Int64N(int64(per)))
			}
		}
		a.Settle(now, l, &o)
	}
	return a, now
}

// notKept are the fields that are not part of the memory. They are the configuration, values that
// follow from it or from the limit, requests in flight, values that are written at once, and random
// ones. Fields of stated limits are among them, since Auto puts those limits into the
// configuration.
var notKept = []string{"config", "fair.config", "fair.rate", "fair.level", "fair.bucket.capacity", "fair.window.limit", "fair.window.length", "fair.rolling",
	"fair.account.longest", "fair.account.mean", "fair.account.room", "fair.entitled.sharers", "fair.seen", "fair.book", "fair.finder.stated", "fair.window.known", "fair.window.stated", "news", "noted", "stated.Unit",
	"alone.made", "alone.limits", "alone.open", "alone.resumed", "fair.unknown.known", "fair.unknown.needs"}

// fields visits the fields of a struct and of those in it, by their paths.
func fields(path string, v reflect.Value, visit func(path string, v reflect.Value)) {
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	switch {
	case slices.Contains(notKept, path) || !v.IsValid():
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			fields(strings.TrimPrefix(path+"."+v.Type().Field(i).Name, "."), v.Field(i), visit)
		}
	default:
		visit(path, v)
	}
}

// Every field of an Auto is kept, or in notKept, so that a new field cannot be forgotten. A missing
// sighting keeps nothing. On a scale with another zero everything is as long ago, so the same is
// written again.
func TestMemoryHasAll(t *testing.T) {
	used := map[string]bool{}
	kinds := map[string]int{}
	for seed := range uint64(600) {
		a, now := lived(t, seed)
		written := a.AppendMemory(nil, now)
		if len(written) > 4096 {
			t.Errorf("seed %d: %d bytes", seed, len(written))
		}
		b := autoOf(t, a.config)
		if err := b.Recall(now, now, written, nil); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		rolls := a.fair.level == &a.fair.rolling
		was := map[string]string{}
		fields("", reflect.ValueOf(a), func(path string, v reflect.Value) {
			was[path] = text(v)
			used[path] = used[path] || !v.IsZero()
		})
		fields("", reflect.ValueOf(b), func(path string, v reflect.Value) {
			looksAnew := rolls && (strings.HasPrefix(path, "fair.belief.base.") || path == "fair.belief.blind")
			if text(v) != was[path] && !looksAnew {
				t.Errorf("seed %d: %s is %s, and was %s", seed, path, text(v), was[path])
			}
		})
		if a.Found() != b.Found() {
			t.Errorf("seed %d: found %v, and %v before", seed, b.Found(), a.Found())
		}
		kinds[a.Found().By]++
		kinds[reflect.TypeOf(b.fair.level).String()]++
		const later = 77 * time.Hour
		c := autoOf(t, a.config)
		if err := c.Recall(now.Add(later), now.Add(later), b.AppendMemory(nil, now), nil); err != nil {
			t.Fatal(err)
		}
		if again := c.AppendMemory(nil, now.Add(later)); !rolls && string(again) != string(written) {
			t.Errorf("seed %d: on another scale it is\n%x, not\n%x", seed, again, written)
		}
	}
	for path, is := range used {
		if !is && !strings.HasSuffix(path, ".before.window") && !strings.HasSuffix(path, ".before.limited") { // all sightings are kept alike
			t.Errorf("%s was never anything but zero: this does not show that it is kept", path)
		}
	}
	if len(kinds) < 5+3 {
		t.Errorf("not every kind of limit was found: %v", kinds)
	}
}

func text(v reflect.Value) string { return fmt.Sprint(v) }

// Recall refuses a memory that is damaged, of another version or of something else, and names the
// fault. Then the Auto is as new.
func TestMemoryIsRefused(t *testing.T) {
	a, now := lived(t, 4)
	good := a.AppendMemory(nil, now)
	summed := func(b ...byte) []byte {
		return binary.LittleEndian.AppendUint32(slices.Clone(b), crc32.ChecksumIEEE(b))
	}
	body := good[:len(good)-crc32.Size]
	changed := func(i int, to byte) []byte {
		b := slices.Clone(body)
		b[i] = to
		return summed(b...)
	}
	for _, c := range []struct {
		written []byte
		says    string
	}{
		{nil, "it has 0 bytes"},
		{good[:5], "it has 5 bytes"},
		{good[:len(good)-1], "it is damaged: its checksum is wrong"},
		{changed(0, 'B'), `it begins with 'B', not 'A'`},
		{changed(1, 1), "it is of version 1, and this is version 7"},
		{summed(body[:9]...), "the weight is missing"},
		{summed(append(slices.Clone(body), 0)...), "1 bytes too many"},
		{changed(2, 8), "and this is of"},
	} {
		b := autoOf(t, a.config)
		err := b.Recall(now, now, c.written, nil)
		if !errors.Is(err, errMemory) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%x: %v, want %q", c.written, err, c.says)
		}
		if f := b.Found(); f.By != byNobody || b.Ready(now, limit.One) != now || b.News() != 0 {
			t.Errorf("%x: refused, and yet it found %v, goes at %v, and has %d news", c.written, f, b.Ready(now, limit.One), b.News())
		}
	}
	for i := range good {
		for bit := range 8 {
			b := slices.Clone(good)
			b[i] ^= 1 << bit
			if err := autoOf(t, a.config).Recall(now, now, b, nil); !errors.Is(err, errMemory) {
				t.Fatalf("bit %d of byte %d is another: %v", bit, i, err)
			}
		}
	}
}

// Recall refuses a memory of an Auto with another unit, weight or number of sharers.
func TestMemoryOfAnotherConfig(t *testing.T) {
	a, now := lived(t, 4)
	written := a.AppendMemory(nil, now)
	for name, change := range map[string]func(c *AutoConfig){
		"none": func(*AutoConfig) {}, "unit": func(c *AutoConfig) { c.Unit = limit.Weight },
		"weight": func(c *AutoConfig) { c.Weight++ }, "sharers": func(c *AutoConfig) { c.Sharers++ },
	} {
		c := a.config
		change(&c)
		if err := autoOf(t, c).Recall(now, now, written, nil); errors.Is(err, errMemory) != (name != "none") {
			t.Errorf("another %s: %v", name, err)
		}
	}
}

// Requests sent after the memory was written take their turns: after three more at a pace of 10 s
// the next goes 30 s later. Earlier requests are in it already, and unsent ones do not count.
func TestMemoryOfWhatWasSentSince(t *testing.T) {
	a := autoOf(t, AutoConfig{})
	a.fair.unknown.stage, a.fair.n = measured, 10
	limittest.Admit(a, second(90), limit.One)
	l := limittest.Admit(a, second(100), limit.One)
	a.Settle(second(100), l, &limit.Outcome{Result: limit.Accepted})
	first, step := a.Ready(second(100), limit.One).Sub(second(100)), a.fair.step
	written := a.AppendMemory(nil, second(101))
	for _, c := range []struct {
		sent []limit.Past
		want time.Duration
	}{
		{nil, first},
		{[]limit.Past{{Sent: second(100), Cost: limit.One}, {Sent: second(101), Cost: limit.One}}, first},
		{[]limit.Past{{Sent: second(104), Cost: limit.One}, {Sent: second(103), Cost: limit.One}, {Sent: second(102), Cost: limit.One}}, first + 3*step},
		{[]limit.Past{{Sent: second(104), Cost: limit.One, Result: limit.Unsent}, {Sent: second(104)}}, first},
	} {
		b := autoOf(t, AutoConfig{})
		if err := b.Recall(second(105), second(101), written, c.sent); err != nil {
			t.Fatal(err)
		}
		if got := b.Ready(second(105), limit.One).Sub(second(100)); got != c.want {
			t.Errorf("after %d the next goes %v after the one in the memory, want %v", len(c.sent), got, c.want)
		}
	}
	var ready []time.Duration
	for _, sent := range [][]limit.Past{
		{{Sent: second(150), Cost: limit.One}, {Sent: second(200), Cost: limit.One}, {Sent: second(250), Cost: limit.One}},
		{{Sent: second(250), Cost: limit.One}, {Sent: second(150), Cost: limit.One}, {Sent: second(200), Cost: limit.One}},
	} {
		b := autoOf(t, AutoConfig{})
		if err := b.Recall(second(251), second(101), written, sent); err != nil {
			t.Fatal(err)
		}
		ready = append(ready, b.Ready(second(251), limit.One).Sub(second(250)))
	}
	if ready[0] != step || ready[1] != step {
		t.Errorf("in order the next goes %v after the last, else %v, want %v", ready[0], ready[1], step)
	}
	if min(first, step) < 9*time.Second {
		t.Errorf("the first after %v, others after %v", first, step)
	}
}

// An Auto that stays away goes on doing so, for the rest of that time. If the time of the memory is
// not known, it is all of it.
func TestMemoryOfAnExile(t *testing.T) {
	a := autoOf(t, AutoConfig{})
	now := second(500)
	a.Settle(now, limittest.Admit(a, now, limit.One), &limit.Outcome{Result: limit.Limited, RetryAfter: 10 * time.Minute})
	back := a.Ready(now, limit.One)
	if back < now.Add(10*time.Minute) {
		t.Fatalf("back at %v", back)
	}
	written := a.AppendMemory(nil, now)
	for _, c := range []struct{ passed, known time.Duration }{{4 * time.Minute, 4 * time.Minute}, {4 * time.Minute, 0}, {time.Hour, time.Hour}} {
		const begins = mono.Time(7)
		b := autoOf(t, AutoConfig{})
		if err := b.Recall(begins, begins.Add(-c.known), written, nil); err != nil {
			t.Fatal(err)
		}
		if got, want := b.Ready(begins, limit.One), begins.Add(max(0, back.Sub(now)-c.known)); got != want {
			t.Errorf("%v are known to have passed: goes at %v, want %v", c.known, got, want)
		}
	}
}

// News rises at each refusal, when the search gets further, when a limit is stated, and otherwise
// once a second.
func TestNews(t *testing.T) {
	a := autoOf(t, AutoConfig{})
	seen := a.News()
	hears := func(name string, at float64, r limit.Result, want uint64) {
		t.Helper()
		now := second(at)
		a.Settle(now, limittest.Admit(a, now, limit.One), &limit.Outcome{Result: r})
		if n := a.News(); n != seen+want {
			t.Errorf("%s: %d news, want %d", name, n-seen, want)
		}
		seen = a.News()
	}
	hears("the first answer", 0, limit.Accepted, 1)
	hears("soon after", 0.999, limit.Accepted, 0)
	hears("a second after", 1, limit.Accepted, 1)
	hears("a refusal", 1.1, limit.Limited, 1)
	hears("another", 1.2, limit.Limited, 1)
	hears("served again", 1.3, limit.Accepted, 1)
	hears("and again", 1.4, limit.Accepted, 0)
	a.State(second(1.5), []limit.Rule{{N: 5, Per: time.Minute}})
	if n := a.News(); n != seen+1 {
		t.Errorf("a limit is told: %d news", n-seen)
	}
}

// A file may have any content, with a right checksum. Recall refuses it, or the Auto goes on, and
// waits no longer than it may.
func FuzzMemory(f *testing.F) {
	for seed := range uint64(12) {
		a, now := lived(&testing.T{}, seed)
		b := a.AppendMemory(nil, now)
		f.Add(b[:len(b)-crc32.Size], seed)
	}
	f.Fuzz(func(t *testing.T, b []byte, seed uint64) {
		c := AutoConfig{Unit: limit.Unit(seed % 2 * uint64(limit.Tokens)), Sharers: float64(seed % 3), Weight: float64(1 + seed%2), Alone: seed%4 < 2}
		a, now := autoOf(t, c), second(1e6)
		if err := a.Recall(now, now.Add(-time.Second), binary.LittleEndian.AppendUint32(slices.Clone(b), crc32.ChecksumIEEE(b)), nil); err != nil {
			if !errors.Is(err, errMemory) {
				t.Fatal(err)
			}
			return
		}
		cost := limit.Cost{limit.Requests: 1, limit.Tokens: 300}
		r := rand.New(rand.NewPCG(seed, 5))
		for range 50 {
			ready := a.Ready(now, cost)
			if wait := ready.Sub(now); wait < 0 || wait > a.fair.longest {
				t.Fatalf("waits for %v, and %v is the longest", wait, a.fair.longest)
			}
			now = ready
			o := limit.Outcome{Result: limit.Result(r.IntN(4)), Known: uint8(r.IntN(2)) << c.Unit}
			o.Remaining[c.Unit], o.Reset[c.Unit] = r.Int64N(1000), time.Duration(r.Int64N(int64(time.Hour)))
			a.Settle(now, limittest.Admit(a, now, cost), &o)
			_ = a.Found().String()
		}
		if err := autoOf(t, c).Recall(now, now, a.AppendMemory(nil, now), nil); err != nil && !errors.Is(err, errMemory) {
			t.Fatal(err)
		}
	})
}
