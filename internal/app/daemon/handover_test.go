//go:build unix

package daemon

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// meeting is a Socket, and a process that has asked there.
func meeting(t *testing.T, o Offer, sockets []syscall.Conn) (s *HandoverSocket, former *Successor, next *Predecessor, err error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	if s, err = ListenForHandover(path); err == nil {
		err = s.Serve(nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	gave := make(chan error, 1)
	go func() {
		former = <-s.Next()
		gave <- former.Give(o, sockets)
	}()
	next, err = TakeOver(t.Context(), path)
	if gave := <-gave; gave != nil {
		t.Fatal(gave)
	}
	t.Cleanup(func() { former.Close() })
	if err == nil {
		t.Cleanup(func() { next.Close() })
	}
	return s, former, next, err
}

func TestSocketsGoOver(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s, former, next, err := meeting(t, Offer{PID: 7, Sockets: []NamedSocket{{"main", "a:1"}}}, []syscall.Conn{l.(*net.TCPListener)})
	if err != nil || next.PID != 7 {
		t.Fatal(err)
	}
	if about, err := os.Stat(s.path); err != nil || about.Mode().Perm() != 0o600 {
		t.Errorf("the socket has the mode %v, %v", about.Mode(), err)
	}
	for _, other := range []NamedSocket{{"admin", "a:1"}, {"main", "a:2"}} {
		if l, err := next.Listener(other.Use, other.Address); l != nil || err != nil {
			t.Errorf("%v: %v %v, expected none", other, l, err)
		}
	}
	same, err := next.Listener("main", "a:1")
	if err != nil || same.Addr().String() != l.Addr().String() {
		t.Fatalf("%v %v, expected %v", same, err, l.Addr())
	}
	l.Close() // the other process has its own
	defer same.Close()
	c, err := net.Dial("tcp", same.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	own, err := ListenForHandover(s.path)
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	served := make(chan error, 1)
	go func() { served <- own.Serve(next) }()
	if err := errors.Join(s.HandOver(former, time.Minute), <-served); err != nil {
		t.Error(err)
	}
	if about, err := os.Stat(s.path); err != nil || !os.SameFile(about, own.about) {
		t.Errorf("the path is not the next process's: %v", err)
	}
	go func() {
		former.Report(map[string]int{"a": 1})
		former.Report(map[string]int{"a": 2})
		former.Close()
	}()
	var reported []string
	err = next.Each(func(value []byte) error {
		reported = append(reported, strings.TrimSpace(string(value)))
		return nil
	})
	if got := strings.Join(reported, " "); err != nil || got != `{"a":1} {"a":2}` {
		t.Errorf("reported %s, %v", got, err)
	}
}

func TestNextEndsBeforeItIsReady(t *testing.T) {
	s, former, next, err := meeting(t, Offer{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	next.Close()
	if err := s.HandOver(former, time.Minute); err == nil || !strings.Contains(err.Error(), "has ended") {
		t.Error(err)
	}
}

// A next process that is ready too late ends, and leaves the path to the former one.
func TestNextIsNotReadyInTime(t *testing.T) {
	s, former, next, err := meeting(t, Offer{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.HandOver(former, time.Millisecond); err == nil || !strings.Contains(err.Error(), "not ready within 1ms") {
		t.Error(err)
	}
	former.Close()
	late, err := ListenForHandover(s.path)
	if err != nil {
		t.Fatal(err)
	}
	if err := late.Serve(next); err == nil {
		t.Error("it has taken over")
	}
	late.Close()
	if left, err := filepath.Glob(s.path + "*"); len(left) != 1 || err != nil {
		t.Errorf("left are %v, %v", left, err)
	}
	if about, err := os.Stat(s.path); err != nil || !os.SameFile(about, s.about) {
		t.Errorf("the path is not the former process's: %v", err)
	}
}

func TestRefusedOffer(t *testing.T) {
	if _, _, _, err := meeting(t, Offer{PID: 7, Refused: "it is stopping"}, nil); err == nil ||
		!strings.Contains(err.Error(), "the process 7 does not hand over: it is stopping") {
		t.Error(err)
	}
}

// A Socket whose process lives keeps its path from another one, and that one's end does not take it away. After its
// own end, another one has the path. Without a process, the path leads to ErrNoPredecessor.
func TestPathOfALivingProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	if _, err := TakeOver(t.Context(), path); !errors.Is(err, ErrNoPredecessor) {
		t.Error(err)
	}
	one, err := ListenForHandover(path)
	if err != nil || one.Serve(nil) != nil {
		t.Fatal(err)
	}
	two, err := ListenForHandover(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := two.Serve(nil); err == nil || !strings.Contains(err.Error(), "in use by another process") {
		t.Errorf("beside one that lives: %v", err)
	}
	two.Close()
	if about, err := os.Lstat(path); err != nil || !os.SameFile(about, one.about) {
		t.Errorf("the path is not the first one's any more: %v", err)
	}
	one.Close()
	two, err = ListenForHandover(path)
	if err != nil || two.Serve(nil) != nil {
		t.Fatal(err)
	}
	accepted := make(chan net.Conn, 1)
	go func() {
		c, _ := two.Requests().Accept()
		accepted <- c
	}()
	c, err := DialHandover(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(c, "GET /")
	c.CloseWrite()
	other := <-accepted
	if text, err := io.ReadAll(other); string(text) != "GET /" || err != nil {
		t.Errorf("%q %v", text, err)
	}
	other.Close()
	c.Close()
	two.Close()
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is left: %v", err)
	}
	if _, err := TakeOver(t.Context(), path); !errors.Is(err, ErrNoPredecessor) {
		t.Error(err)
	}
}
