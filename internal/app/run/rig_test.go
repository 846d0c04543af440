package run

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/output"
	"github.com/paceline-go/paceline/internal/app/run/tally"
	"github.com/paceline-go/paceline/internal/boottime"
	"github.com/paceline-go/paceline/internal/testkit/fakeconn"
	"github.com/paceline-go/paceline/pool"
)

// ran is the output of one run.
type ran struct {
	tally.Totals
	err     error
	results map[string]format.Result // the last of each id, from OUT
	lines   int                      // in OUT
	dead    map[string]format.Result
	again   string // what the last line says of dead letters
	notices string
	log     string
}

type bench struct {
	t      *testing.T
	config Config
	tamper func(*Run) // between Open and Send
	drain  func(*Run) // beside Send

	network *fakeconn.Network                    // not nil: in a bubble, with its clock
	clock   func() (time.Time, boottime.Reading) // of the bubble, if it is not the usual one
}

// newBench returns a bench with a folder for its results, retries without delay, and no limits.
func newBench(t *testing.T) *bench {
	return &bench{t: t, config: Config{
		Out: filepath.Join(t.TempDir(), "out.jsonl"), Backoff: pool.Backoff{Base: -1}, Timeout: 5 * time.Second,
	}}
}

// made returns a run, over the bench's network if it has one.
func (b *bench) made(c Config) *Run {
	b.t.Helper()
	if b.network != nil {
		if c.clock = bubbleClock; b.clock != nil {
			c.clock = b.clock
		}
		c.Dial = b.network.Dial
	}
	r, err := New(c)
	if err != nil {
		b.t.Fatal(err)
	}
	if spoken != nil {
		r.sender.Through(func(t *http.Transport) http.RoundTripper { return spoken.RoundTripper(t) })
	}
	return r
}

// run sends lines. It checks that the counts add up in any case.
func (b *bench) run(lines ...string) ran {
	t := b.t
	t.Helper()
	var notices, log lockedBuffer
	c := b.config
	c.Notice = func(s string) { fmt.Fprintln(&notices, s) }
	c.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	r := b.made(c)
	text := strings.Join(lines, "\n")
	if err := r.Check("in", strings.NewReader(text)); err != nil {
		return ran{err: err, notices: notices.String()}
	}
	if err := r.Open(); err != nil {
		return ran{err: err, notices: notices.String()}
	}
	if b.tamper != nil {
		b.tamper(r)
	}
	if b.drain != nil {
		go b.drain(r)
	}
	out := ran{err: r.Send(context.Background(), "in", strings.NewReader(text))}
	p := r.Progress()
	var err error
	if out.Totals, err = r.Close(); err != nil {
		t.Error(err)
	}
	n := out.Totals
	if n.Input != n.SkippedDone+n.SkippedDead+n.SkippedExpired+n.Done+n.Expired+n.Dead+n.Left+n.Lost || n.Offered < n.Done+n.Expired+n.Dead || p.InFlight != 0 {
		t.Errorf("the counts do not add up: %+v, in flight %d", n, p.InFlight)
	}
	if c.Out != "-" {
		out.results, out.lines = readResults(t, c.Out)
		out.dead, _ = readResults(t, output.DeadBeside(c.Out))
	}
	out.again = r.DeadAgain()
	out.notices, out.log = notices.String(), log.String()
	return out
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func readResults(t *testing.T, path string) (map[string]format.Result, int) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, n := map[string]format.Result{}, 0
	for s := bufio.NewScanner(f); s.Scan(); n++ {
		var r format.Result
		if err := json.Unmarshal(s.Bytes(), &r); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all[r.ID] = r
	}
	return all, n
}

func request(id, url string) string { return fmt.Sprintf(`{"id":%q,"url":%q}`, id, url) }

func requests(n int, url string) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = request(fmt.Sprint("r", i), url)
	}
	return all
}

// counting serves and counts, by query.
func counting(t *testing.T, f http.HandlerFunc) (*httptest.Server, func(query string) int) {
	h, seen := counted(f)
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv, seen
}

func counted(f http.HandlerFunc) (http.Handler, func(query string) int) {
	var mu sync.Mutex
	all := map[string]int{}
	h := http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		mu.Lock()
		all[q.URL.RawQuery]++
		mu.Unlock()
		f(w, q)
	})
	return h, func(query string) int {
		mu.Lock()
		defer mu.Unlock()
		return all[query]
	}
}

// virtualBench is a bench and a server that counts by query, in a bubble.
func virtualBench(t *testing.T, f http.HandlerFunc) (b *bench, url string, seen func(query string) int) {
	b = newBench(t)
	b.network = fakeconn.New()
	h, seen := counted(f)
	srv := &http.Server{Handler: h}
	go func() { _ = srv.Serve(b.network) }()
	t.Cleanup(func() { _ = srv.Close() })
	return b, "http://server/", seen
}
