package soak

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"flag"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	lasts = flag.Duration("for", 5*time.Second, "how long requests are made; what is under way then may end")
	seed  = flag.Uint64("seed", 2, "draws what the server does; equal seeds give similar runs, since the clock is real")
)

// TestSoak: no promise is broken, and all doors are used.
func TestSoak(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the program")
	}
	t.Parallel()
	program := filepath.Join(t.TempDir(), "paceline")
	if out, err := exec.Command("go", "build", "-o", program, "../../cmd/paceline").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	r, err := throughAll(t.Context(), program, t.ArtifactDir())
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	_ = r.write(&table) // a Builder has no errors
	t.Log("\n" + table.String())
	if failed := r.failed(); failed != "" {
		t.Error(failed)
	}
}

// throughAll sends through all doors. program is paceline, and dir an empty folder for what it writes, which is
// searched for keys at the end. An error means that the soak could not be done, and not that a promise was broken.
func throughAll(ctx context.Context, program, dir string) (*report, error) {
	s := newStranger(*seed)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: s}
	go func() { _ = server.Serve(listener) }()
	defer func() { _ = server.Close() }()

	k := &soak{program: program, dir: dir, server: s, url: "http://" + listener.Addr().String() + "/v1/batch",
		began: time.Now()}
	ctx, stop := context.WithTimeout(ctx, *lasts)
	defer stop()
	all := []struct {
		name string
		open func(ctx context.Context, d *driver, session int) error
	}{{"run", k.run}, {"proxy", k.proxy}, {"pool", k.pool}}
	drivers := make([]*driver, len(all))
	errs := make([]error, len(all))
	var doors sync.WaitGroup
	for i, door := range all {
		d := &driver{name: door.name, key: newKey(), dir: filepath.Join(dir, door.name), sent: map[string]int{},
			named: map[string]bool{},
			ended: map[string]bool{}, left: map[string]bool{}}
		if err := os.Mkdir(d.dir, 0o700); err != nil {
			return nil, err
		}
		if d.door, err = s.open(d.key); err != nil {
			return nil, err
		}
		drivers[i] = d
		doors.Go(func() {
			for n := 1; ctx.Err() == nil && errs[i] == nil; n++ {
				one, end := context.WithTimeout(ctx, session)
				if err := door.open(one, d, n); err != nil {
					errs[i] = fmt.Errorf("%s: %w", door.name, err)
					stop()
				}
				end()
				s.calm(d.door)
				k.drop(d)
			}
		})
	}
	doors.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return k.outcome(drivers)
}

// session is how long a door is open before it is opened anew: a limit that seems wrong, since the
// server refuses at random, is believed again.
const session = 45 * time.Second

// calm waits until nothing counts of a session, since the next one does not know of it.
func (s *stranger) calm(d *door) {
	s.mu.Lock()
	until := max(time.Until(d.until), 0)
	s.mu.Unlock()
	time.Sleep(until + time.Second)
}

// soak is one in progress.
type soak struct {
	program, dir string
	server       *stranger
	url          string
	began        time.Time
}

// driver is the client's side of a door.
type driver struct {
	name, key, dir string
	door           *door

	mu        sync.Mutex
	made      int             // requests that were handed to the door
	dropped   int             // of those, how many had no end when their session ended
	ended     map[string]bool // those that have an end
	left      map[string]bool // those that were under way when a session was interrupted
	succeeded int             // those whose end is a success
	sent      map[string]int  // how often its user knows that each was sent
	named     map[string]bool // whose end says that it may be a repeat
	successes []string
	rewound   int // how often the store went back in time
}

// newKey makes a secret with characters that JSON and URLs escape.
func newKey() string {
	b := make([]byte, 24)
	_, _ = rand.Read(b) // it never fails
	return "sk-soak/" + base64.RawURLEncoding.EncodeToString(b) + "+="
}

// served returns how often the server served each request of a door.
func (s *stranger) served(d *door) map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make(map[string]int, len(d.executed))
	maps.Copy(all, d.executed)
	return all
}

// countsOf returns what the server counted of a door, and examples of what went wrong.
func (s *stranger) countsOf(d *door) (Counts, []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return d.counts, d.examples
}
