// Package realserver starts nginx and HAProxy for tests. Both limit requests, and log which
// requests they refused. Other projects wrote nginx and HAProxy, so they judge Paceline
// independently.
//
// Package realserver needs the programs nginx and haproxy. Where these are missing, a test is
// skipped or fails, as internal/testkit/need states. Each server listens on a free port of the
// loopback interface, keeps its files in a folder of the test, and is stopped when the test ends.
package realserver

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/daemon"
)

// Limited describes a server that limits requests.
type Limited interface {
	Start(testing.TB) *Server
	String() string
}

// Server is a running server, until the test ends. Every request to its URL is limited, and
// answered 200 or, if refused, 429. The query parameter id is written to its log.
type Server struct {
	URL string

	*daemon.Daemon
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
	s.Stop()
	all := s.arrivals(t)
	slices.SortStableFunc(all, func(a, b Arrival) int { return a.At.Compare(b.At) })
	return all
}

// start runs program with args until the test ends. config is written to DIR/conf first. /up must answer "up ADDRESS".
func start(t testing.TB, program, config string, args ...string) *Server {
	t.Helper()
	d, err := daemon.Start(daemon.Config{Program: program, Args: args, Conf: config, Dir: t.TempDir(), Up: up})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Stop)
	return &Server{URL: "http://" + d.Address + "/", Daemon: d}
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
	text, err := s.Read(name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
