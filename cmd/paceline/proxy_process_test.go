package main

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/limit/mono"
)

// lawful is a server that enforces a limit for each key, and keeps a log of arrivals. It has
// several rules, and refuses a request that breaks one of them.
type lawful struct {
	*httptest.Server
	began time.Time
	rules func() []rule.Server // of a key that has not been seen

	mu      sync.Mutex
	keys    map[string][]rule.Server
	served  []uint8 // how often each id was
	passed  int
	at      []time.Duration // when each passed, after began
	refused []string
	later   string                                                    // Retry-After of what is refused
	more    func(w http.ResponseWriter, r *http.Request, id int) bool // other than to say which id it was
}

// newLawful starts a server that lets so many a window through for each key: in any window, and in
// those of a calendar, too.
func newLawful(t *testing.T, limit int64, window time.Duration) *lawful {
	t.Helper()
	return newLawfulBy(t, limit, window, (*httptest.Server).Start)
}

// newLawfulBy is newLawful, with TLS or without.
func newLawfulBy(t *testing.T, limit int64, window time.Duration, start func(*httptest.Server)) *lawful {
	t.Helper()
	s := &lawful{began: time.Now(), keys: map[string][]rule.Server{}}
	s.rules = func() []rule.Server {
		rolling, err := rule.NewRolling(rule.RollingConfig{Limit: limit, Window: window})
		fixed, err2 := rule.NewCalendar(rule.CalendarConfig{Limit: limit, Window: window, Phase: mono.Time(rand.N(window))})
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		return []rule.Server{rolling, fixed}
	}
	s.Server = httptest.NewUnstartedServer(s)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.EnableHTTP2 = true
	start(s.Server)
	t.Cleanup(s.Close)
	return s
}

// also has it enforce another limit besides, in any window. It is for before the first request.
func (s *lawful) also(t *testing.T, limit int64, window time.Duration) {
	before := s.rules
	s.rules = func() []rule.Server {
		rolling, err := rule.NewRolling(rule.RollingConfig{Limit: limit, Window: window})
		if err != nil {
			t.Fatal(err)
		}
		return append(before(), rolling)
	}
}

// anyURL takes requests without an id, too, and gives each the next number.
func (s *lawful) anyURL() {
	var next atomic.Int64
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if q := r.URL.Query(); !q.Has("id") {
			q.Set("id", fmt.Sprint(next.Add(1)-1))
			r.URL.RawQuery = q.Encode()
		}
		s.ServeHTTP(w, r)
	})
}

// arrive judges a request.
func (s *lawful) arrive(key string, id int) (ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keys[key] == nil {
		s.keys[key] = s.rules()
	}
	ok = true
	for _, r := range s.keys[key] {
		ok = r.Arrive(mono.Time(time.Since(s.began)), 1) && ok
	}
	if !ok {
		s.refused = append(s.refused, fmt.Sprintf("%d with %s after %v", id, key, time.Since(s.began)))
		return false
	}
	s.passed++
	s.at = append(s.at, time.Since(s.began))
	for len(s.served) <= id {
		s.served = append(s.served, 0)
	}
	s.served[id] = min(s.served[id]+1, 9)
	return true
}

func (s *lawful) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id, err := strconv.Atoi(r.URL.Query().Get("id"))
	if err != nil {
		http.Error(w, "no id", http.StatusBadRequest)
		return
	}
	if !s.arrive(r.Header.Get("Authorization"), id) {
		if s.later != "" {
			w.Header().Set("Retry-After", s.later)
		}
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	if s.more != nil && s.more(w, r, id) {
		return
	}
	_, _ = io.Copy(io.Discard, r.Body)
	fmt.Fprintf(w, "of %d", id)
}

// times is how often an id was served.
func (s *lawful) times(id int) uint8 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id < len(s.served) {
		return s.served[id]
	}
	return 0
}

// told returns the refusals, and the number of passed requests.
func (s *lawful) told() (refused []string, passed int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.refused), s.passed
}

// span is the time from the first passed request to the last.
func (s *lawful) span() time.Duration { return s.since(0) }

