package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Clients come and go, abort and lie, before a server that is strict, and `paceline proxy` stands
// between them for long. In the end each request was answered once, by what the server did; the
// server refused none; and the process has no more goroutines, files and memory than after its
// first minute.
//
//	PACELINE_PROXY_SOAK=30m go test ./cmd/paceline -run TestProxySoak -v -timeout 50m
func TestProxySoak(t *testing.T) {
	text := os.Getenv("PACELINE_PROXY_SOAK")
	if text == "" {
		t.Skip("PACELINE_PROXY_SOAK is not set: it takes 15s to see the least, and 30m to see whether memory grows")
	}
	length, err := time.ParseDuration(text)
	if err != nil || length <= 0 {
		t.Fatalf("PACELINE_PROXY_SOAK=%q: want a time such as 30m", text)
	}
	t.Parallel()
	k := newProxySoak(t, length)
	k.begin()
	var clients sync.WaitGroup
	if length >= soakWhole {
		k.crowd()
	}
	k.clients(&clients)
	rest := time.Minute
	if length < 10*time.Minute {
		rest = length / 3
	}
	k.wait(rest)
	first := k.calm("after the beginning", footprint{})
	k.wait(length - rest)
	k.over.Store(true)
	clients.Wait()
	last := k.calm("in the end", first)
	k.say()
	k.judge()
	k.compare(first, last)
	k.stop()
}

// soakWhole is the least length of a soak whose live memory is judged. From soakLong on, a quarter
// of the soak is longer than the time between two compactions of the state file.
const (
	soakWhole = 10 * time.Minute
	soakLong  = 25 * time.Minute
)

// crowd requests more places than the proxy remembers. It waits in none of them, and so sends next
// to nothing. The memory for places thus has its bound from the beginning, and later growth has
// another cause.
func (k *proxySoak) crowd() {
	const places = 5000 // transport.Config.MaxPartitions is 4096
	c := &http.Client{Transport: &http.Transport{}, Timeout: time.Minute}
	defer c.CloseIdleConnections()
	for i := range places {
		id := k.ask()
		r := k.request(context.Background(), "GET", fmt.Sprintf("/crowd/%c%c%c", 'a'+i/676, 'a'+i/26%26, 'a'+i%26), k.key(soakClients[i%len(soakClients)]), id, nil)
		r.Header.Set("Paceline-Max-Wait", "0")
		switch status, text, err := answerTo(c, r); {
		case err == nil && status == http.StatusOK:
			k.end(id, "of the crowd", whole)
		case err == nil && status == http.StatusTooManyRequests:
			k.end(id, "of the crowd", denied)
		default:
			k.wrong("%d, of the crowd: %d %q %v", id, status, text, err)
		}
	}
}

type proxySoak struct {
	*passing
	length time.Duration
	began  time.Time
	server *lawful
	state  string
	big    []byte

	over    atomic.Bool
	working sync.RWMutex // held by who sends
	pools   []*http.Transport

	mu   sync.Mutex
	ends []end // of each id
	did  map[string]int
	bad  []string

	sizes []footprint
}

// end is what a client knows of its request.
type end uint8

const (
	pending end = iota
	whole       // answered by the server
	gone        // the client did not wait for the end
	denied      // the proxy said why it was not sent
)

// footprint is what a process takes.
type footprint struct {
	at                time.Duration
	rss               int64 // kB
	state             int64 // bytes of the file
	heap, goroutines  float64
	files             int
	waiting, inFlight float64
}

var soakClients = [...]string{"PL_SOAK_A", "PL_SOAK_B", "PL_SOAK_C", "PL_SOAK_D"}

func newProxySoak(t *testing.T, length time.Duration) *proxySoak {
	t.Helper()
	limit := int64(40) // a second, for each of two keys
	if length >= time.Minute {
		limit = 150
	}
	k := &proxySoak{length: length, server: newLawful(t, limit, time.Second), state: filepath.Join(t.TempDir(), "proxy.state"), did: map[string]int{}, big: make([]byte, 16<<20)}
	k.server.more = k.serve
	secrets := []string{soakKey + "-1", soakKey + "-2"}
	env := []string{"PL_SOAK_1=" + secrets[0], "PL_SOAK_2=" + secrets[1], "GOTRACEBACK=all", usersGC}
	for _, name := range soakClients {
		env = append(env, name+"="+k.key(name))
		secrets = append(secrets, k.key(name))
	}
	k.passing = newPassing(t, secrets, "--to", k.server.URL, "--limit", fmt.Sprintf("%d/s", limit), "--state", k.state,
		"--key-env", "PL_SOAK_1,PL_SOAK_2", "-H", "Authorization: Bearer {key}", "--client-key-env", strings.Join(soakClients[:], ","),
		"--stall", "3s", "--idle-timeout", "2s", "--max-body", "8MiB", "--log", "json", "--log-level", "debug", "--max-outage", "1m")
	k.env = env
	k.began = time.Now()
	return k
}

