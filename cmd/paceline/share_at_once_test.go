package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
)

// crowded is a server that counts how many requests it has at once. A request lasts for a while, or, on /stay,
// until its client is gone.
type crowded struct {
	*httptest.Server

	mu                 sync.Mutex
	open, peak, served int
}

func serveCrowd(t *testing.T) *crowded {
	s := &crowded{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.count(1)
		defer s.count(-1)
		if r.URL.Path != "/stay" {
			time.Sleep(20 * time.Millisecond)
			return
		}
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *crowded) count(by int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open += by
	s.peak = max(s.peak, s.open)
	if by < 0 {
		s.served++
	}
}

// until waits until so many are open, and returns the most that were.
func (s *crowded) until(t *testing.T, open int) (peak int) {
	t.Helper()
	for deadline := time.Now().Add(patient); ; time.Sleep(5 * time.Millisecond) {
		s.mu.Lock()
		is, peak := s.open, s.peak
		s.mu.Unlock()
		if is == open {
			return peak
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d are open, want %d; %d at most so far", is, open, peak)
		}
	}
}

// crewProxy starts a proxy of which a client has four requests in flight, over all proxies of a store.
func crewProxy(t *testing.T, s *crowded, address string) (c *exec.Cmd, addr string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "proxy.yaml")
	text := fmt.Sprintf("version: 1\nlisten: 127.0.0.1:0\nadmin: \"off\"\nshare: {store: \"%s\", name: api}\nupstreams:\n  - {name: s, to: \"%s\"}\n"+
		"clients:\n  header: X-Client\n  list:\n    - {name: crew, in_flight: 4}\n", address, s.URL)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c = another(t, "proxy", "--config", file)
	errs, err := c.StderrPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Process.Kill()
		c.Wait()
	})
	line, err := bufio.NewReader(errs).ReadString('\n')
	_, rest, ok := strings.Cut(line, "from ")
	if err != nil || !ok {
		t.Fatalf("the proxy says %q, %v", line, err)
	}
	go io.Copy(io.Discard, errs)
	addr, _, _ = strings.Cut(rest, " ")
	return c, addr
}

// Three proxies of a store have no more requests of a client in flight than one would. One that is killed with -9
// leaves its places to the others.
func TestSharedAtOnce(t *testing.T) {
	t.Parallel()
	address := "sqlite:" + filepath.Join(t.TempDir(), "limits.db")
	ripeStore(t, address, "api/client crew/in flight", func() limit.Limiter {
		l, err := limit.NewConcurrency(limit.ConcurrencyConfig{Limit: 4})
		if err != nil {
			t.Fatal(err)
		}
		return l
	})
	s := serveCrowd(t)
	var all []*exec.Cmd
	var addrs []string
	for range 3 {
		c, addr := crewProxy(t, s, address)
		all, addrs = append(all, c), append(addrs, addr)
	}
	get := func(addr, path string) error {
		r, err := http.NewRequestWithContext(t.Context(), "GET", addr+path, nil)
		if err != nil {
			return err
		}
		r.Header.Set("X-Client", "crew")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if _, err = io.Copy(io.Discard, resp.Body); err == nil && resp.StatusCode != http.StatusOK {
			err = fmt.Errorf("answered %s", resp.Status)
		}
		return err
	}
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			for range 5 {
				if err := get(addrs[i%3], "/x"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	stay := func(addr string) {
		for range 6 {
			wg.Go(func() { _ = get(addr, "/stay") }) // it ends with its proxy
		}
	}
	stay(addrs[0])
	s.until(t, 4)
	all[0].Process.Kill()
	s.until(t, 0)
	stay(addrs[1])
	if peak := s.until(t, 4); peak > 4 {
		t.Errorf("%d at once, of 4", peak)
	}
	for _, c := range all {
		c.Process.Kill()
	}
	wg.Wait()
}
