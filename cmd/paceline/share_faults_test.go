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

	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/limit"
)

// troubles are faults of processes and their store, by turns. One process is killed with -9, one is
// stopped, and the store crashes, unless it crashes at times of its own.
type troubles struct {
	lasts, every time.Duration
	stop         func() time.Duration
	crash        time.Duration // every so often; 0: in its turn
}

// befallen is what came of it.
type befallen struct {
	served, refused       int
	kills, stops, crashes int
	away                  time.Duration // the store, in its crashes
	rate                  float64       // served in a second
	calm                  time.Duration // what is not within 7 s and a window of a kill or stop, nor within a window of a crash
	calmly                int           // served in that
}

func (b *befallen) String() string {
	text := fmt.Sprintf("%.1f a second through %d kills, %d stops and %d crashes of the store, which was away for %.1f s in all; %d refused", b.rate, b.kills, b.stops, b.crashes, b.away.Seconds(), b.refused)
	if b.calm > 0 {
		text += fmt.Sprintf("; %.1f a second in the %.0f s that are not near any of these", float64(b.calmly)/b.calm.Seconds(), b.calm.Seconds())
	}
	return text
}

// through lets troubles befall a crew whose windows are of a second. crash crashes the store and
// may be nil.
func (c *crew) through(o troubles, crash func()) *befallen {
	const window = time.Second
	began := time.Now()
	before, refused := c.server.count()
	var b befallen
	near := began // up to here
	befall := func(f func(), lasts time.Duration) {
		if now := time.Now(); now.After(near) {
			b.calm += now.Sub(near)
			b.calmly += c.server.between(near, now)
		}
		f()
		if until := time.Now().Add(lasts); until.After(near) {
			near = until
		}
	}
	turns, crashed := 2, began
	if o.crash == 0 && crash != nil {
		turns = 3
	}
	for step, next := 0, o.every/2; next < o.lasts; step, next = step+1, next+o.every {
		time.Sleep(time.Until(began.Add(next)))
		i := rand.IntN(len(c.all))
		switch step % turns {
		case 0:
			b.kills++
			befall(func() { c.kill(i) }, 7*time.Second+window)
		case 1:
			b.stops++
			p := c.all[i].Process
			befall(func() { p.Signal(syscall.SIGSTOP) }, 7*time.Second+window)
			time.AfterFunc(o.stop(), func() { p.Signal(syscall.SIGCONT) })
		}
		if crash != nil && (step%turns == 2 || o.crash > 0 && time.Since(crashed) >= o.crash) {
			b.crashes++
			crashed = time.Now()
			befall(crash, window)
			b.away += time.Since(crashed)
		}
	}
	time.Sleep(time.Until(began.Add(o.lasts)))
	befall(func() {}, 0)
	served, all := c.server.count()
	b.served, b.refused = served-before, all-refused
	b.rate = float64(b.served) / time.Since(began).Seconds()
	return &b
}

func upTo9s() time.Duration { return time.Duration(rand.Int64N(int64(9 * time.Second))) }

// faultsLimit is what the server of these tests allows in any second.
const faultsLimit = 200

// forMinutes has troubles befall each program on each engine, before a server that counts strictly
// and refuses none of them.
func forMinutes(t *testing.T, befall func(t *testing.T, engine, program, address string, s *strictly, crash func()) *befallen) {
	need.LongOnly(t, "it takes minutes")
	for name, engine := range engines {
		for program := range programs {
			t.Run(name+"/"+program, func(t *testing.T) {
				address, crash := engine(t)
				ripeStore(t, address, "api", perSecondKeeper(faultsLimit))
				b := befall(t, name, program, address, serveStrictly(t, faultsLimit, time.Second), crash)
				t.Logf("| %s | %s |", t.Name(), b)
				if b.refused > 0 || b.served == 0 {
					t.Errorf("%d served, %d refused", b.served, b.refused)
				}
			})
		}
	}
}

// Eight processes of each program send to a server that counts strictly. Every three seconds one is
// killed with -9 or stopped for up to 9 s. The store crashes every 6 s, at the same instant, and
// begins again a second later. No request is refused.
func TestSharedThroughFaults(t *testing.T) {
	forMinutes(t, func(t *testing.T, _, program, address string, s *strictly, crash func()) *befallen {
		c := muster(t, program, s, address, faultsLimit, 8, faultsLimit*300)
		s.wait(faultsLimit)
		return c.through(troubles{time.Minute, 3 * time.Second, upTo9s, 6 * time.Second}, crash)
	})
}

// Once a minute one process is killed, or stopped for 9 s, or the store crashes. The test compares
// two rates: in the seconds that are not near the fault, and of a single process that shares with
// no other.
func TestSharedFaultAMinute(t *testing.T) {
	forMinutes(t, func(t *testing.T, _, program, address string, s *strictly, crash func()) *befallen {
		one := muster(t, program, s, address, faultsLimit, 1, faultsLimit*300)
		s.wait(faultsLimit)
		alone := one.through(troubles{lasts: 20 * time.Second, every: time.Hour}, nil)
		one.end()
		t.Logf("one process alone: %.1f a second", alone.rate)
		c := muster(t, program, s, address, faultsLimit, 8, faultsLimit*300)
		s.wait(alone.served + 12*faultsLimit) // what one held when it was killed is given up
		return c.through(troubles{3 * time.Minute, time.Minute, func() time.Duration { return 9 * time.Second }, 0}, crash)
	})
}

