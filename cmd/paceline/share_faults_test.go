//go:build unix

package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/need"
	"github.com/paceline-go/paceline/limit"
)

// Eight processes of run at a server that counts strictly, one of which is killed with -9 or stopped for up to 9 s every three seconds, while the
// store crashes, too: none is refused. PostgreSQL crashes every 6 s, and is there again a second later; Redis every 20 s, as it has no disk, and
// nothing is sent for 7 s and a window each time.
func TestSharedThroughFaults(t *testing.T) {
	if os.Getenv("PACELINE_LONG") == "" {
		t.Skip("it takes minutes: PACELINE_LONG=1")
	}
	const n, lasts = 200, time.Minute
	every := map[string]time.Duration{"postgres": 6 * time.Second, "redis": 20 * time.Second}
	for name, engine := range engines {
		t.Run(name, func(t *testing.T) {
			address, crash := engine(t)
			ripe(t, address, "api", func() limit.Keeper { return limit.MustRolling(n, time.Second) })
			s := serveStrictly(t, n, time.Second)
			file := urlFile(t, s.URL, n*300)
			start := func() *exec.Cmd {
				c, _ := process(t, "run", file, "--limit", fmt.Sprintf("%d/s", n), "--share", address, "--share-name", "api", "--out", filepath.Join(t.TempDir(), "out.jsonl"), "--quiet")
				return c
			}
			var all [8]*exec.Cmd
			for i := range all {
				all[i] = start()
			}
			s.wait(n)
			kills, stops, crashes := 0, 0, 0
			began := time.Now()
			before, _ := s.count()
			crashed := began
			for step := 0; time.Since(began) < lasts; step++ {
				time.Sleep(3 * time.Second)
				i := rand.IntN(len(all))
				if c := all[i]; step%2 == 0 {
					kills++
					c.Process.Kill()
					c.Wait()
					all[i] = start()
				} else {
					stops++
					c.Process.Signal(syscall.SIGSTOP)
					time.AfterFunc(time.Duration(rand.Int64N(int64(9*time.Second))), func() { c.Process.Signal(syscall.SIGCONT) })
				}
				if crash != nil && time.Since(crashed) >= every[name] {
					crashes++
					crashed = time.Now()
					crash()
				}
			}
			served, refused := s.count()
			rate := float64(served-before) / time.Since(began).Seconds()
			t.Logf("%s: %.1f a second of %d served (%.0f%%), through %d kills, %d stops and %d crashes of the store; %d refused", name, rate, n, 100*rate/n, kills, stops, crashes, refused)
			if refused > 0 || served == before {
				t.Errorf("%d served, %d refused", served, refused)
			}
		})
	}
}

// Five processes of run keep to a limit while the clock of their store's machine is set by up to 5 s either way, every few seconds: none is
// refused, and they go on. For real, by Debian's faketime under PostgreSQL (under it Redis does not start, for its jemalloc); ledgersim does it in
// virtual time.
func TestSharedClockSet(t *testing.T) {
	if os.Getenv("PACELINE_LONG") == "" {
		t.Skip("it takes a minute: PACELINE_LONG=1")
	}
	libraries, _ := filepath.Glob("/usr/lib/*/faketime/libfaketime.so.1")
	if len(libraries) == 0 {
		t.Skip("faketime is not installed: apt-get install faketime")
	}
	const n, lasts = 50, 30 * time.Second
	offset := filepath.Join(t.TempDir(), "offset")
	set := func(by time.Duration) {
		if err := os.WriteFile(offset, fmt.Appendf(nil, "%+.3f", by.Seconds()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for dir := filepath.Dir(offset); dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) { // PostgreSQL runs as another user
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	set(0)
	store := need.PostgreSQL(t, "LD_PRELOAD="+libraries[0], "FAKETIME_TIMESTAMP_FILE="+offset, "FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1")
	ripe(t, store.URL, "api", func() limit.Keeper { return limit.MustRolling(n, time.Second) })
	s := serveStrictly(t, n, time.Second)
	file := urlFile(t, s.URL, n*100)
	for range 5 {
		process(t, "run", file, "--limit", fmt.Sprintf("%d/s", n), "--share", store.URL, "--share-name", "api", "--out", filepath.Join(t.TempDir(), "out.jsonl"), "--quiet")
	}
	s.wait(n)
	before, _ := s.count()
	began, sets := time.Now(), 0
	for ; time.Since(began) < lasts; sets++ {
		set(time.Duration(rand.Int64N(int64(10*time.Second))) - 5*time.Second)
		time.Sleep(3 * time.Second)
	}
	served, refused := s.count()
	seen := bookOf(t, store.URL, "api")
	t.Logf("%.1f a second of %d served, while its clock was set %d times; the ledger may be %v behind; %d refused", float64(served-before)/time.Since(began).Seconds(), n, sets, seen.Slack, refused)
	if refused > 0 || served < before+n || seen.Slack == 0 {
		t.Errorf("%d served, %d refused; slack %v", served-before, refused, seen.Slack)
	}
}
