package keyring_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/paceline-go/paceline/internal/core/keyring"
)

// census is Owners, and what is true of their keys.
type census struct {
	*testing.T
	*keyring.Owners
	config keyring.OwnersConfig
	rng    *rand.Rand
	keys   []string
	whose  map[string]string // the organization of each key; empty: its answers name none
	met    map[string]bool
	log    []string
}

func newCensus(t *testing.T, seed uint64, n, orgs int) *census {
	rng := rand.New(rand.NewPCG(seed, 1))
	c := &census{T: t, rng: rng, whose: map[string]string{}, met: map[string]bool{}, config: keyring.OwnersConfig{
		Most: 1 + rng.IntN(4), FirstNames: rng.IntN(2) == 0, MaxKeys: n + rng.IntN(3) - 1,
	}}
	mute := rng.IntN(4) == 0
	for i := range n {
		k := fmt.Sprint("k", i)
		c.keys = append(c.keys, k)
		if !mute {
			c.whose[k] = fmt.Sprint("org", rng.IntN(orgs))
		}
	}
	c.Owners = keyring.NewOwners(c.config)
	return c
}

// step has one thing happen, and returns the moves.
func (c *census) step() (moves []string) {
	k := c.keys[c.rng.IntN(len(c.keys))]
	if !c.met[k] {
		c.log = append(c.log, "meet "+k)
		c.met[k] = c.Meet(k)
		return nil
	}
	before, was := map[string][]*keyring.Account{}, map[string]bool{}
	for _, k := range c.keys {
		before[k] = c.CountsIn(k)
		was[k] = c.Known(k) != nil
	}
	switch c.rng.IntN(6) {
	case 0:
		c.log = append(c.log, "alone "+k)
		c.Alone(k)
		moves = []string{k}
	case 1: // its organization changes
		if c.whose[k] != "" {
			c.whose[k] = fmt.Sprint("org", c.rng.IntN(4))
		}
		fallthrough
	case 2, 3:
		c.log = append(c.log, "answer "+k+" of "+c.whose[k])
		if name := c.whose[k]; name != "" {
			moves = c.Named(k, name)
		} else {
			moves = c.Unnamed(k, c.rng.IntN(2) == 0)
		}
	}
	for i, k := range moves {
		if i > 0 && c.Known(k) != nil && c.Known(moves[i-1]) == nil {
			c.Fatalf("%q: %s is known, and moves after %s", c.log, k, moves[i-1])
		}
	}
	for _, k := range c.keys {
		now := c.CountsIn(k)
		known := c.Known(k) != nil
		if c.met[k] && (!slices.Equal(before[k], now) || known != was[k]) && !slices.Contains(moves, k) {
			c.Fatalf("%q: %s is not among the moves, %q", c.log, k, moves)
		}
	}
	return moves
}

// check is K1, K3 and K6, by what the answers so far have shown.
func (c *census) check() {
	met := 0
	of := map[*keyring.Account]string{} // the name of each account
	for _, k := range c.keys {
		in := c.CountsIn(k)
		name, known := "", c.Known(k) != nil
		if known {
			name = c.Known(k).Name
		}
		switch {
		case len(in) == 0 || len(in) > max(c.config.Most, 1):
			c.Fatalf("%q: %s counts in %v", c.log, k, in)
		case !c.met[k] && (len(in) != 1 || in[0].Home != k || known):
			c.Fatalf("%q: %s is new, and counts in %v", c.log, k, in)
		case known && len(in) != 1:
			c.Fatalf("%q: K1: %s is known, and counts in %v", c.log, k, in)
		case known && c.Single(k):
			c.Fatalf("%q: K3: %s is known, and has one request in flight", c.log, k)
		}
		if c.met[k] {
			met++
		}
		if name != "" {
			if was, is := of[in[0]]; is && was != name {
				c.Fatalf("%q: K1: %v is of %s and %s", c.log, in[0], was, name)
			}
			of[in[0]] = name
		}
	}
	if met > max(c.config.MaxKeys, 0) {
		c.Fatalf("%q: K6: %d keys are remembered, with MaxKeys %d", c.log, met, c.config.MaxKeys)
	}
	for a, name := range of {
		for b, other := range of {
			if a != b && name == other {
				c.Fatalf("%q: K1: %s has the accounts %v and %v", c.log, name, a, b)
			}
		}
		for _, k := range c.keys { // a newcomer may belong to each of them
			if c.met[k] && c.Known(k) == nil && !c.Single(k) && !c.muted() && !slices.Contains(c.CountsIn(k), a) {
				c.Fatalf("%q: K1: %s counts in %v, and not in %v of %s", c.log, k, c.CountsIn(k), a, name)
			}
		}
	}
}

func (c *census) muted() bool { return c.whose[c.keys[0]] == "" }

func runCensus(t *testing.T, seed uint64, keys, orgs int) {
	c := newCensus(t, seed, keys, orgs)
	for range 60 {
		c.step()
		c.check()
	}
}