// Three proxies, and three programs with a Pool: one is killed with -9, another stopped for longer
// than its grants hold. None is refused, and those that are left go on, as does the one that was
// stopped.
func TestSharedThroughAFault(t *testing.T) {
	t.Parallel()
	need.NotShort(t, "lab/nodesim has the same faults in virtual time")
	for program := range programs {
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			const n = 20
			address := "sqlite:" + filepath.Join(t.TempDir(), "limits.db")
			ripeStore(t, address, "api", perSecondKeeper(n))
			s := serveStrictly(t, n, time.Second)
			c := muster(t, program, s, address, n, 3, n*300)
			s.wait(n)
			c.kill(0)
			stopped := c.all[1].Process
			stopped.Signal(syscall.SIGSTOP)
			// Its grants hold for 2 s, and for 7 s the others keep what it holds: one that is
			// stopped for longer than that, on its way from the question to the write, may be
			// refused.
			time.Sleep(3 * time.Second)
			stopped.Signal(syscall.SIGCONT)
			for i := range c.all {
				if i != 1 {
					c.all[i].Process.Kill()
				}
			}
			now, _ := s.count()
			s.wait(now + 2*n) // no more than n of those that were killed are on their way
			if served, refused := s.count(); refused > 0 {
				t.Errorf("%d served, %d refused", served, refused)
			}
		})
	}
}

// Five processes of run keep to a limit while the clock of their store's machine changes. Every few
// seconds it jumps by up to 5 s either way. None is refused, and they go on. The clock is real:
// Debian's faketime changes it under PostgreSQL. Redis does not start with faketime, so
// testdata/clock.c does it there. Package nodesim does it in virtual time.
func TestSharedClockSet(t *testing.T) {
	need.LongOnly(t, "it takes two minutes")
	t.Run("postgres", func(t *testing.T) {
		libraries, _ := filepath.Glob("/usr/lib/*/faketime/libfaketime.so.1")
		if len(libraries) == 0 {
			t.Skip("faketime is not installed: apt-get install faketime")
		}
		offset, set := clockOffset(t, "%+.3f")
		store := need.PostgreSQL(t, "LD_PRELOAD="+libraries[0], "FAKETIME_TIMESTAMP_FILE="+offset, "FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1")
		whileClockIsSet(t, store.URL, set)
	})
	t.Run("redis", func(t *testing.T) {
		library := filepath.Join(t.TempDir(), "clock.so")
		if out, err := exec.Command(need.Program(t, "cc"), "-shared", "-fPIC", "-o", library, "testdata/clock.c").CombinedOutput(); err != nil {
			t.Fatalf("cc: %v\n%s", err, out)
		}
		offset, set := clockOffset(t, "%.3f")
		whileClockIsSet(t, need.Redis(t, "LD_PRELOAD="+library, "CLOCK_OFFSET="+offset).URL, set)
	})
}

// clockOffset is a file that says by how much a clock is set, and what writes it.
func clockOffset(t *testing.T, format string) (name string, set func(by time.Duration)) {
	name = filepath.Join(t.TempDir(), "offset")
	set = func(by time.Duration) {
		if err := os.WriteFile(name, fmt.Appendf(nil, format, by.Seconds()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for dir := filepath.Dir(name); dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) { // PostgreSQL runs as another user
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	set(0)
	return name, set
}

func whileClockIsSet(t *testing.T, address string, set func(by time.Duration)) {
	const n, lasts = 50, 30 * time.Second
	ripeStore(t, address, "api", func() limit.Limiter { return limit.MustRolling(n, time.Second) })
	s := serveStrictly(t, n, time.Second)
	file := urlFile(t, s.URL, n*100)
	for range 5 {
		process(t, "run", file, "--limit", fmt.Sprintf("%d/s", n), "--share", address, "--share-name", "api", "--out", filepath.Join(t.TempDir(), "out.jsonl"), "--quiet")
	}
	s.wait(n)
	before, _ := s.count()
	began, sets := time.Now(), 0
	for ; time.Since(began) < lasts; sets++ {
		set(time.Duration(rand.Int64N(int64(10*time.Second))) - 5*time.Second)
		time.Sleep(3 * time.Second)
	}
	served, refused := s.count()
	seen := storeBook(t, address, "api")
	t.Logf("%.1f a second of %d served, while its clock was set %d times; the ledger may be %v behind; %d refused", float64(served-before)/time.Since(began).Seconds(), n, sets, seen.Slack, refused)
	if refused > 0 || served < before+n || seen.Slack == 0 {
		t.Errorf("%d served, %d refused; slack %v", served-before, refused, seen.Slack)
	}
}
