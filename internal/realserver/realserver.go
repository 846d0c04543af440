// Package realserver starts nginx and HAProxy for tests: servers that limit requests, were written by nobody here, and
// judge by a log of their own.
//
// It needs the programs nginx and haproxy (internal/need says what becomes of a test without them). Each server listens on
// a free port of the loopback interface, keeps its files in a folder of the test, and does not outlive it.
package realserver

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Limited describes a server that limits requests.
type Limited interface {
	Start(testing.TB) *Server
	String() string
}

// Server is a running server. Every request to its URL is limited, and answered 200 or, if refused, 429. The query
// parameter id is written to its log.
type Server struct {
	URL string

	dir      string
	process  *os.Process
	ended    chan struct{} // closed when the process is gone
	arrivals func(testing.TB) []Arrival
}

// Arrival is a request as the server's own log has it.
type Arrival struct {
	At     time.Time // when it was judged, to 1 ms
	Status int
	ID     string
	// Verdict is how the log says it: nginx's PASSED, DELAYED or REJECTED, HAProxy's estimate of the rate with this
	// request in it.
	Verdict string
}

// Refused reports whether the server refused the request.
func (a Arrival) Refused() bool { return a.Status == http.StatusTooManyRequests }

// Arrivals ends the server, so that its log is complete, and returns what the log has of requests to URL, in order.
func (s *Server) Arrivals(t testing.TB) []Arrival {
	t.Helper()
	s.stop()
	all := s.arrivals(t)
	slices.SortStableFunc(all, func(a, b Arrival) int { return a.At.Compare(b.At) })
	return all
}

func (s *Server) stop() {
	_ = s.process.Signal(syscall.SIGTERM)
	select {
	case <-s.ended:
	case <-time.After(5 * time.Second):
		_ = s.process.Kill()
		<-s.ended
	}
}

// start runs program with args until the test ends. config is written to DIR/conf first, with DIR replaced by the folder
// of the server and ADDRESS by where to listen; what the program prints goes to DIR/output. /up must answer "up ADDRESS".
func start(t testing.TB, program, config string, args ...string) *Server {
	t.Helper()
	// Between the choice of a port and its use another program may take it.
	for try := 1; ; try++ {
		s, err := launch(t, program, config, args)
		if err == nil {
			return s
		}
		if try == 3 {
			t.Fatalf("%s: %v", filepath.Base(program), err)
		}
	}
}

func launch(t testing.TB, program, config string, args []string) (*Server, error) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := ln.Addr().String()
	ln.Close()
	dir := t.TempDir()
	fill := strings.NewReplacer("DIR", dir, "ADDRESS", address)
	if err := os.WriteFile(filepath.Join(dir, "conf"), []byte(fill.Replace(config)), 0o644); err != nil {
		return nil, err
	}
	output, err := os.Create(filepath.Join(dir, "output"))
	if err != nil {
		return nil, err
	}
	defer output.Close()
	args = slices.Clone(args)
	for i := range args {
		args[i] = fill.Replace(args[i])
	}
	c := exec.Command(program, args...)
	c.Stdout, c.Stderr = output, output
	dieWithUs(c)
	started, ended := make(chan error), make(chan struct{})
	go func() {
		// The system ends the process with the thread that started it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := c.Start()
		started <- err
		if err == nil {
			_ = c.Wait()
			close(ended)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	s := &Server{URL: "http://" + address + "/", dir: dir, process: c.Process, ended: ended}
	t.Cleanup(s.stop)
	for deadline := time.Now().Add(10 * time.Second); ; {
		if up(address) {
			return s, nil
		}
		select {
		case <-ended:
			return nil, fmt.Errorf("it ended: %s", s.read(t, "output"))
		case <-time.After(5 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			s.stop()
			return nil, fmt.Errorf("it does not answer: %s", s.read(t, "output"))
		}
	}
}

func up(address string) bool {
	res, err := http.Get("http://" + address + "/up")
	if err != nil {
		return false
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return err == nil && strings.TrimSpace(string(body)) == "up "+address
}

// read returns what a file of the server's folder holds.
func (s *Server) read(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
