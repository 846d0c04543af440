package host

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// plan is what a client does: its sleeps, after which it leaves.
type plan struct {
	name   string
	sleeps []time.Duration
}

type wakeUp struct {
	at   mono.Time
	name string
}

// model returns the wake-ups of all clients, from a list that is sorted anew after each.
func model(plans []plan) (all []wakeUp) {
	type event struct {
		wakeUp
		turn, next int
		sleeps     []time.Duration
	}
	var list []event
	for _, p := range plans {
		list = append(list, event{wakeUp{mono.Time(p.sleeps[0]), p.name}, 0, 1, p.sleeps})
	}
	for len(list) > 0 {
		slices.SortFunc(list, func(a, b event) int {
			return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.turn, b.turn), strings.Compare(a.name, b.name))
		})
		first := list[0]
		all = append(all, first.wakeUp)
		if list = list[1:]; first.next < len(first.sleeps) {
			list = append(list, event{wakeUp{first.at + mono.Time(first.sleeps[first.next]), first.name}, len(all), first.next + 1, first.sleeps})
		}
	}
	return all
}

// played returns the wake-ups of sleepers whose clients come in the order of plans.
func played(t *testing.T, plans []plan) (all []wakeUp) {
	t.Helper()
	s, left := newSleepers(len(plans)), map[string][]time.Duration{}
	for i, p := range plans {
		if name, ok := s.next(); ok {
			t.Fatalf("%s wakes after %d of %d clients have come", name, i, len(plans))
		}
		if err := s.sleep(p.name, p.sleeps[0]); err != nil {
			t.Fatal(err)
		}
		left[p.name] = p.sleeps[1:]
	}
	for {
		name, ok := s.next()
		if !ok {
			return all
		}
		all = append(all, wakeUp{s.now, name})
		if other, ok := s.next(); ok {
			t.Fatalf("%s and %s are awake at once", name, other)
		}
		var err error
		if rest := left[name]; len(rest) > 0 {
			left[name] = rest[1:]
			err = s.sleep(name, rest[0])
		} else {
			err = s.leave(name)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestSleepersModel: the order of wake-ups is that of a sorted list of events, and does not depend
// on which client comes first. Sleeps are short, so that many end at one instant.
func TestSleepersModel(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 0))
		plans := make([]plan, 1+rng.IntN(6))
		for i := range plans {
			plans[i] = plan{fmt.Sprintf("c%d", i), make([]time.Duration, 1+rng.IntN(20))}
			for j := range plans[i].sleeps {
				plans[i].sleeps[j] = time.Duration(rng.IntN(4))
			}
		}
		want := model(plans)
		rng.Shuffle(len(plans), func(i, j int) { plans[i], plans[j] = plans[j], plans[i] })
		if got := played(t, plans); !slices.Equal(got, want) {
			t.Fatalf("seed %d: %v\nwakes %v\nwant  %v", seed, plans, got, want)
		}
	}
}

// TestSleepersErrors: what a client does wrong is said with its name, and changes nothing.
func TestSleepersErrors(t *testing.T) {
	s := newSleepers(2)
	check := func(err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	check(s.sleep("", 1), "the name is missing")
	check(s.sleep("a", -1), `client "a": a sleep of -1ns is negative`)
	check(s.leave("a"), `client "a" has never slept`)
	s.sleep("a", 3)
	if got, want := s.stands(), `1 of 2 clients have slept: "a"`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	check(s.sleep("a", 1), `client "a" sleeps already`)
	s.sleep("b", 2)
	check(s.sleep("c", 1), `client "c" is not one of the 2 clients of this clock: "a", "b"`)
	if name, ok := s.next(); name != "b" || !ok || s.now != 2 {
		t.Errorf("%s wakes at %d", name, s.now)
	}
	if got, want := s.stands(), `client "b" is awake, and neither sleeps nor leaves`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	check(s.sleep("b", time.Duration(mono.Max)), `client "b": the virtual clock ends before`)
	s.leave("b")
	check(s.sleep("b", 1), `client "b" has left`)
	if name, ok := s.next(); name != "a" || !ok || s.now != 3 {
		t.Errorf("%s wakes at %d", name, s.now)
	}
}
