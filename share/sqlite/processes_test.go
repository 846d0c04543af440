package sqlite_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/share"
	"github.com/paceline-go/paceline/share/sqlite"
)

// TestMain is a process of TestProcesses, where that has started it.
func TestMain(m *testing.M) {
	if file := os.Getenv("PACELINE_SHARE_FILE"); file != "" {
		if err := process(file, os.Getenv("PACELINE_SHARE_URL")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// process sends as much as it may, until standard input ends.
func process(file, url string) error {
	store, err := sqlite.Open(file)
	if err != nil {
		return err
	}
	defer store.Close()
	member, err := share.Limiter(store, "the server", func() limit.Limiter { return limit.MustRolling(20, time.Second) })
	if err != nil {
		return err
	}
	gate := paceline.NewGate(member)
	member.Attach(gate)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		os.Stdin.Read(make([]byte, 1))
		cancel()
	}()
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			for {
				permit, err := gate.Wait(ctx, limit.One)
				if err != nil {
					return
				}
				if !permit.Fresh() {
					permit.Settle(limit.Outcome{Result: limit.Unsent})
					continue
				}
				resp, err := http.Get(url)
				if err != nil {
					permit.Settle(limit.Outcome{})
					continue
				}
				resp.Body.Close()
				permit.Settle(limit.Outcome{Result: limit.Accepted})
			}
		})
	}
	wg.Wait()
	return member.Close(context.Background())
}

// Three processes and a file: at a server that counts strictly, nothing is refused, though one is
// killed, and another takes its place.
func TestProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes 20 s: a new file is quiet at first")
	}
	r, err := rule.NewRolling(rule.RollingConfig{Limit: 20, Window: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	sent, refused, base := 0, 0, time.Now()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		sent++
		if !r.Arrive(mono.Of(base, time.Now()), 1) {
			refused++
		}
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "limits.db")
	start := func() (*exec.Cmd, func()) {
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), "PACELINE_SHARE_FILE="+file, "PACELINE_SHARE_URL="+server.URL)
		c.Stderr = os.Stderr
		in, err := c.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		return c, func() { in.Close() }
	}
	count := func() (int, int) {
		mu.Lock()
		defer mu.Unlock()
		return sent, refused
	}
	enough := func(n int) {
		t.Helper()
		for range 1200 {
			if sent, _ := count(); sent >= n {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
		t.Errorf("fewer than %d sent in a minute", n)
	}
	first, _ := start()
	second, stop2 := start()
	third, stop3 := start()
	enough(60)
	first.Process.Kill()
	first.Wait()
	fourth, stop4 := start()
	now, _ := count()
	enough(now + 60)
	for _, stop := range []func(){stop2, stop3, stop4} {
		stop()
	}
	for _, c := range []*exec.Cmd{second, third, fourth} {
		if err := c.Wait(); err != nil {
			t.Errorf("a process ended with %v", err)
		}
	}
	n, no := count()
	if no > 0 {
		t.Errorf("%d of %d refused", no, n)
	}
	t.Logf("%d sent, %d refused", n, no)
}
