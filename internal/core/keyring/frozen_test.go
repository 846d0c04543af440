package keyring_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/keyring"
	"github.com/paceline-go/paceline/limit/mono"
)

// What counts is there until it does not, whatever happens; what is useful, while there is room.
func TestNothingThatCountsIsForgotten(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 1))
		s := keyring.NewFrozenStore[int](4000)
		kept := map[string]keyring.FrozenMemory[int]{}
		now := mono.Time(0)
		for range 500 {
			now += mono.Time(rng.IntN(5))
			name := fmt.Sprint("name", rng.IntN(60))
			switch rng.IntN(3) {
			case 0:
				m := keyring.FrozenMemory[int]{State: fmt.Sprint(now), Counts: now + mono.Time(rng.IntN(100)-20), Useful: now + mono.Time(rng.IntN(100)-50)}
				s.Put(now, name, m)
				kept[name] = m
			case 1:
				m, ok := s.Take(name)
				was := kept[name]
				delete(kept, name)
				if was.Counts > now && m != was {
					t.Fatalf("seed %d: at %d: %v: %+v, want %+v", seed, now, name, m, was)
				}
				if ok && m != was {
					t.Fatalf("seed %d: %v was never put in", seed, m)
				}
			case 2:
				first, full := s.Full(now)
				next := mono.Time(1 << 62)
				for _, m := range kept {
					if m.Counts > now {
						next = min(next, m.Counts)
					}
				}
				if full && first != next && first > now {
					t.Fatalf("seed %d: it is full until %d, want %d", seed, first, next)
				}
				if full != (s.Bytes() >= s.Most()) {
					t.Fatalf("seed %d: full %v with %d of %d bytes", seed, full, s.Bytes(), s.Most())
				}
			}
		}
		for name := range kept {
			s.Take(name)
		}
		if s.Len() != 0 || s.Bytes() != 0 {
			t.Errorf("seed %d: %d are left, with %d bytes", seed, s.Len(), s.Bytes())
		}
	}
}

func TestItIsSaidOnceThatMostIsInUse(t *testing.T) {
	s := keyring.NewFrozenStore[int](1600)
	var said strings.Builder
	for i := range 12 {
		s.Put(0, fmt.Sprint(i), keyring.FrozenMemory[int]{Counts: mono.Time(time.Second)})
		if s.Warns() {
			said.WriteString(fmt.Sprint(i, " of ", s.Bytes(), " "))
		}
	}
	for i := range 12 {
		s.Take(fmt.Sprint(i))
		s.Warns()
	}
	for i := range 12 {
		s.Put(0, fmt.Sprint(i), keyring.FrozenMemory[int]{Counts: mono.Time(time.Second)})
		if s.Warns() {
			said.WriteString(fmt.Sprint(i))
		}
	}
	if want := "7 of 1336 7"; said.String() != want {
		t.Errorf("it is said at %q, want %q", said.String(), want)
	}
}

// The bytes that the Store counts are those that it takes, to a tenth.
func TestBytesAreThoseOfTheHeap(t *testing.T) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	s := keyring.NewFrozenStore[int](64 << 20)
	for i := range 30_000 {
		s.Put(0, fmt.Sprintf("key api.example.com tenant-%08d", i), keyring.FrozenMemory[int]{State: string(make([]byte, 45)), Counts: mono.Time(1 + i)})
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	heap := float64(after.HeapAlloc) - float64(before.HeapAlloc)
	t.Logf("%d partitions: %.0f bytes each, counted as %d", s.Len(), heap/float64(s.Len()), s.Bytes()/int64(s.Len()))
	if ratio := heap / float64(s.Bytes()); ratio > 1.1 || ratio < 0.7 {
		t.Errorf("the heap has %.2f times the counted bytes", ratio)
	}
	runtime.KeepAlive(s)
}

// Under other names, memories are found, forgotten in their time, and counted as before; a copy is one more.
func TestFrozenUnderOtherNames(t *testing.T) {
	s := keyring.NewFrozenStore[int](4000)
	for i, name := range []string{"a", "bb", "c"} {
		s.Put(0, name, keyring.FrozenMemory[int]{State: name, Counts: mono.Time(10 * (i + 1))})
	}
	next := map[string]string{"a": "bb", "bb": "a longer name than before", "c": "c"}
	s.Rename(func(name string, _ *keyring.FrozenMemory[int]) string { return next[name] })
	s.Copy(0, func(name string, _ *keyring.FrozenMemory[int]) (string, bool) { return "d", name == "bb" })
	for _, c := range []struct {
		at   mono.Time
		name string
		want string // empty: it is forgotten
	}{{9, "d", "a"}, {9, "a", ""}, {9, "bb", "a"}, {19, "a longer name than before", "bb"}, {29, "c", "c"}} {
		s.Full(c.at)
		if m, ok := s.Take(c.name); ok != (c.want != "") || m.State != c.want {
			t.Errorf("at %d, %q is %+v, want %q", c.at, c.name, m, c.want)
		}
	}
	if s.Len() != 0 || s.Bytes() != 0 {
		t.Errorf("%d are left, with %d bytes", s.Len(), s.Bytes())
	}
}
