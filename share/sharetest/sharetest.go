// Package sharetest contains the tests that every share.Store (a database that holds shared limits)
// has to pass. If you write a Store for another database, run these tests on your Store.
package sharetest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/paceline-go/paceline/share"
)

// Run tests a store. Each call of open returns a new connection to the same store, as another
// process has it. open closes the connection when the test ends. Keys begin with the name of the
// test.
func Run(t *testing.T, open func(t *testing.T) share.Store) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, open func(t *testing.T) share.Store)
	}{
		{"new", fresh}, {"counts", counts}, {"refuses", refuses}, {"slow", slow}, {"clock", ticks}, {"keys", keys},
		{"bytes", bytes},
		{"cancelled", cancelled}, {"ends", ends}, {"incarnation", incarnation}, {"forgets", forgets}, {"remade", remade},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, open) })
	}
}

func ctx(t *testing.T) context.Context {
	c, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return c
}

// errNo is the error of f.
var errNo = errors.New("f says no")

// read returns a reading, and puts nothing.
func read(t *testing.T, s share.Store, key string) (r share.Reading) {
	t.Helper()
	err := s.Turn(ctx(t), key, func(in share.Reading) ([]byte, error) {
		r = in
		return nil, errNo
	})
	if err != errNo { // the error itself, and not wrapped
		t.Fatalf("Turn returned %v, and f %v", err, errNo)
	}
	return r
}

func put(t *testing.T, s share.Store, key, blob string) {
	t.Helper()
	if err := s.Turn(ctx(t), key, func(share.Reading) ([]byte, error) { return []byte(blob), nil }); err != nil {
		t.Fatal(err)
	}
}

func fresh(t *testing.T, open func(*testing.T) share.Store) {
	s := open(t)
	if r := read(t, s, t.Name()); r.Blob != nil {
		t.Errorf("a key that nobody put has %q", r.Blob)
	}
	if r := read(t, s, t.Name()); r.Blob != nil {
		t.Errorf("a key that was only read has %q", r.Blob)
	}
}

// Each turn counts once, whoever takes it.
func counts(t *testing.T, open func(*testing.T) share.Store) {
	const nodes, turns = 8, 25
	var wg sync.WaitGroup
	for range nodes {
		s := open(t)
		wg.Go(func() {
			for done := 0; done < turns; {
				err := s.Turn(ctx(t), t.Name(), func(r share.Reading) ([]byte, error) {
					n := uint64(0)
					if len(r.Blob) == 8 {
						n = binary.BigEndian.Uint64(r.Blob)
					}
					return binary.BigEndian.AppendUint64(nil, n+1), nil
				})
				if err != nil {
					t.Errorf("a turn among %d: %v", nodes, err)
					return
				}
				done++
			}
		})
	}
	wg.Wait()
	if r := read(t, open(t), t.Name()); binary.BigEndian.Uint64(append(r.Blob, make([]byte, 8)...)) != nodes*turns {
		t.Errorf("%d turns come to %x", nodes*turns, r.Blob)
	}
}

func refuses(t *testing.T, open func(*testing.T) share.Store) {
	s := open(t)
	put(t, s, t.Name(), "before")
	read(t, s, t.Name())
	if r := read(t, s, t.Name()); string(r.Blob) != "before" {
		t.Errorf("after an error of f there is %q", r.Blob)
	}
}

// A slow f holds up no other turn. It is called again with the blob that is there then.
func slow(t *testing.T, open func(*testing.T) share.Store) {
	a, b := open(t), open(t)
	put(t, a, t.Name(), "0")
	calls := 0
	err := a.Turn(ctx(t), t.Name(), func(r share.Reading) ([]byte, error) {
		calls++
		if calls == 1 {
			began := time.Now()
			put(t, b, t.Name(), "b")
			if d := time.Since(began); d > 20*time.Second {
				t.Errorf("the other was held up for %v", d)
			}
			return []byte("lost"), nil
		}
		if string(r.Blob) != "b" {
			t.Errorf("the second time it reads %q", r.Blob)
		}
		return append(r.Blob, 'a'), nil
	})
	if err != nil || calls != 2 {
		t.Errorf("%d calls, %v", calls, err)
	}
	if r := read(t, b, t.Name()); string(r.Blob) != "ba" {
		t.Errorf("there is %q", r.Blob)
	}
}

// The clock goes by nanoseconds of real time, and all connections have the same clock.
func ticks(t *testing.T, open func(*testing.T) share.Store) {
	a := open(t)
	before := time.Now()
	first := read(t, a, t.Name())
	time.Sleep(100 * time.Millisecond)
	second := read(t, open(t), t.Name()) // its clock does not begin with the connection
	d, most := time.Duration(second.Clock-first.Clock), time.Since(before)
	if d < 90*time.Millisecond || d > most+50*time.Millisecond {
		t.Errorf("in 100 ms to %v its clock went on by %v", most, d)
	}
	if off := time.Until(time.Unix(0, second.Wall)); off > 24*time.Hour || off < -24*time.Hour {
		t.Errorf("its wall clock is off by %v", off)
	}
}

