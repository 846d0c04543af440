package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	root "github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/cli/clitest"
	"github.com/paceline-go/paceline/internal/app/screen"
	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/share"
)

func perSecondKeeper(n int64) func() limit.Limiter {
	return func() limit.Limiter { return limit.MustRolling(n, time.Second) }
}

// strictly is a server that counts in a rolling window, and refuses what is more. Its path takes up
// to 20 ms each way.
type strictly struct {
	*httptest.Server
	t *testing.T

	mu              sync.Mutex
	base            time.Time
	rule            rule.Amendable
	served, refused int
	first, last     time.Time
	at              []time.Time // of those that were served
}

func serveStrictly(t *testing.T, n int64, w time.Duration) *strictly {
	t.Helper()
	r, err := rule.NewRolling(rule.RollingConfig{Limit: n, Window: w})
	if err != nil {
		t.Fatal(err)
	}
	s := &strictly{t: t, base: time.Now(), rule: r}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(time.Duration(rand.Int64N(int64(20 * time.Millisecond))))
		if s.arrive() {
			time.Sleep(time.Duration(rand.Int64N(int64(20 * time.Millisecond))))
			return
		}
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *strictly) arrive() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = time.Now()
	if s.served+s.refused == 0 {
		s.first = s.last
	}
	if !s.rule.Arrive(mono.Of(s.base, s.last), 1) {
		s.refused++
		return false
	}
	s.served++
	s.at = append(s.at, s.last)
	return true
}

func (s *strictly) count() (served, refused int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.served, s.refused
}

// between is how many it served in a span.
func (s *strictly) between(from, to time.Time) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range s.at {
		if !at.Before(from) && at.Before(to) {
			n++
		}
	}
	return n
}

// wait returns when so many were served.
func (s *strictly) wait(n int) {
	s.t.Helper()
	for deadline := time.Now().Add(patient); ; time.Sleep(10 * time.Millisecond) {
		served, refused := s.count()
		if served >= n {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("%d served, %d refused; expected %d served", served, refused, n)
		}
	}
}

// rate is how many it served in a second, from the first to the last.
func (s *strictly) rate() float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return float64(s.served) / s.last.Sub(s.first).Seconds()
}

// rateOf is how many it served in a second, from one number to another.
func (s *strictly) rateOf(from, to int) float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return float64(to-from) / s.at[to].Sub(s.at[from]).Seconds()
}

// urlFile writes a file of requests.
func urlFile(t *testing.T, base string, n int) string {
	t.Helper()
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "%s/%d\n", base, i)
	}
	name := filepath.Join(t.TempDir(), "urls.txt")
	if err := os.WriteFile(name, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// another is the command as a process of its own, in a folder of its own.
func another(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	c := exec.Command(os.Args[0], args...)
	c.Env, c.Dir = append(os.Environ(), asProgram+"=1"), t.TempDir()
	return c
}

// process starts one of these and kills it at the end of the test. It returns what it says on
// standard error.
func process(t *testing.T, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	c := another(t, args...)
	errs := new(bytes.Buffer)
	c.Stderr = errs
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Process.Kill()
		c.Wait()
	})
	return c, errs
}

// Three processes of run, each from a folder of its own, keep to a limit together.
func TestSharedRun(t *testing.T) {
	t.Parallel()
	address := "sqlite:" + filepath.Join(t.TempDir(), "limits.db")
	ripeStore(t, address, "api", perSecondKeeper(20))
	s := serveStrictly(t, 20, time.Second)
	muster(t, "run", s, address, 20, 3, 15).finish()
	if served, refused := s.count(); served != 45 || refused > 0 {
		t.Errorf("%d served, %d refused", served, refused)
	}
}

