package redis_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/share"
	"github.com/paceline-go/paceline/share/redis"
	"github.com/paceline-go/paceline/share/sharetest"
)

func TestStore(t *testing.T) {
	url := need.Redis(t).URL
	sharetest.Run(t, func(t *testing.T) share.Store {
		s, err := redis.Open(url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	})
}

func TestUnreachable(t *testing.T) {
	s, err := redis.Open("redis://127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	called := false
	err = s.Turn(context.Background(), "x", func(share.Reading) ([]byte, error) {
		called = true
		return nil, nil
	})
	if err == nil || called {
		t.Errorf("%v, and f was called: %v", err, called)
	}
	if _, err := redis.Open("http://x"); err == nil {
		t.Error("an address of HTTP is taken")
	}
}

// A server that accepts connections and never answers holds up a turn. It does so only for the
// longest time of a turn, and not for the client's own 5 s.
func TestHangs(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s, err := redis.Open("redis://" + l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	err = s.Turn(ctx, "x", func(share.Reading) ([]byte, error) { return nil, nil })
	if d := time.Since(began); err == nil || d > 4*time.Second {
		t.Errorf("after %v: %v", d, err)
	}
}
