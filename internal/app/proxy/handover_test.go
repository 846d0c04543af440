//go:build unix

package proxy

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/daemon"
)

// socketOf is a socket for the next process, in a folder.
func socketOf(t *testing.T) (s *daemon.HandoverSocket, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "s")
	s, err := daemon.ListenForHandover(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s, path
}

// A process that asks for everything and ends before it is ready changes nothing: the former one sends again.
func TestTakeoverThatFails(t *testing.T) {
	conf := to(upstreamOf(t, func(http.ResponseWriter, *http.Request) {}), "100/s")
	conf.State = filepath.Join(t.TempDir(), "state")
	s, path := socketOf(t)
	x := start(t, conf)
	if err := x.server.PassOn(Handover{Socket: s, Path: path}); err != nil {
		t.Fatal(err)
	}
	next, err := daemon.TakeOver(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	next.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if resp, _, err := x.try(ctx, "GET", "/", ""); err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("%v, %v", resp, err)
	}
}

// What the next process answers comes with a wish to connect anew, and leads to it then. A connection that changes its protocol stays.
func TestAnswersOfTheNextProcess(t *testing.T) {
	x := start(t, to(upstreamOf(t, func(http.ResponseWriter, *http.Request) { t.Error("the former process sends") })))
	s, path := socketOf(t)
	if err := s.Serve(); err != nil {
		t.Fatal(err)
	}
	next := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "" {
			w.Header().Set("Connection", "Upgrade")
			w.Header().Set("Upgrade", "echo")
			w.WriteHeader(http.StatusSwitchingProtocols)
			return
		}
		fmt.Fprint(w, "of the next")
	})}
	go next.Serve(s.Requests())
	defer next.Close()
	x.proxy.heir.Store(newHeir(path, x.proxy.config.Log))
	if resp, text := x.do("GET", "/", ""); text != "of the next" || !resp.Close {
		t.Errorf("%q, and the connection ends: %v", text, resp.Close)
	}
	c, err := net.Dial("tcp", x.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Errorf("a change of the protocol: %v, %v", resp, err)
	}
}
