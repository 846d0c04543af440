package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/need"
	"github.com/paceline-go/paceline/limit"
)

// redisHere starts a Redis of its own, without a disk.
func redisHere(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	c := exec.Command(need.Program(t, "redis-server"), "--bind", "127.0.0.1", "--port", fmt.Sprint(port), "--save", "", "--appendonly", "no", "--dir", t.TempDir())
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Process.Kill()
		c.Wait()
	})
	address := fmt.Sprintf("redis://127.0.0.1:%d", port)
	for range 200 {
		if c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			c.Close()
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	return address
}

// Eight processes of run, and eight proxies with clients, at a server that counts strictly, with and without kill -9: none is refused.
func TestSharedByEight(t *testing.T) {
	if os.Getenv("PACELINE_LONG") == "" {
		t.Skip("it takes minutes: PACELINE_LONG=1")
	}
	stores := map[string]func(*testing.T) string{
		"sqlite": func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "limits.db") }, "redis": redisHere,
	}
	for name, store := range stores {
		for _, n := range []int64{20, 200} {
			for _, kill := range []bool{false, true} {
				each := int(n) * 20 / 8 // 20 s at the limit
				of := func(t *testing.T) (*strictly, string) {
					address := store(t)
					ripe(t, address, "api", func() limit.Keeper { return limit.MustRolling(n, time.Second) })
					return serveStrictly(t, n, time.Second), address
				}
				tell := func(t *testing.T, s *strictly, least int) {
					served, refused := s.count()
					t.Logf("%s: %d served, %.2f a second of %d, %d refused", t.Name(), served, s.rate(), n, refused)
					if refused > 0 || served < least {
						t.Errorf("%d served of at least %d, %d refused", served, least, refused)
					}
				}
				t.Run(fmt.Sprintf("run/%s/%d/kill=%v", name, n, kill), func(t *testing.T) {
					s, address := of(t)
					after := 0
					if kill {
						after = 4 * each
					}
					sharingRuns(t, s, address, n, 8, each, after)
					tell(t, s, 8*each)
				})
				t.Run(fmt.Sprintf("proxy/%s/%d/kill=%v", name, n, kill), func(t *testing.T) {
					s, address := of(t)
					all, addrs := sharingProxies(t, s, address, n, 8)
					done := make(chan int)
					go func() { done <- askAll(s, addrs, int(max(n/8, 5)), 8*each) }()
					if kill {
						for served, _ := s.count(); served < 4*each; served, _ = s.count() {
							time.Sleep(10 * time.Millisecond)
						}
						all[0].Process.Kill()
					}
					if failed := <-done; failed > 0 && !kill {
						t.Errorf("%d failed", failed)
					}
					tell(t, s, 8*each)
				})
			}
		}
	}
}
