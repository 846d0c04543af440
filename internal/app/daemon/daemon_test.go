//go:build unix

package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/cli"
)

// placed gives the test folders of its own.
func placed(t *testing.T) (runtime string) {
	t.Helper()
	runtime = t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", runtime)
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	return runtime
}

// served is a daemon until the end of the test. ended gets the result of Serve.
func served(t *testing.T, with func(*Server)) (s *Server, ended chan error) {
	t.Helper()
	s, err := Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if with != nil {
		with(s)
	}
	ended = make(chan error, 1)
	go func() {
		err := s.Serve(t.Context())
		s.Close()
		ended <- err
	}()
	return s, ended
}

// A mounted handler knows the process that asks, and the Status has what was reported.
func TestServer(t *testing.T) {
	placed(t)
	if _, err := Dial(t.Context()); !errors.Is(err, ErrNone) {
		t.Fatalf("without a daemon: %v", err)
	}
	s, ended := served(t, func(s *Server) {
		s.Handle("POST /v1/who", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			p, ok := PeerOf(r.Context())
			Answer(w, http.StatusOK, []any{p.PID, p.UID, ok})
		}))
		s.Report("runs", func() any { return 3 })
	})
	c, err := Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	a, err := c.Post(Base+"/v1/who", "application/json", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	var who []any
	if err := json.NewDecoder(a.Body).Decode(&who); err != nil {
		t.Fatal(err)
	}
	if who[0] != float64(os.Getpid()) || who[1] != float64(os.Getuid()) || who[2] != true {
		t.Error("the peer is", who)
	}
	a, err = c.Post(Base+"/v1/who", "text/plain", strings.NewReader(strings.Repeat("x", longestBody+1)))
	if err == nil {
		a.Body.Close()
	}
	if _, err := Open(t.Context()); !errors.Is(err, ErrRuns) {
		t.Errorf("a second daemon: %v", err)
	}
	said, err := Ask(t.Context())
	if err != nil || said.PID != os.Getpid() || said.Facts["runs"] != float64(3) || said.Socket != s.Place().Socket() {
		t.Errorf("it says %+v, %v", said, err)
	}
	for path, mode := range map[string]os.FileMode{s.Place().Folder: 0o700, s.Place().Socket(): 0o600, s.Place().Lock(): 0o600} {
		if about, err := os.Stat(path); err != nil || about.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", path, about.Mode(), err)
		}
	}
	release, ok := s.Hold("python (1)")
	var refused *RefusalError
	if err := End(t.Context(), false); !ok || !errors.As(err, &refused) || !strings.Contains(err.Error(), "python (1)") {
		t.Errorf("a stop while it serves: %v", err)
	}
	release()
	if err := errors.Join(End(t.Context(), false), <-ended); err != nil {
		t.Error(err)
	}
	if _, ok := s.Hold("late"); ok {
		t.Error("it was held after its stop")
	}
	if err := End(t.Context(), true); !errors.Is(err, ErrNone) {
		t.Errorf("after its end: %v", err)
	}
}

// Without holds it ends by itself, and not before.
func TestServerEndsIdle(t *testing.T) {
	placed(t)
	var release func()
	_, ended := served(t, func(s *Server) {
		release, _ = s.Hold("one")
		s.EndIdle(func() time.Duration { return time.Millisecond })
	})
	select {
	case <-ended:
		t.Fatal("it ended while it was held")
	case <-time.After(30 * time.Millisecond):
	}
	release()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// Of many that begin at once one becomes the daemon, also where a killed one left its socket.
func TestOneServer(t *testing.T) {
	runtime := placed(t)
	if err := os.Mkdir(filepath.Join(runtime, "paceline"), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: filepath.Join(runtime, "paceline", "daemon.sock")})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	if _, err := Dial(t.Context()); !errors.Is(err, ErrNone) {
		t.Fatalf("a socket that a killed daemon left: %v", err)
	}
	var all sync.WaitGroup
	made := make(chan *Server, 8)
	for range cap(made) {
		all.Go(func() {
			switch s, err := Open(t.Context()); {
			case err == nil:
				made <- s
			case !errors.Is(err, ErrRuns):
				t.Error(err)
			}
		})
	}
	all.Wait()
	if len(made) != 1 {
		t.Errorf("%d daemons", len(made))
	}
	(<-made).Close()
}

// Two daemons of different folders do not write one state: the error of the second says where the first is.
func TestOneState(t *testing.T) {
	placed(t)
	first, err := Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := Open(ctx); err == nil || !strings.Contains(err.Error(), first.Place().Socket()) {
		t.Errorf("it says %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second, err := Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
}

// A file comes with a connection, and is the same one as the sender's.
func TestTakeFile(t *testing.T) {
	placed(t)
	served(t, func(s *Server) {
		s.Handle("POST /v1/say", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			f := TakeFile(r.Context())
			if f == nil {
				t.Error("no file came")
				return
			}
			defer f.Close()
			_, _ = io.WriteString(f, "line\n")
			if TakeFile(r.Context()) != nil {
				t.Error("it was taken twice")
			}
		}))
	})
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	c, err := DialWith(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	a, err := c.Post(Base+"/v1/say", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	a.Body.Close()
	c.CloseIdleConnections()
	w.Close()
	if b, err := io.ReadAll(r); string(b) != "line\n" {
		t.Errorf("%q, %v", b, err)
	}
}

// A daemon of another version is named, with the way out, and can be stopped.
func TestAnotherVersion(t *testing.T) {
	runtime := placed(t)
	if _, err := Find(); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(runtime, "paceline", "daemon.sock"))
	if err != nil {
		t.Fatal(err)
	}
	stopped := make(chan bool, 1)
	h := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			stopped <- true
			l.Close()
			w.WriteHeader(http.StatusNoContent)
			return
		}
		Answer(w, http.StatusOK, Status{Version: "v0.0.1"})
	})}
	go func() { _ = h.Serve(l) }()
	t.Cleanup(func() { h.Close() })
	_, err = Dial(t.Context())
	var v *VersionError
	if !errors.As(err, &v) || v.Daemon != "v0.0.1" || v.Program != cli.Version() || !strings.Contains(err.Error(), "paceline daemon stop") {
		t.Errorf("it says %v", err)
	}
	if err := End(t.Context(), false); err != nil || !<-stopped {
		t.Error(err)
	}
}

