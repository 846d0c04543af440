package node

import (
	"errors"
	"hash/crc32"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"encoding/binary"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

func sample() *Book {
	return &Book{Incarnation: "one", Configuration: "Rolling", Turn: 7, Era: 1 << 63, Shift: -5, Slack: 6, Latest: 1e18, Quiet: 2e18, State: []byte("state"),
		Nodes: []Entry{
			{ID: "a", Name: "host/1", Turn: 3, Open: limit.Cost{1, 0, 5}, Until: 1e18 + 2e9, Next: 1e18 - 1, Want: 9, Mean: limit.Cost{1}, Served: 4, Weight: 1000, Least: 200, Counts: 1500, Splits: true},
			{ID: "b"},
		}}
}

func TestBlob(t *testing.T) {
	b := sample()
	got, err := Decode(b.encode())
	if err != nil || !reflect.DeepEqual(got, b) {
		t.Errorf("of %+v comes %+v, %v", b, got, err)
	}
	blob := b.encode()
	for i := range blob {
		blob[i] ^= 1
		if _, err := Decode(blob); err == nil || !strings.Contains(err.Error(), "damaged") {
			t.Fatalf("byte %d is another, and it is not noticed: %v", i, err)
		}
		blob[i] ^= 1
		if _, err := Decode(blob[:i]); err == nil {
			t.Fatalf("the first %d bytes are taken", i)
		}
	}
	body := blob[:len(blob)-4]
	body[1] = 9
	var version *VersionError
	if _, err := Decode(binary.BigEndian.AppendUint32(body, crc32.ChecksumIEEE(body))); !errors.As(err, &version) || version.Version != 9 {
		t.Errorf("of another version: %v", err)
	}
}

// Programs without reserves go on beside others, until somebody leaves a part free: then they say that they are
// of an earlier version.
func TestVersionOfABlob(t *testing.T) {
	b := sample()
	if v := b.encode()[1]; v != 6 {
		t.Errorf("a book without reserves has version %d", v)
	}
	b.Nodes[1].Leaves, b.Nodes[1].Want, b.Nodes[1].Yielding = 250, 7, 5
	b.Nodes[0].Keeps = limit.Cost{1, 0, 2}
	blob := b.encode()
	if got, err := Decode(blob); blob[1] != 7 || err != nil || !reflect.DeepEqual(got, b) {
		t.Errorf("version %d: of %+v comes %+v, %v", blob[1], b, got, err)
	}
}

// A value that no book has is damage, and so is anything behind the last entry. At the bound it is valid.
func TestValuesOfABlob(t *testing.T) {
	for name, change := range map[string]func(b *Book, over int64){
		"an instant": func(b *Book, over int64) { b.Latest, b.Quiet = 0, mono.Max+mono.Time(over) },
		"an arrival": func(b *Book, over int64) { b.Nodes[1].Came = arrivals - 1 + arrival(over) },
		"nodes":      func(b *Book, over int64) { b.Nodes = make([]Entry, 1<<16+int(over)) },
	} {
		for over, valid := range map[int64]bool{0: true, 1: false} {
			b := sample()
			change(b, over)
			if _, err := Decode(b.encode()); (err == nil) != valid || !valid && !strings.Contains(err.Error(), "damaged") {
				t.Errorf("%s, %d beyond the last: %v", name, over, err)
			}
		}
	}
	whole := sample().encode()
	for n, text := range map[int]string{1: "too many", -1: "damaged"} {
		body := slices.Clone(whole[:len(whole)-4])
		if n < 0 {
			body = body[:len(body)-1]
		} else {
			body = append(body, 0)
		}
		if _, err := Decode(binary.BigEndian.AppendUint32(body, crc32.ChecksumIEEE(body))); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("with %d bytes more: %v", n, err)
		}
	}
}

// A book lists at most 64 lives, the latest: that is of the format, since programs refuse more.
func TestMostLives(t *testing.T) {
	for lives, valid := range map[uint32]bool{63: true, 64: true, 65: false} {
		b := sample()
		for life := range lives {
			b.Lives = append(b.Lives, 1+life)
		}
		if got, err := Decode(b.encode()); (err == nil) != valid || valid && !slices.Equal(got.Lives, b.Lives) {
			t.Errorf("of %d lives come %v, %v", lives, got.Lives, err)
		}
		if all := lineage(b, &Book{Life: 99}); len(all) != 64 || all[63] != 99 || all[0] != lives-61 {
			t.Errorf("after %d lives and two more: %v", lives, all)
		}
	}
}

