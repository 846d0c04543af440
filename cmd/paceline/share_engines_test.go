//go:build unix

package main

import (
	"bytes"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/limit"
)

// engines are the kinds of stores. Each starts a new store, which ends with the test, and returns
// its address and a function. The function crashes the store and starts it again a second later;
// nil: the store is a file.
var engines = map[string]func(*testing.T) (address string, crash func()){
	"sqlite": func(t *testing.T) (string, func()) {
		return "sqlite:" + filepath.Join(t.TempDir(), "limits.db"), nil
	},
	"redis":    func(t *testing.T) (string, func()) { return crashing(need.Redis(t)) },
	"postgres": func(t *testing.T) (string, func()) { return crashing(need.PostgreSQL(t)) },
}

func crashing(s *need.Service) (string, func()) {
	return s.URL, func() {
		s.Crash()
		time.Sleep(time.Second)
		s.Start()
	}
}

// A run that begins within the window of an earlier one, in another folder, is refused nothing: the
// store has the earlier requests. That also holds after a kill of the first at any point, and if
// the second is a proxy.
func TestSharedRestart(t *testing.T) {
	t.Parallel()
	ways := []string{"run", "killed", "proxy"}
	for i, name := range slices.Sorted(maps.Keys(engines)) {
		store := engines[name]
		for _, next := range need.Fewer(ways[i%len(ways):][:1], ways) { // each engine, and each way
			t.Run(name+"/"+next, func(t *testing.T) {
				t.Parallel()
				const n, window = 12, 6 * time.Second
				address, _ := store(t)
				ripeStore(t, address, "api", func() limit.Limiter { return limit.MustRolling(n, window) })
				s := serveStrictly(t, n, window)
				flags := []string{"--limit", fmt.Sprintf("%d/%v", n, window), "--share", address, "--share-name", "api"}
				run := func(requests int) (*exec.Cmd, *bytes.Buffer) {
					return process(t, append([]string{"run", urlFile(t, s.URL, requests), "--out", filepath.Join(t.TempDir(), "out.jsonl")}, flags...)...)
				}
				if next == "killed" {
					c, _ := run(n + 8)
					s.wait(n)
					c.Process.Kill()
					c.Wait()
				} else if c, errs := run(n); c.Wait() != nil {
					t.Errorf("%s", errs)
				}
				if next == "proxy" {
					addr, _ := proxyLogging(t, filepath.Join(t.TempDir(), "log.txt"), append([]string{"--to", s.URL}, flags...)...)
					if failed := askAll(s, []string{addr}, 4, n+4); failed > 0 {
						t.Errorf("%d failed", failed)
					}
				} else if c, errs := run(4); c.Wait() != nil {
					t.Errorf("%s", errs)
				}
				if served, refused := s.count(); served < n+4 || refused > 0 {
					t.Errorf("%d served, %d refused", served, refused)
				}
			})
		}
	}
}

// Eight processes of each program send to a server that counts strictly, with and without kill -9.
// It refuses none. The test prints a table. It has the part of the limit that was served, and permits
// for each turn at the store (two statements). It also has the processor time of the processes with
// their starts.
func TestSharedByEight(t *testing.T) {
	need.LongOnly(t, "it takes minutes")
	for name, store := range engines {
		for _, n := range []int64{20, 200} {
			for program := range programs {
				for _, kill := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s/%s/%d/kill=%v", program, name, n, kill), func(t *testing.T) {
						address, _ := store(t)
						byEight(t, program, address, n, kill)
					})
				}
			}
		}
	}
}

func byEight(t *testing.T, program, address string, n int64, kill bool) {
	each := int(n) * 20 / 8 // 20 s at the limit
	ripeStore(t, address, "api", perSecondKeeper(n))
	s := serveStrictly(t, n, time.Second)
	c := muster(t, program, s, address, n, 8, each)
	if kill {
		s.wait(4 * each)
		c.kill(0)
	}
	s.wait(8 * each)
	turns, rate := storeBook(t, address, "api").Turn, s.rate()
	c.finish()
	served, refused := s.count()
	t.Logf("| %s | %.2f a second of %d | %.1f permits a turn | %.2f s of CPU in %.0f s | %d refused of %d |",
		t.Name(), rate, n, float64(served)/float64(turns), c.cpu.Seconds(), float64(served)/rate, refused, served+refused)
	if refused > 0 || served < 8*each {
		t.Errorf("%d served of at least %d, %d refused", served, 8*each, refused)
	}
	if failed := c.failed.Load(); failed > 0 && !kill {
		t.Errorf("%d asked in vain", failed)
	}
}
