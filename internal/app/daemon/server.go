//go:build unix

package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/durable"
)

const (
	// longestBody bounds the body of a request.
	longestBody = 1 << 20
	// longestIdle is how long a daemon without holds lives at most.
	longestIdle = time.Hour
	// lastAnswers is how long requests may still be answered after a stop.
	lastAnswers = time.Second
	// retry is how often a file is looked at that another process is about to change.
	retry = 20 * time.Millisecond
)

// ErrRuns means that this user's daemon runs already.
var ErrRuns = errors.New("the daemon of this user runs already; expected none: paceline daemon stop")

// Server is the daemon. Open makes it, and Close ends it. It is safe for concurrent use.
type Server struct {
	place    Place
	lock     *durable.File
	state    *durable.File // its lock
	listener *net.UnixListener
	mux      *http.ServeMux
	began    time.Time
	stopped  chan struct{}
	tune     []func(*http.Server)

	mu       sync.Mutex
	stopping bool
	held     map[*string]string // what needs the daemon
	facts    map[string]func() any
	idle     func() time.Duration // nil: it does not end by itself
	stays    int                  // what keeps it from that, and from nothing else
	timer    *time.Timer

	used atomic.Int64 // the latest Use, after began
}

// Status is what `paceline daemon status` shows.
type Status struct {
	Version string    `json:"version"`
	PID     int       `json:"pid"`
	Began   time.Time `json:"began"`
	Socket  string    `json:"socket"`
	Log     string    `json:"log"`
	// Held are what needs the daemon, in words.
	Held []string `json:"held"`
	// Facts are what each mounted part reports, by its name.
	Facts map[string]any `json:"facts,omitempty"`
}

// Open takes the lock and opens the socket. If another daemon is there, it returns ErrRuns. If that
// one is about to begin or to end, Open waits for it until ctx ends.
func Open(ctx context.Context) (*Server, error) {
	place, err := Find()
	if err != nil {
		return nil, err
	}
	s := &Server{place: place, mux: http.NewServeMux(), began: time.Now(), stopped: make(chan struct{}),
		held: map[*string]string{}, facts: map[string]func() any{}}
	if s.lock, err = lock(ctx, place); err != nil {
		return nil, err
	}
	if s.state, err = lockState(ctx, place); err != nil {
		return nil, errors.Join(err, s.lock.Close())
	}
	_ = os.Remove(place.Socket()) // of a daemon that was killed: its lock is ours
	s.listener, err = net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: place.Socket()})
	if err == nil {
		err = os.Chmod(place.Socket(), 0o600)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	s.Handle("GET /v1/daemon", http.HandlerFunc(s.status))
	s.Handle("POST /v1/daemon/stop", http.HandlerFunc(s.stop))
	return s, nil
}

// lock takes the lock of the daemon, as soon as nobody holds it.
func lock(ctx context.Context, place Place) (*durable.File, error) {
	for {
		f, err := durable.Open(place.Lock())
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return f, err
		}
		if c, err := dial(ctx, place); err == nil {
			c.Close()
			return nil, ErrRuns
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("another process holds %s, and does not answer: %w", place.Lock(), context.Cause(ctx))
		case <-time.After(retry):
		}
	}
}

// lockState takes the lock of the State, in which it writes where the daemon is.
func lockState(ctx context.Context, place Place) (*durable.File, error) {
	for {
		f, err := durable.Open(place.stateLock())
		if err == nil {
			if err = f.SetSize(0); err == nil {
				err = f.Append([]byte(place.Socket() + "\n"))
			}
			return f, err
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, err
		}
		select {
		case <-ctx.Done():
			at, _ := os.ReadFile(place.stateLock())
			return nil, fmt.Errorf("another daemon of this user writes in %s, and listens at %s; expected the same XDG_RUNTIME_DIR",
				place.State, strings.TrimSpace(string(at)))
		case <-time.After(retry):
		}
	}
}

// Place is where the Server is.
func (s *Server) Place() Place { return s.place }

// Handle mounts a handler, by a pattern of http.ServeMux such as "POST /v1/acquire". Call it before
// Serve. Bodies of requests are at most 1 MiB. PeerOf has the process that sent a request.
func (s *Server) Handle(pattern string, h http.Handler) { s.mux.Handle(pattern, h) }

// Tune lets f change the server of HTTP before it serves. Call it before Serve.
func (s *Server) Tune(f func(*http.Server)) { s.tune = append(s.tune, f) }

