package redis_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/need"
	"github.com/paceline-go/paceline/share"
	"github.com/paceline-go/paceline/share/redis"
	"github.com/paceline-go/paceline/share/sharetest"
	client "github.com/redis/go-redis/v9"
)

// start starts a Redis of its own, without a disk, and returns its address.
func start(t *testing.T) string {
	t.Helper()
	program := need.Program(t, "redis-server")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().(*net.TCPAddr)
	l.Close()
	cmd := exec.Command(program, "--bind", "127.0.0.1", "--port", fmt.Sprint(addr.Port), "--save", "", "--appendonly", "no", "--dir", t.TempDir())
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	c := client.NewClient(&client.Options{Addr: addr.String()})
	defer c.Close()
	for range 200 {
		if c.Ping(context.Background()).Err() == nil {
			return addr.String()
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("Redis does not answer")
	return ""
}

func TestStore(t *testing.T) {
	addr := start(t)
	sharetest.Run(t, func(t *testing.T) share.Store {
		s, err := redis.Open("redis://" + addr)
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
