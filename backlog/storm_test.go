package backlog_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/backlog"
	"github.com/paceline-go/paceline/backlog/postgres"
	"github.com/paceline-go/paceline/backlog/sqlite"
	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/share"
	sharepostgres "github.com/paceline-go/paceline/share/postgres"
	sharesqlite "github.com/paceline-go/paceline/share/sqlite"
)

// TestMain is a worker of a storm, where that has started it.
func TestMain(m *testing.M) {
	if os.Getenv("PACELINE_STORM_STORE") != "" {
		if err := storming(); err != nil {
			fmt.Fprintln(os.Stderr, os.Getpid(), err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// storming sends what the backlog has, until it is empty.
func storming() error {
	ctx := context.Background()
	store, err := openStore(os.Getenv("PACELINE_STORM_STORE"), true)
	if err != nil {
		return err
	}
	defer store.Close()
	b, err := backlog.Open(ctx, store, "jobs", backlog.Options{Existing: true})
	if err != nil {
		return err
	}
	perSecond, err := strconv.Atoi(os.Getenv("PACELINE_STORM_LIMIT"))
	if err != nil {
		return err
	}
	own := func() limit.Limiter { return limit.MustRolling(int64(perSecond), time.Second) }
	limiter := own()
	if address := os.Getenv("PACELINE_STORM_SHARE"); address != "" {
		member, done, err := member(ctx, address, own)
		if err != nil {
			return err
		}
		defer done()
		limiter = member
	}
	url := os.Getenv("PACELINE_STORM_URL")
	client := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	if os.Getenv("PACELINE_STORM_ALONE") != "" {
		alone(ctx, paceline.NewGate(limiter), client, url)
	}
	w, err := backlog.NewWorker(backlog.WorkerConfig{
		Backlog: b, Gate: paceline.NewGate(limiter), UntilEmpty: true, Attempts: 50,
		Do: func(ctx context.Context, a *backlog.Attempt) backlog.Reply { return post(ctx, client, url, a) },
	})
	if err != nil {
		return err
	}
	return w.Run(ctx)
}

// alone sends as much as the limit allows, without a backlog, until the process is killed.
func alone(ctx context.Context, gate *paceline.Gate, client *http.Client, url string) {
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			for {
				permit, err := gate.Wait(ctx, limit.One)
				if err != nil || !permit.Fresh() {
					permit.Settle(limit.Outcome{Result: limit.Unsent})
					continue
				}
				if resp, err := client.Post(url+"/x", "", strings.NewReader("the body")); err == nil {
					io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
				permit.Settle(limit.Outcome{Result: limit.Accepted})
			}
		})
	}
	all.Wait()
}

// post sends one request. It is a POST, which net/http does not send twice by itself.
func post(ctx context.Context, client *http.Client, url string, a *backlog.Attempt) backlog.Reply {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/"+a.ID, strings.NewReader(string(a.Data)))
	if err != nil {
		return backlog.Finished(backlog.Answer{State: backlog.Dead, Class: err.Error()})
	}
	req.Header.Set("User-Agent", strconv.Itoa(os.Getpid()))
	if !a.Fresh() {
		return backlog.NotSent()
	}
	resp, err := client.Do(req)
	if err != nil {
		return backlog.Retry(0, true, backlog.Answer{})
	}
	defer resp.Body.Close()
	line, err := io.ReadAll(resp.Body)
	if err != nil {
		return backlog.Retry(0, true, backlog.Answer{})
	}
	return backlog.Finished(backlog.Answer{State: backlog.Done, Line: line})
}

func openStore(address string, existing bool) (backlog.Store, error) {
	file, isFile := strings.CutPrefix(address, "sqlite:")
	switch {
	case isFile && existing:
		return sqlite.OpenExisting(file)
	case isFile:
		return sqlite.Open(file)
	}
	for try := 0; ; try++ { // the database may be restarting
		s, err := postgres.Open(context.Background(), address)
		if err == nil || try == 300 {
			return s, err
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// member returns the part of a shared limit, and a function that gives it back.
func member(ctx context.Context, address string, own func() limit.Limiter) (*share.Member, func(), error) {
	var store share.Store
	closes := func() {}
	if file, ok := strings.CutPrefix(address, "sqlite:"); ok {
		s, err := sharesqlite.Open(file)
		if err != nil {
			return nil, nil, err
		}
		store, closes = s, func() { s.Close() }
	} else {
		var s *sharepostgres.Store
		var err error
		for range 300 { // the database may be restarting
			if s, err = sharepostgres.Open(ctx, address); err == nil {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		if err != nil {
			return nil, nil, err
		}
		store, closes = s, s.Close
	}
	m, err := share.Limiter(store, "the server", own)
	return m, func() { m.Close(ctx); closes() }, err
}

// server counts requests by their ids, and refuses what is over its limit.
type server struct {
	*httptest.Server
	mu      sync.Mutex
	counts  map[string]int
	senders map[string][]int
	sent    int
	refused int
	first   time.Time
	last    time.Time
	seconds map[int]int // arrivals in each second since first
}

func newServer(t *testing.T, perSecond int) *server {
	r, err := rule.NewRolling(rule.RollingConfig{Limit: int64(perSecond), Window: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	s := &server{counts: map[string]int{}, senders: map[string][]int{}, seconds: map[int]int{}}
	base := time.Now()
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		s.mu.Lock()
		s.sent++
		if s.last = time.Now(); s.first.IsZero() {
			s.first = s.last
		}
		s.seconds[int(s.last.Sub(s.first)/time.Second)]++
		id := strings.TrimPrefix(req.URL.Path, "/")
		sender, _ := strconv.Atoi(req.UserAgent())
		s.counts[id]++
		s.senders[id] = append(s.senders[id], sender)
		if !r.Arrive(mono.Of(base, s.last), 1) {
			s.refused++
		}
		s.mu.Unlock()
		time.Sleep(5*time.Millisecond + rand.N(50*time.Millisecond))
		fmt.Fprint(w, "answer")
	}))
	t.Cleanup(s.Close)
	return s
}

// quiet returns how many arrived in each whole second that no fault is near. The first one and the last two are left
// out: limits begin, and the last requests are those of the worker that died last.
func (s *server) quiet(near [][2]time.Time) (all []int) {
	for n := 1; n < int(s.last.Sub(s.first)/time.Second)-1; n++ {
		from := s.first.Add(time.Duration(n) * time.Second)
		touches := func(f [2]time.Time) bool { return from.Before(f[1]) && from.Add(time.Second).After(f[0]) }
		if !slices.ContainsFunc(near, touches) {
			all = append(all, s.seconds[n])
		}
	}
	return all
}

func (s *server) arrived() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent
}

// storm is processes that send one backlog to one server.
type storm struct {
	*testing.T
	server  *server
	address string
	share   string // where the limit is; empty: each process has its own
	each    int    // the limit of a process, or of all
	jobs    int
	alone   bool // without the backlog
	db      *need.Service
	store   backlog.Store
	list    *backlog.Backlog
	all     []*exec.Cmd
	lines   map[*exec.Cmd]*line // of PostgreSQL
	// mayBeUnnamed says of the processes that sent a request twice that it need not be named; nil: no.
	mayBeUnnamed func(senders []int) bool
}

// line is a network between one process and the database, which can be cut. What was sent before arrives when
// it is whole again, also if its sender has given up.
type line struct {
	net.Listener
	to   string
	mu   sync.Mutex
	join *sync.Cond
	cut  bool
}

func newLine(t *testing.T, port int) *line {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	n := &line{Listener: l, to: fmt.Sprint("127.0.0.1:", port)}
	n.join = sync.NewCond(&n.mu)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go n.carry(c)
		}
	}()
	return n
}

func (l *line) port() int { return l.Addr().(*net.TCPAddr).Port }

func (l *line) set(cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = cut
	l.join.Broadcast()
}

func (l *line) carry(c net.Conn) {
	l.pass()
	d, err := net.Dial("tcp", l.to)
	if err != nil {
		c.Close()
		return
	}
	one := func(from, to net.Conn) {
		defer to.Close()
		text := make([]byte, 64<<10)
		for {
			n, err := from.Read(text)
			l.pass()
			if _, err := to.Write(text[:n]); err != nil {
				return
			}
			if err != nil {
				return
			}
		}
	}
	go one(d, c)
	one(c, d)
}

// pass waits while the line is cut.
func (l *line) pass() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.cut {
		l.join.Wait()
	}
}

func newStorm(t *testing.T, s storm) *storm {
	t.Helper()
	s.T, s.server, s.lines = t, newServer(t, 200), map[*exec.Cmd]*line{}
	var err error
	if s.store, err = openStore(s.address, false); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.store.Close() })
	if s.list, err = backlog.Open(t.Context(), s.store, "jobs", backlog.Options{}); err != nil {
		t.Fatal(err)
	}
	jobs := make([]backlog.Job, s.jobs)
	for i := range jobs {
		jobs[i] = backlog.Job{ID: strconv.Itoa(i), Data: []byte("the body")}
	}
	if _, err := s.list.Enqueue(t.Context(), jobs...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, c := range s.all {
			c.Process.Kill()
			c.Wait()
		}
	})
	return &s
}