// Report adds a fact to the Status. f must be safe for concurrent use.
func (s *Server) Report(name string, f func() any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.facts[name] = f
}

// Hold keeps the Server from ending by itself, and from a stop that is not insisted on, until release
// is called. what names the reason. If the Server stops already, ok is false.
func (s *Server) Hold(what string) (release func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return nil, false
	}
	key := &what
	s.held[key] = what
	s.armLocked()
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.held, key)
		s.armLocked()
	}), true
}

// Stay keeps the Server from ending by itself, until release is called. If it stops already, ok is
// false.
func (s *Server) Stay() (release func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return nil, false
	}
	s.stays++
	s.armLocked()
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.stays--
		s.armLocked()
	}), true
}

// Use notes that the Server is not idle at this instant.
func (s *Server) Use() { s.used.Store(int64(time.Since(s.began))) }

// EndIdle lets the Server end by itself, once nothing has held or used it for the time that after
// returns, or for an hour.
func (s *Server) EndIdle(after func() time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle = after
	s.armLocked()
}

func (s *Server) armLocked() {
	if s.timer != nil {
		s.timer.Stop()
	}
	if s.idle == nil || len(s.held) > 0 || s.stays > 0 {
		return
	}
	s.timer = time.AfterFunc(min(s.idle(), longestIdle), s.rest)
}

// rest ends the Server, unless it was used a moment ago.
func (s *Server) rest() {
	s.mu.Lock()
	if len(s.held) > 0 || s.stays > 0 {
		s.mu.Unlock()
		return
	}
	left := min(s.idle(), longestIdle) - (time.Since(s.began) - time.Duration(s.used.Load()))
	if s.used.Load() > 0 && left > 0 {
		s.timer = time.AfterFunc(left, s.rest)
		s.mu.Unlock()
		return
	}
	s.mu.Unlock()
	s.Stop(false)
}

// Stop ends Serve. Without now it does nothing if something holds the Server. It returns what does.
func (s *Server) Stop(now bool) (held []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if held = s.heldLocked(); len(held) > 0 && !now {
		return held
	}
	if !s.stopping {
		s.stopping = true
		close(s.stopped)
	}
	return nil
}

func (s *Server) heldLocked() []string {
	all := slices.AppendSeq([]string{}, maps.Values(s.held))
	slices.Sort(all)
	return all
}

// Serve answers until ctx ends, or Stop is called. Requests under way then have a second.
func (s *Server) Serve(ctx context.Context) error {
	h := &http.Server{
		Handler: http.MaxBytesHandler(s.mux, longestBody), ReadHeaderTimeout: 10 * time.Second,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
	}
	for _, f := range s.tune {
		f(h)
	}
	failed := make(chan error, 1)
	go func() { failed <- h.Serve(listener{s.listener}) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		s.Stop(true)
	case <-s.stopped:
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastAnswers)
	defer cancel()
	if h.Shutdown(last) != nil {
		h.Close()
	}
	return nil
}

// Close removes the socket and releases the lock. Another daemon may begin afterwards, so whatever
// only one may use is closed before.
func (s *Server) Close() error {
	s.Stop(true)
	if s.listener != nil {
		s.listener.Close()
	}
	return errors.Join(s.state.Close(), s.lock.Close())
}

func (s *Server) status(w http.ResponseWriter, _ *http.Request) {
	said := Status{Version: cli.Version(), PID: os.Getpid(), Began: s.began, Socket: s.place.Socket(), Log: s.place.Log(),
		Facts: map[string]any{}}
	s.mu.Lock()
	said.Held = s.heldLocked()
	facts := maps.Clone(s.facts)
	s.mu.Unlock()
	for name, f := range facts {
		said.Facts[name] = f()
	}
	Answer(w, http.StatusOK, said)
}

func (s *Server) stop(w http.ResponseWriter, r *http.Request) {
	if held := s.Stop(r.URL.Query().Get("now") != ""); held != nil {
		Refuse(w, http.StatusConflict, "the daemon serves %s", strings.Join(held, ", "))
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// Answer writes a value as JSON.
func Answer(w http.ResponseWriter, status int, value any) {
	b, err := json.Marshal(value)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n'))
}

// Refuse answers with an error in words, which Refusal reads.
func Refuse(w http.ResponseWriter, status int, format string, args ...any) {
	Answer(w, status, problem{fmt.Sprintf(format, args...)})
}

type problem struct {
	Error string `json:"error"`
}
