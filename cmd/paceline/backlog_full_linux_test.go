package main

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// shared is what a process says, while it says it.
type shared struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *shared) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *shared) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// A worker whose store has no room says so once, and goes on when there is room. Nothing is lost, and what arrived twice
// is named. The disk is full by a bound on the size of the worker's files.
func TestBacklogOnAFullDisk(t *testing.T) {
	t.Parallel()
	const limit = 50
	s := newStorm(t, "", 200, limit)
	w := another(t, "work", "--backlog", s.store, "--limit", "50/s", "--until-empty", "--progress", "off")
	errs := new(shared)
	w.Stderr = errs
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Process.Kill(); w.Wait() })
	bound := func(most uint64) {
		t.Helper()
		if err := unix.Prlimit(w.Process.Pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: most, Max: unix.RLIM_INFINITY}, nil); err != nil {
			t.Fatal(err)
		}
	}
	s.server.wait(50)
	bound(512)
	const says = "nothing new is sent until it answers"
	for deadline := time.Now().Add(patient); !strings.Contains(errs.String(), says); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("expected %q; the worker says\n%s", says, errs)
		}
	}
	time.Sleep(2 * time.Second) // meanwhile it can read, and says nothing more
	bound(unix.RLIM_INFINITY)
	if err := w.Wait(); err != nil {
		t.Errorf("%v\n%s", err, errs)
	}
	if text := errs.String(); strings.Count(text, says) != 1 || !strings.Contains(text, "answers again") {
		t.Errorf("it says\n%s", text)
	}
	s.judge()
}