func (s *storm) start(n int) {
	s.Helper()
	for range n {
		c := exec.Command(os.Args[0])
		address, share := s.address, s.share
		if s.db != nil {
			l := newLine(s.T, s.db.Port)
			s.lines[c] = l
			address = strings.Replace(address, fmt.Sprint(":", s.db.Port, "/"), fmt.Sprint(":", l.port(), "/"), 1)
			share = address
		}
		c.Env = append(os.Environ(), "PACELINE_STORM_STORE="+address, "PACELINE_STORM_SHARE="+share,
			"PACELINE_STORM_URL="+s.server.URL, fmt.Sprint("PACELINE_STORM_LIMIT=", s.each))
		if s.alone {
			c.Env = append(c.Env, "PACELINE_STORM_ALONE=1")
		}
		c.Stderr = os.Stderr
		if err := c.Start(); err != nil {
			s.Fatal(err)
		}
		s.all = append(s.all, c)
	}
}

// until waits until so many requests have arrived.
func (s *storm) until(n int) {
	s.Helper()
	for deadline := time.Now().Add(3 * time.Minute); s.server.arrived() < n; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.Fatalf("%d of %d requests have arrived", s.server.arrived(), n)
		}
	}
}

// kill ends a process at once.
func (s *storm) kill(i int) *exec.Cmd {
	c := s.all[i]
	s.all = append(s.all[:i:i], s.all[i+1:]...)
	c.Process.Kill()
	c.Wait()
	return c
}

