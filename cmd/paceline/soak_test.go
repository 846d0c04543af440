package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/limit/mono"
)

const soakKey = "soak-hunter2-8d1f6a"

// soakLimit per soakWindow is the server's limit, and the value of --limit.
const (
	soakLimit  = 40
	soakWindow = time.Second
)

// shaky is a server with all faults. It goes away for a while and comes back at the same address,
// recycles connections, or does not answer at all. It refuses with status 200, redirects to a host
// abroad, and states any limits. It enforces a rolling window, and reports whether that was broken.
type shaky struct {
	at     string
	abroad *httptest.Server

	mu       sync.Mutex
	srv      *http.Server
	rng      *rand.Rand
	rule     rule.Amendable
	began    time.Time
	refused  []string          // by the rule: a right client has none
	served   map[string]int    // how often each id was, or may have been
	story    map[string]string // what became of each id, and when
	arrived  int
	leaks    []string // what arrived abroad and is a secret
	outages  int
	downs    []time.Duration // when it went away
	did      map[string]int
	nonsense []string

	unwelcome map[string]bool // abroad
}

func newShaky(t *testing.T, seed uint64) *shaky {
	t.Helper()
	r, err := rule.NewRolling(rule.RollingConfig{Limit: soakLimit, Window: soakWindow})
	if err != nil {
		t.Fatal(err)
	}
	s := &shaky{at: need.Address(t), rng: rand.New(rand.NewPCG(seed, 1)), rule: r, began: time.Now(), served: map[string]int{}, story: map[string]string{}, did: map[string]int{}, unwelcome: map[string]bool{}}
	s.abroad = httptest.NewServer(http.HandlerFunc(s.foreign))
	t.Cleanup(s.abroad.Close)
	s.up(t)
	t.Cleanup(s.down)
	return s
}