// Any bytes with a checksum that fits give an error or a book, and a node makes a turn of it. First it
// may wait, since a book may be overdue.
func FuzzDecode(f *testing.F) {
	blob := sample().encode()
	f.Add(blob[:len(blob)-4])
	f.Fuzz(func(t *testing.T, body []byte) {
		b, err := Decode(binary.BigEndian.AppendUint32(body, crc32.ChecksumIEEE(body)))
		if err != nil {
			return
		}
		if again, err := Decode(b.encode()); err != nil || again.Turn != b.Turn || len(again.Nodes) != len(b.Nodes) {
			t.Fatalf("of %+v comes %+v, %v", b, again, err)
		}
		n := New(Config{New: func() limit.Limiter { return limit.MustRolling(5, time.Second) }, ID: "me"})
		b.Configuration = n.says
		for i := range 3 {
			at := mono.Time(0).Add(time.Duration(i) * 2 * time.Second)
			n.Asked(limit.One, 0)
			n.Begin(at)
			_, err := n.Read(at, at, Reading{Clock: int64(b.Latest), Wall: int64(b.Latest), Incarnation: b.Incarnation, Steady: true, Blob: b.encode()})
			if err != nil && !(i == 0 && errors.Is(err, ErrWait)) {
				t.Fatalf("turn %d: %v", i, err)
			}
			n.End(at, err)
		}
	})
}

// The bounds hold for a clock that runs 50 ppm fast or slow, and a clock that was set is noticed.
func TestBounds(t *testing.T) {
	for _, ppm := range []float64{-50, 0, 50} {
		ledger := func(p mono.Time) mono.Time { return 1e15 + p + mono.Time(float64(p)*ppm/1e6) }
		b, book := bounds{}, &Book{Era: 1}
		for i := range mono.Time(200) {
			began := i * mono.Time(time.Second)
			at, read := began.Add(time.Duration(i%7)*time.Millisecond), began.Add(time.Duration(7+i%5)*time.Millisecond)
			if b.known {
				if got, unsure := b.check(began, read, ledger(at)); got != ledger(at) || unsure != 0 {
					t.Fatalf("%v ppm: a right clock is taken for a wrong one at %v", ppm, at)
				}
				off := 3 * time.Second
				if i%2 == 0 {
					off = -off
				}
				got, unsure := b.check(began, read, ledger(at).Add(off))
				if got > ledger(at) || got.Add(unsure) < ledger(at) {
					t.Fatalf("%v ppm: a clock that was set by %v is corrected to %v and %v, not %v", ppm, off, got, unsure, ledger(at))
				}
			}
			b = b.with(sampled(began, read, ledger(at), book))
			for _, d := range []time.Duration{-time.Second, 0, time.Second / 2} {
				p := read.Add(d)
				if lo, hi := b.by(p); p.Add(lo) > ledger(p) || p.Add(hi) < ledger(p) {
					t.Fatalf("%v ppm: at %v it is %v, not within %v and %v", ppm, p, ledger(p), p.Add(lo), p.Add(hi))
				}
			}
		}
	}
}

// A reading at either bound is possible. Beyond, the time is the earliest possible, and how far it may be behind is
// told.
func TestReadingAtTheBounds(t *testing.T) {
	const began, read = 1000 * ms, 1010 * ms
	b := bounds{known: true, at: began, lo: 5 * time.Second, hi: 6 * time.Second}
	lo, _ := b.by(began)
	_, hi := b.by(read)
	least, most := began.Add(lo), read.Add(hi)
	for _, c := range []struct {
		l, at  mono.Time
		unsure time.Duration
	}{{least, least, 0}, {least + 1, least + 1, 0}, {most, most, 0}, {least - 1, least, most.Sub(least)}, {most + 1, least, most.Sub(least)}} {
		if at, unsure := b.check(began, read, c.l); at != c.at || unsure != c.unsure {
			t.Errorf("%v after the least: %v and %v, want %v and %v", c.l.Sub(least), at, unsure, c.at, c.unsure)
		}
	}
}

// A node may send from an instant of the ledger on. It waits for the first instant of its own clock at
// which the ledger has surely come to that. This holds whatever both clocks do meanwhile.
func TestProcessIsTheFirstSureInstant(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	var n Node
	sure := func(p, l mono.Time) bool {
		lo, _ := n.bounds.by(p)
		return p.Add(lo) >= l
	}
	for range 10_000 {
		read := mono.Time(rng.Int64N(1e12))
		lo := time.Duration(rng.Int64N(2e12) - 1e12)
		n.bounds = bounds{known: true, at: read, lo: lo, hi: lo + 1e6}
		p := read.Add(time.Duration(rng.Int64N(1e12)))
		now, _ := n.bounds.by(p)
		if l := p.Add(now); n.process(p, l) != p {
			t.Fatalf("%+v: at %v the ledger has come to %v, and %v is waited for", n.bounds, p, l, n.process(p, l))
		}
		l := p.Add(now + time.Duration(1+rng.Int64N(1e12)))
		if at := n.process(p, l); !sure(at, l) || sure(at-3, l) {
			t.Fatalf("%+v: for %v, from %v on, %v is waited for: sure then %v, 3 ns before %v", n.bounds, l, p, at, sure(at, l), sure(at-3, l))
		}
	}
}