// check waits for the processes, and compares what they sent with what the backlog says.
func (s *storm) check(mostNamed int) {
	s.Helper()
	for _, c := range s.all {
		if err := c.Wait(); err != nil {
			s.Errorf("a worker ended with %v", err)
		}
	}
	s.all = nil
	s.server.mu.Lock() // an answer that nobody waits for may still be on its way
	defer s.server.mu.Unlock()
	results, named, twice, unnamed, excused := 0, 0, 0, 0, 0
	for r, err := range s.list.Results(context.Background(), 0) {
		if err != nil {
			s.Fatal(err)
		}
		if results++; r.ID != strconv.Itoa(results-1) || r.State != backlog.Done || string(r.Line) != "answer" {
			s.Errorf("result %d is %+v", results, r)
		}
		n := s.server.counts[r.ID]
		if n == 0 {
			s.Errorf("%s has a result, and was not sent", r.ID)
		}
		if r.Repeat {
			named++
		}
		if n > 1 {
			twice++
			switch senders := s.server.senders[r.ID]; {
			case r.Repeat:
			case s.mayBeUnnamed != nil && s.mayBeUnnamed(senders):
				excused++
			default:
				unnamed++
			}
		}
	}
	s.Logf("%d results of %d, %d sent, %d refused, %d twice, %d of these not named and %d of the dead, %d named", results,
		s.jobs, s.server.sent, s.server.refused, twice, unnamed, excused, named)
	if results != s.jobs || s.server.refused > 0 || unnamed > 0 || named > mostNamed {
		s.Errorf("expected %d results, nothing refused, nothing that is not named, and at most %d named", s.jobs, mostNamed)
	}
}

// Three processes send one file's backlog at a strict server. One is killed, and one is stopped for a
// while: nothing is lost or refused, and what went twice is named. Each has its part of the limit. The
// killed one is given up by this test as soon as it is dead: others would do so 15 s later.
func TestStorm(t *testing.T) {
	dir := t.TempDir()
	s := newStorm(t, storm{address: "sqlite:" + filepath.Join(dir, "jobs.db"), each: 60, jobs: 500})
	s.start(3)
	s.until(100)
	killed := s.kill(0)
	all, err := s.list.Workers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range all {
		if w.PID == killed.Process.Pid {
			if done, err := s.store.GiveUp(t.Context(), backlog.Beat{Worker: w.ID, Beat: w.Beat}); !done || err != nil {
				t.Fatalf("the killed worker is not given up: %v", err)
			}
		}
	}
	if err := s.all[0].Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	time.Sleep(1100 * time.Millisecond) // what the killed one sent counts no more at the server
	s.start(1)
	if err := s.all[0].Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	s.check(60 + 20) // what one may have in flight, and marked
}