// A store that is not there, an address that is none, and a name in use with another limit, are
// said before anything is sent.
func TestShareRefusals(t *testing.T) {
	t.Parallel()
	s := serveStrictly(t, 20, time.Second)
	file, dir := urlFile(t, s.URL, 1), t.TempDir()
	db := "sqlite:" + filepath.Join(dir, "limits.db")
	ripeStore(t, db, "api", perSecondKeeper(30))
	ripeStore(t, db, "newer", perSecondKeeper(20))
	putStore(t, db, "newer", nextVersion)
	if err := os.WriteFile(filepath.Join(dir, "text"), bytes.Repeat([]byte("this is no database\n"), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		flags, says string
		code        int
	}{
		{"--share nowhere", `"nowhere", expected sqlite:FILE, postgres://… or redis://…`, cli.ExitConfig},
		{"--share mysql://a:secret@b/c", `"mysql://a:xxxxx@b/c", expected sqlite:FILE`, cli.ExitConfig},
		{"--share redis://:secret%zz@127.0.0.1:1", "redis:…: the address is no URL", cli.ExitConfig},
		{"--share redis://:secret/x@127.0.0.1:1", "redis:…: the address is no URL", cli.ExitConfig},
		{"--share postgres:password=secret", `"postgres:…", expected sqlite:FILE, postgres://… or redis://…`, cli.ExitConfig},
		{"--share password=secret:x", `"…", expected sqlite:FILE, postgres://… or redis://…`, cli.ExitConfig},
		{"--share sqlite:", "no file, expected sqlite:FILE", cli.ExitConfig},
		{"--share sqlite:" + dir + "/none/limits.db", "none/limits.db: ", cli.ExitConfig},
		{"--share sqlite:" + dir + "/text", "not a database", cli.ExitConfig},
		{"--share redis://127.0.0.1:1", "redis://127.0.0.1:1 cannot be reached: ", cli.ExitConfig},
		{"--share postgres://u:secret@127.0.0.1:1/x?sslmode=disable", "postgres://u:xxxxx@127.0.0.1:1/x?sslmode=disable: ", cli.ExitConfig},
		{"--share " + db + " --share-name api", `"30/s" where it is kept: expected the same limit`, cli.ExitConfig},
		{"--share sqlite3:limits.db", `"sqlite3:limits.db", expected sqlite:limits.db`, cli.ExitConfig},
		{"--share " + db + " --share-least 96%", "--share-least 0.96 is not between 0 and 0.95", cli.ExitUsage},
		{"--share " + db + " --share-name api", `this limit is "20/s" here`, cli.ExitConfig},
		{"--share " + db + " --share-name api", "paceline share forget " + db + " api", cli.ExitConfig},
		{"--share " + db + " --share-name newer", "the limit is kept in version 8, and this program has version 7: run the same version everywhere", cli.ExitConfig},
		{"--share-name x", "--share-name without --share, expected sqlite:FILE", cli.ExitUsage},
		{"--share " + db + " --share-fallback go", `--share-fallback "go", expected wait or split`, cli.ExitUsage},
		{"--share " + db + " --share-weight 0", "--share-weight 0 is not between 0.001 and 1000", cli.ExitUsage},
		{"--share " + db + " --share-weight 1001", "--share-weight 1001 is not between 0.001 and 1000", cli.ExitUsage},
		{"--share " + db + " --share-least 0.96", "--share-least 0.96 is not between 0 and 0.95", cli.ExitUsage},
		{"--share-least 0.5", "--share-least without --share, expected sqlite:FILE", cli.ExitUsage},
		{"--strangers --share 2 --share-weight 2", "--share-weight with --strangers: it is of a store", cli.ExitUsage},
		{"--share " + db + " --latency-max 1s", "--share with --latency-max", cli.ExitUsage},
		{"--share " + db + " --query nonce={nonce}", "their nonces cannot arrive in order; expected one process, without --share", cli.ExitUsage},
		{"--share " + db + " --strangers", "--strangers with a store to --share by", cli.ExitUsage},
	} {
		for _, verb := range []string{"run " + file, "proxy --to " + s.URL + " --listen 127.0.0.1:0 --admin off"} {
			if strings.HasPrefix(verb, "proxy") && (strings.Contains(c.flags, "--strangers") || strings.Contains(c.flags, "{nonce}")) {
				continue
			}
			says := c.says
			if strings.HasPrefix(verb, "proxy") && strings.Contains(c.flags, "--latency-max") {
				says = "what a promise of latencies gains cannot be shared"
			}
			var errs strings.Builder
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			code := execute(ctx, strings.Fields(verb+" --limit 20/s "+c.flags), strings.NewReader(""), io.Discard, &errs)
			cancel()
			if code != c.code || !strings.Contains(errs.String(), says) || strings.Contains(errs.String(), "secret") {
				t.Errorf("%s %s: exit %d\n%swant %d and %s", strings.Fields(verb)[0], c.flags, code, errs.String(), c.code, says)
			}
		}
	}
	if served, refused := s.count(); served+refused > 0 {
		t.Errorf("%d were sent", served+refused)
	}
}

// sharingProxy starts a proxy, and returns it with its address.
func sharingProxy(t *testing.T, s *strictly, address string, n int64) (c *exec.Cmd, addr string) {
	t.Helper()
	c = another(t, "proxy", "--to", s.URL, "--limit", fmt.Sprintf("%d/s", n), "--listen", "127.0.0.1:0", "--admin", "off", "--log", "off", "--share", address, "--share-name", "api")
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

// sharingProxies starts so many proxies, and returns the addresses of those that listen.
func sharingProxies(t *testing.T, s *strictly, address string, n int64, many int) (all []*exec.Cmd, addrs []string) {
	t.Helper()
	for range many {
		c, addr := sharingProxy(t, s, address, n)
		all, addrs = append(all, c), append(addrs, addr)
	}
	return all, addrs
}

// askAll runs clients clients of each proxy until enough requests were served, or the proxy is
// gone. It returns the number of failed requests.
func askAll(s *strictly, addrs []string, clients, enough int) int {
	const most = 1000 // a proxy that refuses all of them would be asked for ever
	var wg sync.WaitGroup
	var failed atomic.Int64
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}}
	defer client.CloseIdleConnections()
	for _, addr := range addrs {
		for range clients {
			wg.Go(func() {
				for served, _ := s.count(); served < enough && failed.Load() < most; served, _ = s.count() {
					resp, err := client.Get(addr + "/x")
					if err != nil {
						failed.Add(1)
						return
					}
					io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
					if resp.StatusCode != http.StatusOK {
						failed.Add(1)
						time.Sleep(100 * time.Millisecond) // as a client would that may come again
					}
				}
			})
		}
	}
	wg.Wait()
	return int(failed.Load())
}