// key is that of a client for the proxy.
func (k *proxySoak) key(name string) string { return "for-the-proxy-" + name + "-77ae" }

// serve is what the server does besides judging. It is asked once a request has passed.
func (k *proxySoak) serve(w http.ResponseWriter, r *http.Request, id int) bool {
	switch {
	case strings.HasSuffix(r.URL.Path, "/big"):
		w.Header().Set("Content-Type", "application/octet-stream")
		_, _ = w.Write(k.big)
	case strings.HasSuffix(r.URL.Path, "/events"):
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range soakEvents {
			fmt.Fprintf(w, "data: %d of %d\n\n", i, id)
			if http.NewResponseController(w).Flush() != nil {
				return true
			}
			time.Sleep(rand.N(20 * time.Millisecond))
		}
	case r.Header.Get("Upgrade") == "echo":
		c, b, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return true
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(20 * time.Second))
		fmt.Fprintf(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		_, _ = io.Copy(c, b)
	case strings.HasSuffix(r.URL.Path, "/wrong"):
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprintf(w, "of %d", id)
	case strings.HasSuffix(r.URL.Path, "/slow"):
		time.Sleep(rand.N(300 * time.Millisecond))
		return false
	default:
		return false
	}
	return true
}

const soakEvents = 5

// ask is the number of another request.
func (k *proxySoak) ask() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ends = append(k.ends, pending)
	return len(k.ends) - 1
}

// end notes what became of a request.
func (k *proxySoak) end(id int, what string, e end) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ends[id] != pending {
		k.bad = append(k.bad, fmt.Sprintf("%d, %s: it ended twice", id, what))
	}
	k.ends[id] = e
	k.did[what]++
}

func (k *proxySoak) wrong(format string, args ...any) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.bad = append(k.bad, fmt.Sprintf("after %v: ", time.Since(k.began).Round(time.Millisecond))+fmt.Sprintf(format, args...))
}

// wait looks at the process now and then.
func (k *proxySoak) wait(d time.Duration) {
	step := max(k.length/120, 500*time.Millisecond)
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(min(step, time.Until(end)))
		k.sizes = append(k.sizes, k.size())
		if n := len(k.sizes); n%10 == 0 {
			k.say()
		}
	}
}

// size is what the process takes now.
func (k *proxySoak) size() footprint {
	f := footprint{at: time.Since(k.began)}
	if all := residentKB(k.process.Process.Pid); len(all) > 0 {
		f.rss = all[0]
	}
	if at, err := os.Stat(k.state); err == nil {
		f.state = at.Size()
	}
	files, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", k.process.Process.Pid))
	f.files = len(files)
	m := series(k.look("/metrics"))
	f.heap, f.goroutines = m["go_gc_heap_live_bytes"], m["go_goroutines"]
	for name, n := range m {
		if strings.HasPrefix(name, "paceline_waiting") {
			f.waiting += n
		}
		if strings.HasPrefix(name, "paceline_in_flight") {
			f.inFlight += n
		}
	}
	return f
}

// calm pauses all clients until the proxy has nothing to do, and has freed everything. It returns
// the footprint at that time. It ends as soon as the footprint is no more than enough.
func (k *proxySoak) calm(when string, enough footprint) (least footprint) {
	k.working.Lock()
	defer k.working.Unlock()
	for _, p := range k.pools {
		p.CloseIdleConnections()
	}
	defer k.server.Config.SetKeepAlivesEnabled(true)
	less := func(f, than footprint) bool {
		return f.goroutines <= than.goroutines && f.files <= than.files
	}
	least = k.size()
	for end := time.Now().Add(soakSettles); time.Now().Before(end) && !less(least, enough); time.Sleep(100 * time.Millisecond) {
		k.server.Config.SetKeepAlivesEnabled(false) // which closes those that are idle now
		http.DefaultClient.CloseIdleConnections()
		if f := k.size(); less(f, least) && !less(least, f) {
			least, end = f, time.Now().Add(soakSettles)
		}
	}
	for cycles, now := k.cycles(), 0.0; now < cycles+4; now = k.cycles() { // a look leaves garbage, so that it collects; twice for what pools keep
	}
	least.heap = k.size().heap
	k.t.Logf("%s: %d goroutines, %d files, %.2f MB live", when, int(least.goroutines), least.files, least.heap/1e6)
	return least
}