// since is the time from a passed request, counted from 0, to the last.
func (s *lawful) since(n int) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n >= len(s.at) {
		return 0
	}
	return s.at[len(s.at)-1] - s.at[n]
}

// passing is a `paceline proxy` as a process of its own, which may be killed and started again at
// the same addresses.
type passing struct {
	t         *testing.T
	at, admin string
	args, env []string
	said      earshot
	process   *exec.Cmd
	tune      func(*exec.Cmd) // nil: nothing
	ended     chan error
}

// earshot is the end of what a process says, and whether a secret was in it.
type earshot struct {
	mu      sync.Mutex
	secrets []string
	line    []byte // its last, as far as it goes
	tail    []byte
	leaked  string
}

func (s *earshot) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.line = append(s.line, p...)
	for _, secret := range s.secrets {
		if i := bytes.Index(s.line, []byte(secret)); i >= 0 && s.leaked == "" {
			s.leaked = string(s.line[max(i-200, 0):])
		}
	}
	s.line = slices.Clone(s.line[bytes.LastIndexByte(s.line, '\n')+1:])
	s.tail = append(s.tail, p...)
	s.tail = slices.Clone(s.tail[max(0, len(s.tail)-4000):])
	return len(p), nil
}

func (s *earshot) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.tail)
}

// newPassing is a proxy that does not run yet.
func newPassing(t *testing.T, secrets []string, args ...string) *passing {
	t.Helper()
	p := &passing{t: t, at: need.Address(t), admin: need.Address(t)}
	p.args = append([]string{"proxy", "--listen", p.at, "--admin", p.admin}, args...)
	p.said.secrets = secrets
	t.Cleanup(func() {
		p.kill()
		if p.said.leaked != "" {
			t.Errorf("it says a secret: %q", p.said.leaked)
		}
	})
	return p
}

// begin starts it, and returns when it serves.
func (p *passing) begin() {
	p.t.Helper()
	p.process = program(p.t, p.args...)
	p.process.Env = append(p.process.Env, p.env...)
	p.process.Stderr = &p.said
	if p.tune != nil {
		p.tune(p.process)
	}
	if err := p.process.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.ended = make(chan error, 1)
	go func(c *exec.Cmd, ended chan error) { ended <- c.Wait() }(p.process, p.ended)
	for end := time.Now().Add(time.Minute); ; time.Sleep(3 * time.Millisecond) {
		select {
		case err := <-p.ended:
			p.process = nil
			p.t.Fatalf("the proxy ended with %v: %s", err, p.said.String())
		default:
		}
		if c, err := net.Dial("tcp", p.at); err == nil {
			c.Close()
			return
		}
		if time.Now().After(end) {
			p.t.Fatalf("the proxy does not come up: %s", p.said.String())
		}
	}
}

// kill is kill -9.
func (p *passing) kill() {
	if p.process == nil {
		return
	}
	_ = p.process.Process.Kill()
	<-p.ended
	p.process = nil
}

// stop has it end as SIGTERM does.
func (p *passing) stop() {
	p.t.Helper()
	_ = p.process.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-p.ended:
		if err != nil {
			p.t.Errorf("the proxy ended with %v: %s", err, p.said.String())
		}
	case <-time.After(time.Minute):
		p.t.Errorf("the proxy does not end: %s", p.said.String())
		p.kill()
	}
	p.process = nil
}

// look asks the admin port.
func (p *passing) look(path string) string {
	p.t.Helper()
	resp, err := http.Get("http://" + p.admin + path)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		p.t.Fatalf("%s: %d %v %s", path, resp.StatusCode, err, b)
	}
	return string(b)
}

// series are the values in what /metrics says, by the name with its labels.
func series(text string) map[string]float64 {
	all := map[string]float64{}
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "} ")
		if ok {
			name += "}"
		} else {
			name, value, _ = strings.Cut(strings.TrimSpace(line), " ")
		}
		if n, err := strconv.ParseFloat(value, 64); err == nil && !strings.HasPrefix(line, "#") {
			all[name] = n
		}
	}
	return all
}
