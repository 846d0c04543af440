package journal

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/app/durable"
	"github.com/paceline-go/paceline/limit"
)

// slow is a file whose writes say that they begin, wait for leave, and may fail.
type slow struct {
	durable.Handle
	began chan struct{}
	leave chan error

	mu     sync.Mutex
	writes [][]byte
	synced int // writes before the last Sync
}

func (h *slow) Write(b []byte) (int, error) {
	h.began <- struct{}{}
	if err := <-h.leave; err != nil {
		return 0, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.writes = append(h.writes, bytes.Clone(b))
	return h.Handle.Write(b)
}

func (h *slow) Sync() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.synced = len(h.writes)
	return h.Handle.Sync()
}

// has says in which write the send of an id is; -1: in none.
func (h *slow) has(id string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.IndexFunc(h.writes, func(b []byte) bool { return bytes.Contains(b, []byte(`"id":"`+id+`"`)) })
}

// Records that come during a write go in the next write. Each call returns after its own write,
// also if that fails.
func TestGroups(t *testing.T) {
	for _, always := range []bool{false, true} {
		h := &slow{began: make(chan struct{}), leave: make(chan error)}
		j, _, err := Open(Config{Path: filepath.Join(t.TempDir(), "j"), Keep: time.Minute, SyncSends: always, Clock: clock(0),
			Forget: func(string) bool { return false }, Before: func() error { return nil }}, epoch)
		if err != nil {
			t.Fatal(err)
		}
		j.Through(func(to durable.Handle) durable.Handle { h.Handle = to; return h })
		results := make(chan error)
		begin := func(n int, id string) {
			for i := range n {
				go func() {
					id := fmt.Sprint(id, i)
					_, err := j.Send(Send{ID: id, Key: "A"}, epoch)
					if in := h.has(id); (err == nil) != (in >= 0) || err == nil && always && h.synced <= in {
						err = fmt.Errorf("%s went with write %d of %d synced: %v", id, in, h.synced, err)
					}
					results <- err
				}()
			}
			go func() { results <- j.answer(1, Answer{Result: limit.Accepted, Counts: epoch}) }()
			for { // until all of them wait
				j.mu.Lock()
				all := j.group != nil && len(j.group.records) == n+1
				j.mu.Unlock()
				if all {
					return
				}
				runtime.Gosched()
			}
		}
		go func() { _, err := j.Send(Send{ID: "first"}, epoch); results <- err }()
		<-h.began
		before := 1
		for i, fails := range []error{nil, nil, errBroken} { // the group before
			begin(20, fmt.Sprintf("group%d-", i))
			h.leave <- fails
			for range before {
				if err := <-results; !errors.Is(err, fails) {
					t.Errorf("always %v, before group %d: %v, want %v", always, i, err, fails)
				}
			}
			before = 21
			<-h.began
		}
		h.leave <- nil
		for range before {
			if err := <-results; err != nil {
				t.Error(err)
			}
		}
		if len(h.writes) != 3 { // of four, one failed
			t.Errorf("always %v: %d writes", always, len(h.writes))
		}
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	}
}

// counting counts the writes of a file. It may fail them.
type counting struct {
	durable.Handle
	writes int
	fails  error
}

func (h *counting) Write(b []byte) (int, error) {
	if h.fails != nil {
		return 0, h.fails
	}
	h.writes++
	return h.Handle.Write(b)
}

// An outcome that nobody waits for is written with the next send, or 10 ms later, or before the file is read or closed.
// If its write fails, that is told, whoever writes.
func TestAnswerSoon(t *testing.T) {
	for name, c := range map[string]struct {
		then   func(t *testing.T, j *Journal)
		writes int // after the one of the send
		fails  bool
	}{
		"a send takes it along": {func(t *testing.T, j *Journal) { _, _ = j.Send(Send{ID: "b"}, epoch) }, 1, false},
		"a send that fails":     {func(t *testing.T, j *Journal) { _, _ = j.Send(Send{ID: "b"}, epoch) }, 0, true},
		"alone":                 {func(t *testing.T, j *Journal) { time.Sleep(soon) }, 1, false},
		"alone, and it fails":   {func(t *testing.T, j *Journal) { time.Sleep(soon) }, 0, true},
		"before a moment":       {func(t *testing.T, j *Journal) { time.Sleep(soon - 1) }, 0, false},
		"the file is read": {func(t *testing.T, j *Journal) {
			if all, err := j.Sends(epoch); err != nil || len(all) != 1 || all[0].Result != limit.Accepted {
				t.Errorf("read: %+v, %v", all, err)
			}
		}, 1, false},
		"the file is closed": {func(t *testing.T, j *Journal) { _ = j.Suspend() }, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var told error
				j, _, err := Open(Config{Path: filepath.Join(t.TempDir(), "j"), Keep: time.Minute, Clock: clock(0),
					Forget: func(string) bool { return false }, Unwritten: func(err error) { told = err }}, epoch)
				if err != nil {
					t.Fatal(err)
				}
				h := &counting{}
				j.Through(func(to durable.Handle) durable.Handle { h.Handle = to; return h })
				n, err := j.Send(Send{ID: "a", Key: "A"}, epoch)
				if err != nil {
					t.Fatal(err)
				}
				if c.fails {
					h.fails = errBroken
				}
				h.writes = 0
				j.AnswerSoon(n, Answer{Result: limit.Accepted, Counts: epoch})
				j.AnswerSoon(n, Answer{Result: limit.Accepted, Counts: epoch})
				c.then(t, j)
				synctest.Wait()
				if h.writes != c.writes || errors.Is(told, errBroken) != c.fails {
					t.Errorf("%d writes, want %d; told %v", h.writes, c.writes, told)
				}
				h.fails = nil
				_ = j.Close()
			})
		})
	}
}
