package sharestore

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/core/node"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/share"
	"github.com/paceline-go/paceline/share/sharetest"
)

// A name identifies the place of a limit, differs for different places, and has no secret. A long
// name is cut, and still unique.
func TestName(t *testing.T) {
	l := New(Config{Store: new(sharetest.Memory), Name: "api"})
	key := l.Key("sk-secret")
	seen := map[string]bool{}
	for _, c := range []struct {
		place Place
		want  string
	}{
		{Place{}, "api"}, {Place{Key: key}, "api/" + key}, {Place{Model: "m", Key: key}, "api/model m/" + key}, {Place{Upstream: "u", Route: "GET /x"}, "api/u/route GET /x"},
		{Place{Client: "c"}, "api/client c"}, {Place{All: true}, "api/all"}, {Place{Model: strings.Repeat("m", 300)}, ""}, {Place{Model: strings.Repeat("m", 301)}, ""},
		{Place{Model: strings.Repeat("ü", 150)}, ""}, {Place{Model: "m" + strings.Repeat("ü", 150)}, ""}, {Place{Model: "m\x00"}, ""}, {Place{Model: "m\xff"}, ""}, {Place{Model: "m\xfe"}, ""},
	} {
		got := l.Name(c.place)
		if c.want != "" && got != c.want || node.CheckName(got) != nil || strings.Contains(got, "secret") || seen[got] {
			t.Errorf("%+v is called %q, not %q", c.place, got, c.want)
		}
		seen[got] = true
	}
	if other := New(Config{Name: "other"}); key == other.Key("sk-secret") || key == l.Key("sk-Secret") || l.Key("") != "" {
		t.Error("a key is called the same where it should not be")
	}
	if New(Config{}).Name(Place{}) != DefaultName {
		t.Error("without a name")
	}
}

// Equal limits are the same limit in any order and under any names of the configuration. A bound on
// requests in flight is a limit of its own in the store, and the least of several holds.
func TestSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := new(sharetest.Memory)
		l := New(Config{Store: store})
		atOnce := func(n int64) limit.Limiter {
			c, _ := limit.NewConcurrency(limit.ConcurrencyConfig{Limit: n})
			return c
		}
		a := func() limit.Limiter {
			return limit.NewAll(limit.MustRolling(20, time.Second), limit.Named("500/m", limit.MustRolling(500, time.Minute)))
		}
		b := func() limit.Limiter {
			return limit.NewVarying(limit.Named("x", limit.MustRolling(500, time.Minute)), atOnce(4), limit.MustRolling(20, time.Second), limit.Named("y", atOnce(3)))
		}
		if err := store.Turn(t.Context(), "it", func(r share.Reading) ([]byte, error) { return taken(t, r, a), nil }); err != nil {
			t.Fatal(err)
		}
		if err := l.Check(t.Context(), "it", b); err != nil {
			t.Error(err)
		}
		if err := l.Check(t.Context(), "it", func() limit.Limiter { return limit.MustRolling(20, time.Second) }); err == nil {
			t.Error("one of two limits is taken for both")
		}
		made, err := l.Of("it", b)
		parts := limit.Parts(made)
		if rules, _ := limit.Rules(made); err != nil || len(parts) != 2 || len(rules) != 3 || rules[2].String() != "3 requests at once" ||
			rules[2].Name != "it/in flight" || rules[0].Name != "it" {
			t.Errorf("%v, %v: %v", parts, rules, err)
		}
		if _, err := l.Join(t.Context(), "it", b); err != nil {
			t.Error(err)
		}
		err = l.Check(t.Context(), "it", func() limit.Limiter { return limit.NewAll(a(), atOnce(5)) })
		if err == nil || !strings.Contains(err.Error(), `it/in flight in`) || !strings.Contains(err.Error(), `"Concurrency: 5 requests at once" here`) {
			t.Errorf("with another bound: %v", err)
		}
		if made, err := l.Of("none", func() limit.Limiter { return nil }); made != nil || err != nil {
			t.Errorf("of no limit: %v, %v", made, err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}

// unwritten is a store that can be read, and fails to put so many times.
type unwritten struct {
	sharetest.Memory
	fails int
}

func (s *unwritten) Turn(ctx context.Context, key string, f func(share.Reading) ([]byte, error)) error {
	return s.Memory.Turn(ctx, key, func(r share.Reading) ([]byte, error) {
		blob, err := f(r)
		if s.fails--; err == nil && s.fails >= 0 {
			err = errors.New("the file is kept by another")
		}
		return blob, err
	})
}

// A process without leave to write to a store is refused at the start. A process that comes during
// a lock of the store is not. The content of the store stays as it is.
func TestCheckWrites(t *testing.T) {
	made := func() limit.Limiter { return limit.MustRolling(20, time.Second) }
	for _, c := range []struct {
		fails  int
		there  bool
		refuse string
	}{{0, true, ""}, {0, false, ""}, {2, true, ""}, {2, false, ""}, {3, true, "the store can be read, and not written: the file is kept by another"}} {
		s := &unwritten{fails: c.fails}
		l := New(Config{Store: s, Address: "the store"})
		var was []byte
		if c.there {
			if err := s.Memory.Turn(t.Context(), "it", func(r share.Reading) ([]byte, error) { was = taken(t, r, made); return was, nil }); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.Check(t.Context(), "it", made); c.refuse == "" && err != nil || c.refuse != "" && (err == nil || err.Error() != c.refuse) {
			t.Errorf("%+v: %v", c, err)
		}
		s.fails = 0
		if err := s.Turn(t.Context(), "it", func(r share.Reading) ([]byte, error) {
			if !bytes.Equal(r.Blob, was) {
				t.Errorf("%+v: %q became %q", c, was, r.Blob)
			}
			return nil, errSeen
		}); err != errSeen {
			t.Error(err)
		}
		if _, ok, err := Look(t.Context(), s, "it"); ok != c.there || err != nil {
			t.Errorf("%+v: there is %v, %v", c, ok, err)
		}
	}
}

// meanwhile is a store at which something happens after the first read.
type meanwhile struct {
	sharetest.Memory
	happens func()
}

func (s *meanwhile) Turn(ctx context.Context, key string, f func(share.Reading) ([]byte, error)) error {
	err := s.Memory.Turn(ctx, key, f)
	if h := s.happens; h != nil {
		s.happens = nil
		h()
	}
	return err
}

// Of two that begin at once at a new name with different limits one is refused.
func TestJoinAtOnce(t *testing.T) {
	s := new(meanwhile)
	join := func(n int64) error {
		l := New(Config{Store: s, Address: "here"})
		_, err := l.Join(t.Context(), "it", func() limit.Limiter { return limit.MustRolling(n, time.Second) })
		return errors.Join(err, l.Close())
	}
	s.happens = func() {
		if err := join(20); err != nil {
			t.Error(err)
		}
	}
	err := join(30)
	if err == nil || !strings.Contains(err.Error(), `this limit is "30/s" here, and "20/s" where it is kept: expected the same limit`) || !strings.Contains(err.Error(), "paceline share forget here it") {
		t.Errorf("who was second: %v", err)
	}
	if err := join(20); err != nil {
		t.Error(err)
	}
}

// taken is a store's blob once somebody has come with these limits.
func taken(t *testing.T, r share.Reading, made func() limit.Limiter) []byte {
	t.Helper()
	n := node.New(node.Config{ID: "first", New: func() limit.Limiter {
		d, _ := divided(made())
		return together(d.windows)
	}})
	n.Begin(0)
	blob, err := n.Read(0, 0, r)
	if err != nil {
		t.Fatal(err)
	}
	return blob
}
