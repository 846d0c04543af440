package redis_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/share"
	"github.com/paceline-go/paceline/share/redis"
	"github.com/paceline-go/paceline/share/sharetest"
	client "github.com/redis/go-redis/v9"
)

func TestStore(t *testing.T) {
	sharetest.Run(t, opener(need.Redis(t).URL))
}

// opener returns a function that opens the store.
func opener(url string) func(t *testing.T) share.Store {
	return func(t *testing.T) share.Store {
		s, err := redis.Open(url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
}

// Keys are put back as they were, by DUMP and RESTORE.
func TestRestored(t *testing.T) {
	t.Parallel()
	url := need.Redis(t).URL
	o, err := client.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	c := client.NewClient(o)
	t.Cleanup(func() { c.Close() })
	ctx := context.Background()
	sharetest.Restored(t, opener(url), func(t *testing.T) func() {
		copies := map[string]string{}
		for _, key := range c.Keys(ctx, "*").Val() {
			copies[key] = c.Dump(ctx, key).Val()
		}
		return func() {
			_, err := c.TxPipelined(ctx, func(p client.Pipeliner) error {
				for key, copied := range copies {
					p.RestoreReplace(ctx, key, 0, copied)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		}
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
	if _, err := redis.Open("127.0.0.1:6379"); err == nil || !strings.HasPrefix(err.Error(), "share/redis: redis:// is missing in front") {
		t.Errorf("without a scheme: %v", err)
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