// Ten processes share 200 a second and one backlog, at each store, through kills and stops. PostgreSQL
// restarts, and its network is cut.
func TestLongStorm(t *testing.T) {
	need.WholeOnly(t, "a storm takes half a minute")
	jobs, faults, engines := 1500, 3, []string{"postgres"} // TestStorm has SQLite
	if need.Long() {
		jobs, faults, engines = 20_000, 20, []string{"sqlite", "postgres"}
	}
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			s := storm{each: 200, jobs: jobs}
			if engine == "postgres" {
				s.db = need.PostgreSQL(t)
				s.address, s.share = s.db.URL, s.db.URL
			} else {
				dir := t.TempDir()
				s.address, s.share = "sqlite:"+filepath.Join(dir, "jobs.db"), "sqlite:"+filepath.Join(dir, "limits.db")
			}
			newStorm(t, s).blow(faults)
		})
	}
}

// blow does faults, evenly over the requests.
func (s *storm) blow(faults int) {
	const workers = 10
	s.start(workers)
	began := time.Now()
	var near [][2]time.Time
	for i := range faults {
		s.until((i + 1) * s.jobs * 2 / (faults * 3))
		lasts := time.Duration(0)
		switch i % 5 {
		case 0, 3:
			s.kill(rand.IntN(len(s.all)))
			s.start(1)
		case 1: // shorter and longer than 15 s
			stopped, d := s.all[rand.IntN(len(s.all))].Process, 5*time.Second
			if i%2 == 1 {
				d = 20 * time.Second
			}
			if s.db == nil { // it may be stopped within a turn, which holds up all others
				d = min(d, 5*time.Second)
			}
			stopped.Signal(syscall.SIGSTOP)
			lasts = d
			time.AfterFunc(d, func() { stopped.Signal(syscall.SIGCONT) })
		case 2:
			if s.db != nil {
				s.db.Crash()
				time.Sleep(2 * time.Second)
				s.db.Start()
			}
		case 4:
			if s.db != nil {
				l := s.lines[s.all[rand.IntN(len(s.all))]]
				l.set(true)
				lasts = 18 * time.Second
				time.AfterFunc(lasts, func() { l.set(false) })
			}
		}
		const after = 5 * time.Second
		near = append(near, [2]time.Time{time.Now().Add(-after), time.Now().Add(lasts + after)})
	}
	s.check(faults * 80)
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	s.Logf("in the seconds with no fault near: %v", s.server.quiet(near))
	d := s.server.last.Sub(began)
	s.Logf("%v, %.0f a second", d.Round(time.Second), float64(s.server.sent)/d.Seconds())
}

// Ten processes with a backlog send as much as ten with the same shared limit alone: both are measured in
// turn, between the 1,000th request and the last but 1,000.
func TestRate(t *testing.T) {
	if !need.Long() {
		t.Skip("it measures the machine: PACELINE_LONG=1")
	}
	for _, engine := range []string{"sqlite", "postgres"} {
		t.Run(engine, func(t *testing.T) {
			rates := map[bool][]float64{}
			for round := range 6 {
				s := storm{each: 200, jobs: 5000, alone: round%2 == 1}
				if engine == "postgres" {
					db := need.PostgreSQL(t)
					s.address, s.share = db.URL, db.URL
				} else {
					dir := t.TempDir()
					s.address, s.share = "sqlite:"+filepath.Join(dir, "jobs.db"), "sqlite:"+filepath.Join(dir, "limits.db")
				}
				storm := newStorm(t, s)
				storm.start(10)
				storm.until(1000)
				began, from := time.Now(), storm.server.arrived()
				storm.until(4000)
				rate := float64(storm.server.arrived()-from) / time.Since(began).Seconds()
				rates[s.alone] = append(rates[s.alone], rate)
				t.Logf("alone %v: %.1f a second", s.alone, rate)
				if s.alone {
					for len(storm.all) > 0 {
						storm.kill(0)
					}
					continue
				}
				for _, c := range storm.all {
					c.Wait()
				}
				all, err := storm.list.Workers(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for _, w := range all {
					t.Logf("a worker sent %d in %d turns", w.Results, w.Beat)
				}
			}
			slices.Sort(rates[true])
			slices.Sort(rates[false])
			with, without := rates[false][1], rates[true][1]
			t.Logf("with a backlog %.1f a second, alone %.1f: %.1f %%", with, without, 100*with/without)
			if with < 0.97*without {
				t.Error("the backlog slows it down")
			}
		})
	}
}