// K1: a known key counts in one account, which is that of all keys of its organization. A newcomer
// counts in all accounts to which it may belong. K3: or it has one request in flight. K6: not more
// keys are remembered than MaxKeys. And Owners return every move, and no other.
func TestOwners(t *testing.T) {
	for seed := range uint64(3000) {
		runCensus(t, seed, 1+int(seed%7), 1+int(seed/7%4))
	}
}

func FuzzOwners(f *testing.F) {
	f.Add(uint64(1), uint8(3), uint8(2))
	f.Fuzz(func(t *testing.T, seed uint64, keys, orgs uint8) { runCensus(t, seed, 1+int(keys%12), 1+int(orgs%5)) })
}

// what is where a key counts, in words. A second account of one home has a 1.
func what(o *keyring.Owners, keys ...string) (s string) {
	begun := map[string][]*keyring.Account{}
	for _, k := range keys {
		s += k + ":"
		for _, a := range o.CountsIn(k) {
			if !slices.Contains(begun[a.Home], a) {
				begun[a.Home] = append(begun[a.Home], a)
			}
			if s += a.Home; begun[a.Home][0] != a {
				s += "1"
			}
		}
		if o.Single(k) {
			s += "!"
		}
		s += " "
	}
	return s
}

// Owners of a Transport, where accounts bear their first key's name, and of a Pool.
func TestOwnersTimeline(t *testing.T) {
	transport := keyring.OwnersConfig{MaxKeys: 9, Most: 1, FirstNames: true}
	pool := keyring.OwnersConfig{MaxKeys: 9, Most: 7}
	type step struct {
		does, key, want string
		served          bool
	}
	for name, c := range map[string]struct {
		config keyring.OwnersConfig
		steps  []step
	}{
		"the first key names": {transport, []step{
			{"meet", "a", "a:a b:b c:c ", true}, {"meet", "b", "a:a b:a c:c ", true}, {"meet", "c", "a:a b:a c:a ", true},
			{"X", "b", "a:a b:a c:a ", true}, {"X", "a", "a:a b:a c:a ", true}, {"Y", "c", "a:a b:a c:c ", true}}},
		"the first key is of another": {transport, []step{
			{"meet", "a", "a:a b:b c:c ", true}, {"meet", "b", "a:a b:a c:c ", true}, {"meet", "c", "a:a b:a c:a ", true},
			{"X", "b", "a:a b:a c:a ", true}, {"Y", "a", "a:a b:b c:a! ", true}, {"alone", "c", "a:a b:b c:c! ", true}, {"X", "c", "a:a b:b c:b ", true}}},
		"the first key does not answer": {transport, []step{
			{"meet", "a", "a:a b:b c:c ", true}, {"meet", "b", "a:a b:a c:c ", true}, {"X", "b", "a:a b:a c:c ", true},
			{"alone", "b", "a:a b:b! c:c ", true}, {"X", "b", "a:a b:b c:c ", true}, {"X", "a", "a:b b:b c:c ", true}, {"meet", "c", "a:b b:b c:b ", true}}},
		"nothing is named": {transport, []step{
			{"meet", "a", "a:a b:b c:c ", true}, {"meet", "b", "a:a b:a c:c ", true}, {"", "b", "a:a b:b c:c ", true},
			{"meet", "c", "a:a b:b c:c ", true}, {"X", "c", "a:a b:b c:c ", true}, {"X", "b", "a:a b:c c:c ", true}}},
		"the first answer names": {pool, []step{
			{"meet", "a", "a:a b:b c:c ", true}, {"meet", "b", "a:a b:a c:c ", true}, {"meet", "c", "a:a b:a c:a ", true},
			{"X", "b", "a:a b:a c:a ", true}, {"Y", "c", "a:ac b:a c:c ", true}, {"Z", "a", "a:a b:a1 c:c ", true}, {"Y", "b", "a:a b:a1 c:c ", true}}},
		"a refusal names nothing": {transport, []step{
			{"meet", "a", "a:a b:b c:c ", true}, {"meet", "b", "a:a b:a c:c ", true}, {"", "b", "a:a b:b c:c ", false},
			{"meet", "c", "a:a b:b c:a ", true}, {"X", "a", "a:a b:b c:a ", true}, {"X", "b", "a:a b:a c:a ", true}}},
		"a key has two names": {transport, []step{
			{"meet", "a", "a:a b:b c:c ", true}, {"X", "a", "a:a b:b c:c ", true}, {"meet", "b", "a:a b:a c:c ", true},
			{"X", "b", "a:a b:a c:c ", true}, {"Z", "b", "a:a b:a c:c ", true}, {"Y", "a", "a:a b:a c:c ", true},
			{"meet", "c", "a:a b:a c:a ", true}, {"Y", "c", "a:a b:a c:c ", true}, {"X", "c", "a:a b:a c:c ", true}}},
		"the first key names none": {transport, []step{
			{"meet", "a", "a:a b:b c:c ", true}, {"meet", "b", "a:a b:a c:c ", true}, {"", "a", "a:a b:b c:c ", false},
			{"X", "b", "a:a b:b c:c ", true}, {"meet", "c", "a:a b:b c:b ", true}}},
		"the first has no name": {pool, []step{
			{"meet", "a", "a:a b:b c:c ", true}, {"meet", "b", "a:a b:a c:c ", true}, {"", "a", "a:a b:a c:c ", false},
			{"meet", "c", "a:a b:a c:a ", true}, {"X", "b", "a:a b:b c:ab ", true}, {"", "c", "a:a b:b c:c ", false},
			{"X", "c", "a:a b:b c:b ", true}}},
		"another than the first has no name": {pool, []step{
			{"meet", "a", "a:a b:b c:c ", true}, {"meet", "b", "a:a b:a c:c ", true}, {"", "b", "a:ab b:b c:c ", false},
			{"X", "a", "a:a b:b c:c ", true}}},
		"too many keys": {keyring.OwnersConfig{MaxKeys: 1, Most: 1}, []step{
			{"meet", "a", "a:a b:b c:c ", true}, {"meet", "b", "a:a b:b c:c ", true}, {"X", "b", "a:a b:b c:c ", true}}},
	} {
		o := keyring.NewOwners(c.config)
		for _, s := range c.steps {
			switch s.does {
			case "meet":
				o.Meet(s.key)
			case "alone":
				o.Alone(s.key)
			case "":
				o.Unnamed(s.key, s.served)
			default:
				o.Named(s.key, s.does)
			}
			if got := what(o, "a", "b", "c"); got != s.want {
				t.Errorf("%s: %s %s: %s, want %s", name, s.does, s.key, got, s.want)
			}
		}
	}
}