// soakSettles is longer than what a connection may be idle, and than a server leaves one open over
// which nothing came.
const soakSettles = 7 * time.Second

// cycles is how often the process has collected its garbage.
func (k *proxySoak) cycles() float64 {
	return series(k.look("/metrics"))["go_gc_cycles_total_gc_cycles_total"]
}

func (k *proxySoak) say() {
	refused, passed := k.server.told()
	k.mu.Lock()
	defer k.mu.Unlock()
	f := k.sizes[len(k.sizes)-1]
	k.t.Logf("%v: %d requests, %d arrived, %d refused, %d wrong; rss %d kB, live %.2f MB, state %d kB, %d goroutines, %d files, %v waiting",
		f.at.Round(time.Second), len(k.ends), passed, len(refused), len(k.bad), f.rss, f.heap/1e6, f.state/1000, int(f.goroutines), f.files, f.waiting)
}

// judge compares the clients' records with the server's.
func (k *proxySoak) judge() {
	refused, passed := k.server.told()
	if len(refused) > 0 {
		k.t.Errorf("the server refused %d of %d: %v", len(refused), passed, clipped(refused))
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.t.Logf("what clients did: %v", k.did)
	for id, e := range k.ends {
		n := k.server.times(id)
		if e == pending || e == whole && n != 1 || e == denied && n != 0 || n > 1 {
			k.bad = append(k.bad, fmt.Sprintf("%d: %v for its client (%d: pending, whole, gone, denied), served %d times", id, e, e, n))
		}
	}
	if len(k.bad) > 0 {
		k.t.Errorf("%d wrong: %s", len(k.bad), strings.Join(clipped(k.bad), "\n"))
	}
	for _, name := range soakDeeds {
		if k.did[name.says] == 0 {
			k.t.Errorf("nobody was %s: nothing is shown", name.says)
		}
	}
}

// compare looks for what has grown.
func (k *proxySoak) compare(first, last footprint) {
	if last.goroutines > first.goroutines || last.files > first.files {
		k.t.Errorf("%v goroutines and %d files, and %v and %d after the beginning:\n%s", last.goroutines, last.files, first.goroutines, first.files, k.opened())
	}
	if k.length < soakWhole {
		return
	}
	if last.heap > 1.05*first.heap {
		k.t.Errorf("%.0f bytes are live, and were %.0f after the first minute", last.heap, first.heap)
	}
	most := func(from, to int, of func(footprint) int64) (n int64) {
		for _, f := range k.sizes[len(k.sizes)*from/4 : len(k.sizes)*to/4] {
			n = max(n, of(f))
		}
		return n
	}
	rss := func(f footprint) int64 { return f.rss }
	state := func(f footprint) int64 { return f.state }
	k.t.Logf("rss by quarters %d %d %d %d kB; state file %d %d %d %d bytes", most(0, 1, rss), most(1, 2, rss), most(2, 3, rss), most(3, 4, rss),
		most(0, 1, state), most(1, 2, state), most(2, 3, state), most(3, 4, state))
	if k.length < soakLong {
		return
	}
	if was, is := most(2, 3, rss), most(3, 4, rss); is > was+was/10 {
		k.t.Errorf("%d kB of memory in the last quarter, %d in the one before", is, was)
	}
	if was, is := most(2, 3, state), most(3, 4, state); is > was+was/10 {
		k.t.Errorf("the state file has %d bytes in the last quarter, %d in the one before", is, was)
	}
}

// opened is what the process has open.
func (k *proxySoak) opened() string {
	dir := fmt.Sprintf("/proc/%d/fd", k.process.Process.Pid)
	files, _ := os.ReadDir(dir)
	var all []string
	for _, f := range files {
		to, _ := os.Readlink(filepath.Join(dir, f.Name()))
		all = append(all, to)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}