// Each name is a key of its own, to the last byte, with any letters and signs, in up to 200 bytes.
func keys(t *testing.T, open func(*testing.T) share.Store) {
	s := open(t)
	long := t.Name() + strings.Repeat("ä", 100)
	for len(long) >= 200 {
		_, size := utf8.DecodeLastRuneInString(long)
		long = long[:len(long)-size]
	}
	long += strings.Repeat("x", 199-len(long))
	all := []string{"", " ", " 'ä\"{}:%", "/a", "/A", "/A ", "/á", "/A/", "/A\n", "/*", "/?", "\\"}
	for i := range all {
		all[i] = t.Name() + all[i]
	}
	all = append(all, long, long+"y", long+"z")
	for _, key := range all {
		put(t, s, key, "of "+key)
	}
	for _, key := range all {
		if r := read(t, s, key); string(r.Blob) != "of "+key {
			t.Errorf("%q has %q", key, r.Blob)
		}
	}
}

// A blob may have any bytes, and many.
func bytes(t *testing.T, open func(*testing.T) share.Store) {
	s := open(t)
	blob := make([]byte, 200_000)
	for i := range blob {
		blob[i] = byte(i * i >> 3)
	}
	put(t, s, t.Name(), string(blob))
	if r := read(t, s, t.Name()); string(r.Blob) != string(blob) {
		t.Errorf("of %d bytes come back %d others", len(blob), len(r.Blob))
	}
}

func cancelled(t *testing.T, open func(*testing.T) share.Store) {
	s := open(t)
	put(t, s, t.Name(), "there")
	c, cancel := context.WithCancel(context.Background())
	cancel()
	called := false
	err := s.Turn(c, t.Name(), func(share.Reading) ([]byte, error) {
		called = true
		return []byte("put"), nil
	})
	if err == nil {
		t.Error("a turn with a context that is done was put")
	}
	if r := read(t, s, t.Name()); string(r.Blob) == "put" && !called {
		t.Errorf("there is %q", r.Blob)
	}
}

// Turn does not return before f has, although its context is done, and does not call f afterwards.
// So the caller of Turn may use the variables that f writes.
func ends(t *testing.T, open func(*testing.T) share.Store) {
	s := open(t)
	c, cancel := context.WithCancel(context.Background())
	defer cancel()
	var began, ended atomic.Int64
	s.Turn(c, t.Name(), func(share.Reading) ([]byte, error) {
		began.Add(1)
		cancel()
		time.Sleep(50 * time.Millisecond) // a turn that does not wait for f would return in this time
		ended.Add(1)
		return []byte("late"), nil
	})
	if began.Load() != ended.Load() {
		t.Error("Turn has returned, and f has not")
	}
	before := began.Load()
	time.Sleep(50 * time.Millisecond)
	if n := began.Load(); n != before {
		t.Errorf("f was called %d times after Turn had returned", n-before)
	}
}

func incarnation(t *testing.T, open func(*testing.T) share.Store) {
	a, b := read(t, open(t), t.Name()), read(t, open(t), t.Name())
	if a.Incarnation == "" || a.Incarnation != b.Incarnation || a.Steady != b.Steady {
		t.Errorf("two read the incarnations %q and %q, steady %v and %v", a.Incarnation, b.Incarnation, a.Steady, b.Steady)
	}
}

// forgets tests a share.Lister: it lists the names of limits, and removes one alone, without a
// trace.
func forgets(t *testing.T, open func(*testing.T) share.Store) {
	s, ok := open(t).(share.Lister)
	if !ok {
		t.Skip("the store is no share.Lister")
	}
	a, b := t.Name()+"/a*", t.Name()+"/b"
	put(t, s, b, "of b")
	put(t, s, a, "of a")
	for _, step := range []struct {
		forget string
		want   []string
	}{{"", []string{a, b}}, {t.Name() + "/none", []string{a, b}}, {a, []string{b}}} {
		if step.forget != "" {
			if err := s.Forget(ctx(t), step.forget); err != nil {
				t.Fatal(err)
			}
		}
		all, err := s.Names(ctx(t))
		var own []string // others may be there
		for _, name := range all {
			if strings.HasPrefix(name, t.Name()+"/") {
				own = append(own, name)
			}
		}
		if err != nil || !slices.Equal(own, step.want) {
			t.Errorf("after %q is forgotten there are %q, not %q: %v", step.forget, own, step.want, err)
		}
	}
	if r := read(t, s, a); r.Blob != nil {
		t.Errorf("what was forgotten is %q", r.Blob)
	}
	if r := read(t, s, b); string(r.Blob) != "of b" {
		t.Errorf("the other is %q", r.Blob)
	}
}

// A limit that was removed and made again is not the one that was read, even after as many puts. A
// turn that read the earlier one loses.
func remade(t *testing.T, open func(*testing.T) share.Store) {
	s, ok := open(t).(share.Lister)
	if !ok {
		t.Skip("the store is no share.Lister")
	}
	for puts := range 4 {
		key := fmt.Sprint(t.Name(), puts)
		for range puts {
			put(t, s, key, "before")
		}
		calls := 0
		err := s.Turn(ctx(t), key, func(share.Reading) ([]byte, error) {
			if calls++; calls > 1 {
				return nil, errNo
			}
			if err := s.Forget(ctx(t), key); err != nil {
				t.Error(err)
			}
			for range max(puts, 1) {
				put(t, s, key, "made again")
			}
			return []byte("of the one before"), nil
		})
		if r := read(t, s, key); err != errNo || string(r.Blob) != "made again" {
			t.Errorf("after %d puts: %v, and there is %q", puts, err, r.Blob)
		}
	}
}
