// Package recalltest provides test servers with a limit that the client is not told beforehand. One
// server states its limit in its answers, one states only the remaining tokens, and one states
// nothing. Each server counts how many requests it served and refused. Tests with these servers
// show what a process still knows of a limit after a restart.
package recalltest

import (
	"net/http"
	"sync"
	"time"

	"github.com/paceline-go/paceline/ratetest"
	"github.com/paceline-go/paceline/ratetest/latency"
	"github.com/paceline-go/paceline/ratetest/service"
)

// Path is the path for requests, the same for each server.
const Path = ratetest.Path + "?api_key=key1&nonce=1"

// Server is one of them. It is safe for concurrent use.
type Server struct {
	http.Handler
	mu sync.Mutex
	Did
}

// Did counts the requests that a Server let through and refused.
type Did struct{ Served, Refused int }

// New returns a server with a limit of 20 a second. Its kind is a window that states itself, a
// bucket that states the rest, or a silent limit.
func New(kind string) (*Server, error) {
	var h http.Handler
	var err error
	switch kind {
	case "window":
		h, err = service.New(service.Config{Provider: "github"})
	case "bucket":
		h, err = ratetest.NewGCRA(ratetest.GCRAConfig{})
	default:
		h, err = ratetest.NewExchange(ratetest.Config{
			Keys: []string{"key1"}, Before: latency.Constant(10 * time.Millisecond),
			AnyNonce: true, BanAfter: -1,
		})
	}
	return &Server{Handler: h}, err
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	sees := &sees{ResponseWriter: w, status: http.StatusOK}
	if r.Header.Get("Authorization") == "" { // GitHub has another limit for requests without a token
		r.Header.Set("Authorization", "Bearer any")
	}
	s.Handler.ServeHTTP(sees, r)
	s.mu.Lock()
	defer s.mu.Unlock()
	if sees.status == http.StatusOK {
		s.Served++
	} else {
		s.Refused++
	}
}

// Since returns the counts since the last call.
func (s *Server) Since() (d Did) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d, s.Did = s.Did, d
	return d
}

// sees notes a status.
type sees struct {
	http.ResponseWriter
	status int
}

func (s *sees) WriteHeader(status int) { s.status = status; s.ResponseWriter.WriteHeader(status) }
