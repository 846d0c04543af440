package sharestore

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/share"
	"github.com/paceline-go/paceline/share/sharetest"
)

// A limit that is new in its store begins at once if that was stated less than ten minutes ago, of
// this name, in a store that has lost nothing since. Otherwise it is quiet.
func TestStateNew(t *testing.T) {
	const quiet = 8 * time.Second
	for _, c := range []struct {
		name   string
		before func(t *testing.T, s *sharetest.Memory)
		want   bool
	}{
		{"nothing stated", func(*testing.T, *sharetest.Memory) {}, false},
		{"stated", func(t *testing.T, s *sharetest.Memory) { states(t, s, "api") }, true},
		{"stated nine minutes ago", func(t *testing.T, s *sharetest.Memory) {
			states(t, s, "api")
			time.Sleep(9 * time.Minute)
		}, true},
		{"stated ten minutes ago", func(t *testing.T, s *sharetest.Memory) {
			states(t, s, "api")
			time.Sleep(10 * time.Minute)
		}, false},
		{"stated of another", func(t *testing.T, s *sharetest.Memory) { states(t, s, "ap") }, false},
		{"lost since", func(t *testing.T, s *sharetest.Memory) {
			states(t, s, "api")
			s.Restart()
		}, false},
		{"restored after a loss", func(t *testing.T, s *sharetest.Memory) {
			states(t, s, "api")
			restore := s.Save()
			s.Restart()
			restore()
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := new(sharetest.Memory)
				c.before(t, s)
				l := New(Config{Store: s, Name: "api"})
				defer l.Close()
				own, err := l.Join(t.Context(), l.Name(Place{Key: "key-1"}), func() limit.Limiter { return limit.MustRolling(20, time.Second) })
				if err != nil {
					t.Fatal(err)
				}
				gate := paceline.NewGate(own)
				own.(*share.Member).Attach(gate)
				began := time.Now()
				p, err := gate.Wait(t.Context(), limit.One)
				if err != nil {
					t.Fatal(err)
				}
				p.Settle(limit.Outcome{Result: limit.Accepted})
				if took := time.Since(began); c.want != (took < 2*time.Second) || !c.want && took < quiet-time.Second {
					t.Errorf("the first is sent after %v", took)
				}
			})
		})
	}
}

func states(t *testing.T, s *sharetest.Memory, name string) {
	t.Helper()
	if err := StateNew(t.Context(), s, name); err != nil {
		t.Fatal(err)
	}
	if names, err := s.Names(t.Context()); err != nil || len(names) != 1 || !IsStatement(names[0]) {
		t.Fatalf("the store has %q, %v", names, err)
	}
}