// A daemon that does not answer, as one that was stopped by SIGSTOP, is no reason to wait for ever.
func TestDaemonThatDoesNotAnswer(t *testing.T) {
	runtime := placed(t)
	if _, err := Find(); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(runtime, "paceline", "daemon.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := Dial(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it says %v", err)
	}
}

// Folders and sockets that are not this user's alone are errors, which name them.
func TestFoldersOfOthers(t *testing.T) {
	runtime := placed(t)
	folder := filepath.Join(runtime, "paceline")
	wrong := func(want string) {
		t.Helper()
		if _, err := Dial(t.Context()); err == nil || errors.Is(err, ErrNone) || !strings.Contains(err.Error(), want) {
			t.Errorf("it says %v, want %s", err, want)
		}
		if _, err := Open(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a server says %v, want %s", err, want)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Mkdir(folder, 0o755))
	wrong("0755")
	must(os.Remove(folder))
	must(os.WriteFile(folder, nil, 0o600))
	wrong("no folder")
	must(os.Remove(folder))
	elsewhere := t.TempDir()
	must(os.Symlink(elsewhere, folder))
	wrong("no folder")
	must(os.Remove(folder))
	if os.Getuid() != 0 {
		t.Setenv("XDG_RUNTIME_DIR", "/usr")
		wrong("XDG_RUNTIME_DIR=/usr is another user's")
		return
	}
	must(os.Mkdir(folder, 0o700))
	must(os.Chown(folder, 12345, -1))
	wrong("another user's")
	must(os.Chown(folder, 0, -1))
	must(os.Chown(runtime, 12345, -1))
	wrong("XDG_RUNTIME_DIR=" + runtime + " is another user's")
	must(os.Chown(runtime, 0, -1))
	l, err := net.Listen("unix", filepath.Join(folder, "daemon.sock"))
	must(err)
	defer l.Close()
	must(os.Chown(filepath.Join(folder, "daemon.sock"), 12345, -1))
	if _, err := Dial(t.Context()); err == nil || !strings.Contains(err.Error(), "another user's") {
		t.Errorf("a socket of another user: %v", err)
	}
}

// Without XDG_RUNTIME_DIR the folder has a name of its user's, in the temporary folder.
func TestPlaceWithoutRuntimeFolder(t *testing.T) {
	placed(t)
	t.Setenv("XDG_RUNTIME_DIR", "")
	t.Setenv("XDG_STATE_HOME", "relative")
	t.Setenv("HOME", t.TempDir())
	t.Setenv("TMPDIR", t.TempDir())
	p, err := Find()
	if err != nil || !strings.HasPrefix(p.Folder, os.TempDir()+"/paceline-") || p.State != os.Getenv("HOME")+"/.local/state/paceline" {
		t.Errorf("%+v, %v", p, err)
	}
}

// A job of cron or a service has no HOME, or one that is no folder: its state is where that of a shell is. A folder
// that cannot be made is passed over.
func TestPlaceWithoutHome(t *testing.T) {
	u, err := user.LookupId(strconv.Itoa(os.Getuid()))
	if err != nil || !isFolder(u.HomeDir) {
		t.Skipf("the user of this test has no home: %v", err)
	}
	want := []string{filepath.Join(u.HomeDir, ".local", "state")}
	t.Setenv("XDG_STATE_HOME", "")
	for _, home := range []string{"", "relative", "/dev/null", filepath.Join(t.TempDir(), "none")} {
		t.Setenv("HOME", home)
		if got := states(); !slices.Equal(got, want) {
			t.Errorf("with HOME=%q the state is in %q, want %q", home, got, want)
		}
	}
	placed(t)
	t.Setenv("XDG_STATE_HOME", "/dev/null/state")
	t.Setenv("HOME", t.TempDir())
	if p, err := Find(); err != nil || p.State != os.Getenv("HOME")+"/.local/state/paceline" {
		t.Errorf("where XDG_STATE_HOME cannot be made: %+v, %v", p, err)
	}
}

// A Stay keeps it from ending by itself, and from no stop. A Use delays the end.
func TestServerStays(t *testing.T) {
	placed(t)
	s, ended := served(t, func(s *Server) {
		release, ok := s.Stay()
		s.EndIdle(func() time.Duration { return time.Minute })
		if !ok || s.timer != nil {
			t.Error("it ends by itself, although it is to stay")
		}
		release()
		s.Use()
		s.rest() // as if a minute had passed
	})
	select {
	case <-ended:
		t.Fatal("it ended while it was used")
	case <-time.After(10 * time.Millisecond):
	}
	s.EndIdle(func() time.Duration { return time.Nanosecond })
	if err := <-ended; err != nil {
		t.Error(err)
	}
	s, ended = served(t, func(s *Server) {
		if _, ok := s.Stay(); !ok {
			t.Error("it does not stay")
		}
	})
	if held := s.Stop(false); held != nil {
		t.Errorf("%v keeps it from a stop", held)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
