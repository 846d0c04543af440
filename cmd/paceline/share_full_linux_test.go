package main

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A proxy whose store has no room to write reports that once. It sends nothing beyond its grants,
// and goes on when there is room. Waiting requests are then served, and none is refused. The test
// makes the disk full by a bound on the size of the proxy's files, far above the log's. The tests
// of share/sqlite have the engine's errors on a full file system.
func TestShareOnAFullDisk(t *testing.T) {
	t.Parallel()
	const n = 20
	dir := t.TempDir()
	address, log := "sqlite:"+filepath.Join(dir, "limits.db"), filepath.Join(dir, "log.txt")
	ripeStore(t, address, "api", perSecondKeeper(n))
	s := serveStrictly(t, n, time.Second)
	addr, c := proxyLogging(t, log, "--to", s.URL, "--limit", "20/s", "--share", address, "--share-name", "api", "--log-level", "info")
	done := make(chan int)
	go func() { done <- askAll(s, []string{addr}, n, math.MaxInt) }()
	s.wait(n)
	bound := func(most uint64) {
		t.Helper()
		if err := unix.Prlimit(c.Process.Pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: most, Max: unix.RLIM_INFINITY}, nil); err != nil {
			t.Fatal(err)
		}
	}
	says := func(what string) {
		t.Helper()
		var text []byte
		for deadline := time.Now().Add(patient); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
			if text, _ = os.ReadFile(log); strings.Contains(string(text), what) {
				return
			}
		}
		t.Fatalf("expected %q; the proxy says\n%s", what, text)
	}
	const down, back = "the shared limit cannot be fetched: nothing is sent beyond what was granted", "the shared limit is fetched again"
	bound(64 << 10)
	says(down)
	before, _ := s.count()
	time.Sleep(8 * time.Second) // that is for how long it is full
	if served, _ := s.count(); served-before > 3*n {
		t.Errorf("%d were sent in 8 s without a store, of %d a second: more than can have been granted", served-before, n)
	}
	bound(unix.RLIM_INFINITY)
	now, _ := s.count()
	s.wait(now + 3*n)
	says(back)
	if text, _ := os.ReadFile(log); strings.Count(string(text), down) != 1 || !strings.Contains(string(text), `limit=api error="share/sqlite: `+filepath.Join(dir, "limits.db")+": disk I/O error") {
		t.Errorf("it says\n%s", text)
	}
	if served, refused := s.count(); refused > 0 {
		t.Errorf("%d served, %d refused", served, refused)
	}
	c.Process.Kill()
	<-done
}