// up starts the server. Another program may have this address for a moment: then the server is away
// for longer.
func (s *shaky) up(t *testing.T) {
	l, err := net.Listen("tcp", s.at)
	for end := time.Now().Add(patient); err != nil; l, err = net.Listen("tcp", s.at) {
		if time.Now().After(end) {
			t.Error(err)
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	srv := &http.Server{Handler: s, ErrorLog: log.New(io.Discard, "", 0)}
	s.mu.Lock()
	s.srv = srv
	s.mu.Unlock()
	go func() { _ = srv.Serve(l) }()
}

func (s *shaky) down() {
	s.mu.Lock()
	srv := s.srv
	s.mu.Unlock()
	_ = srv.Close()
}

// weather has the server be away again and again, between least and most each time, until stop is
// closed; then it is there.
func (s *shaky) weather(t *testing.T, least, most time.Duration, stop <-chan struct{}) {
	for {
		fine, away := least+rand.N(most), least+rand.N(most-least)
		select {
		case <-stop:
			return
		case <-time.After(fine):
		}
		s.down()
		s.mu.Lock()
		s.outages++
		s.downs = append(s.downs, time.Since(s.began).Round(time.Millisecond))
		s.mu.Unlock()
		select {
		case <-stop:
		case <-time.After(away):
		}
		s.up(t)
	}
}

// deeds are what may become of a request, and how likely, in thousandths.
var deeds = []struct {
	name string
	odds int
}{{"no answer", 15}, {"recycled", 30}, {"refused with 200", 15}, {"abroad", 15}, {"error", 15}, {"slow", 20}}

func (s *shaky) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	id := q.URL.Query().Get("id")
	s.mu.Lock()
	s.arrived++
	passed := s.rule.Arrive(mono.Time(time.Since(s.began)), 1)
	deed, roll := "served", s.rng.IntN(1000)
	for _, d := range deeds {
		if roll -= d.odds; roll < 0 {
			deed = d.name
			break
		}
	}
	if !passed {
		deed = "limited"
		s.refused = append(s.refused, id)
	}
	if got := q.Header.Get("Authorization"); got != "Bearer "+soakKey {
		s.nonsense = append(s.nonsense, id+" came with "+got)
	}
	s.did[deed]++
	s.story[id] += fmt.Sprintf(" %v %s,", time.Since(s.began).Round(time.Millisecond), deed)
	if deed != "limited" && deed != "refused with 200" && deed != "error" && deed != "abroad" {
		s.served[id]++
	}
	lies := s.lies()
	s.mu.Unlock()
	maps.Copy(w.Header(), lies)
	w.Header().Set("Content-Type", "application/json")
	switch deed {
	case "no answer":
		if c, _, err := w.(http.Hijacker).Hijack(); err == nil {
			_ = c.Close()
		}
		return
	case "recycled":
		w.Header().Set("Connection", "close")
	case "limited":
		w.WriteHeader(http.StatusTooManyRequests)
		return
	case "refused with 200":
		fmt.Fprint(w, `{"error":["EAPI:Rate limit exceeded"]}`)
		return
	case "abroad":
		http.Redirect(w, q, strings.Replace(s.abroad.URL, "127.0.0.1", "localhost", 1)+"/?id="+id, http.StatusTemporaryRedirect)
		return
	case "error":
		w.WriteHeader(http.StatusInternalServerError)
		return
	case "slow":
		time.Sleep(300 * time.Millisecond)
	}
	fmt.Fprintf(w, `{"error":[],"result":"of %s"}`, id)
}

// lies returns statements of a header that make no client wait for long.
func (s *shaky) lies() http.Header {
	pick := func(of ...string) []string { return []string{of[s.rng.IntN(len(of))]} }
	if s.rng.IntN(4) > 0 {
		return nil
	}
	return http.Header{
		"X-Ratelimit-Limit":     pick("1000000", "1", "-5", "plenty"),
		"X-Ratelimit-Remaining": pick("1000000", "0", "-1", "9223372036854775808"),
		"X-Ratelimit-Reset":     pick("1", "0", "-3", "then", "1970-01-01T00:00:00Z"),
		"Retry-After":           pick("0", "-1", "soon", "1"),
	}
}

// foreign is the host abroad, and looks for what should have stayed at home.
func (s *shaky) foreign(w http.ResponseWriter, q *http.Request) {
	all, _ := io.ReadAll(q.Body)
	all = fmt.Appendf(all, "\n%s\n%v", q.URL, q.Header)
	id := q.URL.Query().Get("id")
	s.mu.Lock()
	defer s.mu.Unlock()
	if bytes.Contains(all, []byte(soakKey)) || q.Header.Get("Authorization") != "" || q.Header.Get("Cookie") != "" {
		s.leaks = append(s.leaks, string(all))
	}
	if s.rng.IntN(4) == 0 {
		s.unwelcome[id] = true
		w.WriteHeader(http.StatusUnauthorized) // which says nothing of the key: a dead letter, and no more
		return
	}
	s.served[id]++
	fmt.Fprintf(w, `{"error":[],"result":"of %s"}`, id)
}

// soakFor is PACELINE_SOAK, or a few seconds: what ./check has the time for.
func soakFor(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("PACELINE_SOAK")
	if text == "" {
		if need.Long() {
			return 50 * time.Second
		}
		return 3 * time.Second
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		t.Fatalf("PACELINE_SOAK=%q: want a time such as 30m", text)
	}
	return d
}

// A run against such a server is killed again and again, and resumed. In the end each id is there
// exactly once, and every repeat is named. Over all processes the limit was kept. No secret is
// anywhere, and memory has not grown.
//
//	PACELINE_SOAK=30m go test ./cmd/paceline -run TestSoak -v -timeout 50m
func TestSoak(t *testing.T) {
	t.Parallel()
	k := newSoak(t)
	stop := make(chan struct{})
	var weather sync.WaitGroup
	weather.Go(func() { k.server.weather(t, k.length/1800, k.length/30, stop) })
	for last := time.Now(); time.Since(k.began) < k.length; {
		if k.step(k.killAfter()) { // done: more to do
			k.more()
		}
		if time.Since(last) > time.Minute {
			last = time.Now()
			k.say()
		}
	}
	close(stop)
	weather.Wait()
	for end := time.Now().Add(k.length/2 + patient); !k.step(time.Until(end)); {
		if time.Now().After(end) {
			t.Fatalf("not done %v after the last outage: %s", k.length/2+patient, k.last())
		}
	}
	k.say()
	k.judge()
}

type soak struct {
	t      *testing.T
	length time.Duration
	began  time.Time
	server *shaky
	dir    string
	n      int // ids
	args   []string
	kills  int
	killed []time.Duration
	runs   int
	said   bytes.Buffer // all that was written on standard error
	tail   string       // of the latest process
	rss    []int64      // of each process that lived long enough, in kB
}

func newSoak(t *testing.T) *soak {
	k := &soak{t: t, length: soakFor(t), began: time.Now(), server: newShaky(t, 1), dir: t.TempDir()}
	k.args = []string{"run", "--limit", fmt.Sprintf("%d/%v", soakLimit, soakWindow), "--key-env", "PL_SOAK_KEY", "--header", "Authorization: Bearer {key}",
		"--redirects", "3", "--attempts", "30", "--backoff-max", "500ms", "--timeout", "10s", "--progress", "off", "--provider", "kraken",
		"--out", filepath.Join(k.dir, "out.jsonl"), filepath.Join(k.dir, "in.jsonl")}
	k.more()
	return k
}

// more appends requests to the input.
func (k *soak) more() {
	var b strings.Builder
	for range int(max(50, soakLimit*k.length.Seconds()/20)) {
		fmt.Fprintf(&b, "{\"id\":\"%d\",\"url\":\"http://%s/?id=%d\"}\n", k.n, k.server.at, k.n)
		k.n++
	}
	f, err := os.OpenFile(filepath.Join(k.dir, "in.jsonl"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		k.t.Fatal(err)
	}
	if _, err := f.WriteString(b.String()); err != nil || f.Close() != nil {
		k.t.Fatal(err)
	}
}

func (k *soak) killAfter() time.Duration {
	most := max(k.length/300, 500*time.Millisecond)
	if race.Enabled {
		most = max(most, 1500*time.Millisecond)
	}
	return most/10 + rand.N(most)
}

// step runs the command until it is done, or kills it after a while.
func (k *soak) step(after time.Duration) (done bool) {
	var errs bytes.Buffer
	c := program(k.t, k.args...)
	c.Env = append(c.Env, "PL_SOAK_KEY="+soakKey, usersGC)
	c.Stderr = &errs
	began := time.Now()
	if err := c.Start(); err != nil {
		k.t.Fatal(err)
	}
	k.runs++
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	var err error
	select {
	case err = <-ended:
		var dead *exec.ExitError // some are dead letters, and nothing is left
		if done = err == nil || errors.As(err, &dead) && dead.ExitCode() == cli.ExitSomeFailed; done {
			err = nil
		}
	case <-time.After(after):
		if time.Since(began) > 400*time.Millisecond {
			k.rss = append(k.rss, residentKB(c.Process.Pid)...)
		}
		_ = c.Process.Kill()
		<-ended
		k.kills++
		k.killed = append(k.killed, time.Since(k.server.began).Round(time.Millisecond))
	}
	k.said.Write(errs.Bytes())
	k.tail = errs.String()
	if err != nil {
		k.t.Fatalf("run %d ended with %v: %s", k.runs, err, k.last())
	}
	return done
}

func (k *soak) last() string { return k.tail[max(0, len(k.tail)-2000):] }

func (k *soak) say() {
	s := k.server
	s.mu.Lock()
	defer s.mu.Unlock()
	least, most := int64(0), int64(0)
	if len(k.rss) > 0 {
		least, most = slices.Min(k.rss), slices.Max(k.rss)
	}
	k.t.Logf("%v: %d ids, %d arrivals %v, %d outages, %d kills in %d runs, %d refused, %d secrets abroad, memory %d to %d kB",
		time.Since(k.began).Round(time.Second), k.n, s.arrived, s.did, s.outages, k.kills, k.runs, len(s.refused), len(s.leaks), least, most)
}

// usersGC is for a program whose memory is judged: its collector runs as often as a user's, and not as check has it.
const usersGC = "GOGC=100"

// residentKB returns the memory of a process, where the system says it.
func residentKB(pid int) []int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil || runtime.GOOS != "linux" {
		return nil
	}
	_, after, _ := strings.Cut(string(text), "VmRSS:")
	line, _, _ := strings.Cut(after, "kB")
	n, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
	if err != nil {
		return nil
	}
	return []int64{n}
}

func (k *soak) judge() {
	t, s := k.t, k.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.refused) > 0 {
		t.Errorf("%d of %d arrivals were over the limit: %v", len(s.refused), s.arrived, clipped(s.refused))
	}
	if len(s.leaks) > 0 {
		t.Errorf("%d times a secret went abroad: %v", len(s.leaks), clipped(s.leaks))
	}
	if len(s.nonsense) > 0 {
		t.Errorf("%d requests came without their key: %v", len(s.nonsense), clipped(s.nonsense))
	}
	count, repeats := map[string]int{}, map[string]bool{}
	for _, r := range results(t, filepath.Join(k.dir, "out.jsonl")) {
		count[r.ID]++
		repeats[r.ID] = r.PossibleRepeat
		if r.Body == nil || *r.Body != fmt.Sprintf(`{"error":[],"result":"of %s"}`, r.ID) {
			t.Errorf("stored as done: %+v", r)
		}
	}
	var wrong []string
	if _, err := os.Stat(filepath.Join(k.dir, "out.dead.jsonl")); err == nil {
		for _, r := range results(t, filepath.Join(k.dir, "out.dead.jsonl")) {
			count[r.ID]++
			repeats[r.ID] = r.PossibleRepeat
			if !s.unwelcome[r.ID] {
				wrong = append(wrong, fmt.Sprintf("%s is a dead letter: %s", r.ID, r.Error))
			}
		}
	}
	for i := range k.n {
		id := strconv.Itoa(i)
		if count[id] != 1 {
			wrong = append(wrong, fmt.Sprintf("%s is there %d times", id, count[id]))
		}
		if s.served[id] > 1 && !repeats[id] {
			wrong = append(wrong, fmt.Sprintf("%s was served %d times, and is not named:%s down at %v, killed at %v", id, s.served[id], s.story[id], s.downs, k.killed))
		}
	}
	if len(wrong) > 0 || len(count) != k.n {
		t.Errorf("%d of %d ids, %d wrong: %v", len(count), k.n, len(wrong), clipped(wrong))
	}
	k.hidden()
	if third := len(k.rss) / 3; third >= 5 {
		early, late := slices.Max(k.rss[:third]), slices.Max(k.rss[2*third:])
		if late > early+early/2+16_000 {
			t.Errorf("memory grew from %d to %d kB", early, late)
		}
	}
	if k.kills == 0 || s.outages == 0 {
		t.Errorf("%d kills, %d outages: nothing is shown", k.kills, s.outages)
	}
}

// hidden looks for the key in every file, and in all that was said.
func (k *soak) hidden() {
	files, _ := filepath.Glob(filepath.Join(k.dir, "*"))
	hidden, _ := filepath.Glob(filepath.Join(k.dir, ".*"))
	for _, name := range append(files, hidden...) {
		if text, err := os.ReadFile(name); err == nil && bytes.Contains(text, []byte(soakKey)) {
			k.t.Errorf("%s has the key", filepath.Base(name))
		}
	}
	if bytes.Contains(k.said.Bytes(), []byte(soakKey)) {
		k.t.Error("the key was said")
	}
}

func clipped(all []string) []string { return all[:min(len(all), 5)] }