// Three proxies keep to a limit together, and so does what comes after them: a restart within a
// window gets no refusal.
func TestSharedProxy(t *testing.T) {
	t.Parallel()
	address := "sqlite:" + filepath.Join(t.TempDir(), "limits.db")
	ripeStore(t, address, "api", perSecondKeeper(20))
	s := serveStrictly(t, 20, time.Second)
	all, addrs := sharingProxies(t, s, address, 20, 3)
	if failed := askAll(s, addrs, 5, 30); failed > 0 {
		t.Errorf("%d failed", failed)
	}
	for _, c := range all {
		c.Process.Signal(syscall.SIGTERM)
	}
	for _, c := range all {
		if err := c.Wait(); err != nil {
			t.Error(err)
		}
	}
	_, addrs = sharingProxies(t, s, address, 20, 1)
	if failed := askAll(s, addrs, 5, 50); failed > 0 {
		t.Errorf("%d failed after a restart", failed)
	}
	if served, refused := s.count(); refused > 0 {
		t.Errorf("%d served, %d refused", served, refused)
	}
}

// The verbs ls, show and forget list the nodes of a limit and their grants. They change nothing
// except that forget removes the limit.
func TestShareVerbs(t *testing.T) {
	t.Parallel()
	longName := strings.Repeat("https://api.example.com/", 8) + "model a"
	shortened := "…" + longName[len(longName)-longestName+1:]
	db := "sqlite:" + filepath.Join(t.TempDir(), "limits.db")
	ripeStore(t, db, "api", perSecondKeeper(20))
	s, err := openStore(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ripeStore(t, db, "team/key-1", perSecondKeeper(20))
	ripeStore(t, db, "team/key-2", perSecondKeeper(20))
	m, err := share.New(share.Config{Store: s, Name: "api", Own: perSecondKeeper(20), Who: "here/\x1b[31m1" + strings.Repeat("long", 30) + "/7"})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close(context.Background())
	gate := root.NewGate(m)
	for range 3 { // they are in flight
		if _, err := gate.Wait(t.Context(), limit.One); err != nil {
			t.Fatal(err)
		}
	}
	ripeStore(t, db, "newer", perSecondKeeper(20))
	putStore(t, db, "newer", nextVersion)
	for _, name := range []string{"broken", longName} {
		if err := s.Turn(t.Context(), name, func(share.Reading) ([]byte, error) { return []byte("no blob"), nil }); err != nil {
			t.Fatal(err)
		}
	}
	// Each limit has its row, whatever it is called, and the name that is shown there is one to be
	// looked up by.
	listed := func() (rows []map[string]string) {
		return clitest.ReadTable(t, sharePrints(t, "ls", db), "name")
	}
	rows := listed()
	if len(rows) != 6 || rows[0]["name"] != "api" || rows[0]["limit"] != "20/s" || rows[0]["nodes"] != "1" ||
		!strings.HasSuffix(rows[0]["last turn"], " ago") ||
		rows[1]["name"] != "broken" || !strings.HasPrefix(rows[1]["limit"], "share: the blob is damaged") || rows[1]["nodes"] != "–" || rows[2]["name"] != shortened || !strings.Contains(rows[3]["limit"], "version 8") {
		t.Errorf("share ls: %q", rows)
	}
	if text := sharePrints(t, "show", db, shortened); !strings.Contains(text, "damaged") {
		t.Errorf("share show of %q:\n%s", shortened, text)
	}
	if sharePrints(t, "forget", db, shortened); len(listed()) != 5 {
		t.Errorf("after %q was forgotten there are %q", shortened, listed())
	}
	for _, c := range []struct {
		args string
		code int
		says []string
	}{
		{"show " + db + " api", 0, []string{"  limit: 20/s (Rolling: 20 requests per 1s", "turns: ", " of 20 requests per 1 s\n", "which nobody can set", "node\n    …", "long/7:\n", "/s in the last 1", "granted in the last"}},
		{"show " + db, 0, []string{"api\n", "broken\n", "nothing is granted for a while once"}},
		{"show " + db + " broken", 0, []string{"broken\n", "damaged"}},
		{"show " + db + " newer", 0, []string{"is kept in version 8", "; who is not of that", "refused"}},
		{"show " + db + " team", 0, []string{"team/key-1\n", "team/key-2\n", "used: 0 of 20 requests per 1 s\n"}},
		{"show " + db + " none", 1, []string{`"none" is not there: expected a --share-name, or one of: api, broken, newer, team/key-1, team/key-2`}},
		{"forget " + db + " none", 1, []string{`"none" is not there`}},
		{"forget " + db + " broken", 0, []string{"forgotten: whoever comes first"}},
		{"forget " + db + " api", 0, []string{"forgotten, although 1 use it"}},
		{"ls sqlite:gone.db", cli.ExitConfig, []string{"sqlite:gone.db: there is no such file"}},
		{"ls nowhere", cli.ExitConfig, []string{"expected sqlite:FILE, postgres://… or redis://…"}},
		{"new sqlite:" + filepath.Join(t.TempDir(), "none", "x.db"), cli.ExitConfig, []string{"x.db"}},
		{"forget " + db, cli.ExitUsage, []string{"accepts 2 arg(s)"}},
	} {
		var out strings.Builder
		code := execute(t.Context(), append([]string{"share"}, strings.Fields(c.args)...), strings.NewReader(""), &out, &out)
		if code != c.code || strings.Contains(out.String(), "\x1b") {
			t.Errorf("share %s: exit %d\n%s", c.args, code, out.String())
		}
		for _, want := range c.says {
			if !strings.Contains(out.String(), want) {
				t.Errorf("share %s says\n%swant %s", c.args, out.String(), want)
			}
		}
	}
}

// sharePrints is what a verb of share that succeeds prints. All of it fits.
func sharePrints(t *testing.T, args ...string) string {
	t.Helper()
	text := printed(t, append([]string{"share"}, args...)...)
	for line := range strings.SplitSeq(text, "\n") {
		if screen.Width(line) > screen.TableWidth {
			t.Errorf("share %s: %d columns: %s", args, screen.Width(line), line)
		}
	}
	return text
}