// What somebody says beforehand counts, and an answer corrects it unless it is sure.
func TestOwnersThatAreSaid(t *testing.T) {
	o := keyring.NewOwners(keyring.OwnersConfig{MaxKeys: 9, Most: 1})
	o.Say("a", "X", true)
	o.Say("b", "X", false)
	if got := what(o, "a", "b"); got != "a:a b:a " {
		t.Error(got)
	}
	if in := o.Known("b"); in == nil || in.Name != "X" {
		t.Errorf("b is in %v", in)
	}
	if moves := o.Named("a", "Y"); moves != nil {
		t.Errorf("what is sure moves: %v", moves)
	}
	if moves := o.Named("b", "Y"); !slices.Equal(moves, []string{"b"}) || what(o, "a", "b") != "a:a b:b " {
		t.Errorf("moves %v", moves)
	}
}

// K6: what a key is said to be of, and then named, takes three accounts at most.
func TestOrganizationsComeAndGo(t *testing.T) {
	for _, first := range []bool{false, true} {
		o := keyring.NewOwners(keyring.OwnersConfig{MaxKeys: 3, Most: 100, FirstNames: first})
		o.Meet("a")
		o.Meet("b")
		for n := range 100 {
			o.Unnamed("a", false)
			o.Named("a", fmt.Sprint("org", n))
			if in := o.CountsIn("b"); len(in) > 3 || !slices.Contains(in, o.CountsIn("a")[0]) {
				t.Fatalf("b may belong to %v, and a is in %v", in, o.CountsIn("a"))
			}
		}
	}
}

// Only of a newcomer, and of the first key, an answer without a name shows something.
func TestUnnamedShowsNothingTwice(t *testing.T) {
	o := keyring.NewOwners(keyring.OwnersConfig{MaxKeys: 3, Most: 1, FirstNames: true})
	homes := func() {
		t.Helper()
		for _, k := range []string{"a", "b", "c", "d"} {
			if in, known := o.CountsIn(k), o.Known(k); known != nil && (len(in) != 1 || known != in[0]) {
				t.Errorf("%s has its home at %v, and counts in %v", k, known, in)
			}
		}
	}
	nothing := func(keys ...string) {
		t.Helper()
		for _, k := range keys {
			if moved := o.Unnamed(k, false); len(moved) > 0 {
				t.Errorf("an answer of %s without a name moves %q", k, moved)
			}
		}
		homes()
	}
	nothing("a", "b", "c", "d")
	for _, k := range []string{"a", "b", "c"} {
		o.Meet(k)
	}
	homes()
	o.Named("a", "X")
	nothing("a", "d")
	o.Named("b", "X")
	nothing("a", "b", "d")
	if moved := o.Unnamed("c", false); !slices.Equal(moved, []string{"c"}) {
		t.Errorf("an answer of c without a name moves %q, want c", moved)
	}
	nothing("a", "b", "c", "d")
	if b, c := o.Known("b").Home, o.Known("c").Home; b != "a" || c != "c" {
		t.Errorf("homes %s and %s", b, c)
	}
}
