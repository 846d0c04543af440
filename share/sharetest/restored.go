package sharetest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/internal/core/node"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/share"
)

// Restored tests a store that goes back in time, as it does when a snapshot of its machine or a
// backup is restored. save keeps a copy of the store. The function that it returns puts the copy
// back, while connections are open. open is that of Run.
func Restored(t *testing.T, open func(t *testing.T) share.Store, save func(t *testing.T) (restore func())) {
	t.Run("late", func(t *testing.T) { late(t, open, save) })
	t.Run("members", func(t *testing.T) { restoredMembers(t, open, save) })
}

// A turn that read the store before it went back loses, even after as many puts.
func late(t *testing.T, open func(*testing.T) share.Store, save func(*testing.T) func()) {
	for puts := range 4 {
		s, key := open(t), t.Name()+strings.Repeat("+", puts)
		put(t, s, key, "old")
		restore := save(t)
		for range puts {
			put(t, s, key, "before")
		}
		calls := 0
		err := s.Turn(ctx(t), key, func(r share.Reading) ([]byte, error) {
			if calls++; calls > 1 {
				return r.Blob, nil
			}
			restore()
			for range max(puts, 1) {
				put(t, open(t), key, "after")
			}
			return []byte("late"), nil
		})
		if r := read(t, open(t), key); err != nil || calls < 2 || string(r.Blob) != "after" {
			t.Errorf("after %d puts and %d calls: %v, and there is %q", puts, calls, err, r.Blob)
		}
	}
}

const (
	// restoredLimit is the limit of the members, per second.
	restoredLimit = 20
	// Several turns of each member are lost.
	copyAge = 1200 * time.Millisecond
	after   = 2500 * time.Millisecond
)

// Members that send all the time send no more than their limit when the store goes back. They go on
// soon, or report why not.
func restoredMembers(t *testing.T, open func(*testing.T) share.Store, save func(*testing.T) func()) {
	own := func() limit.Keeper { return limit.MustRolling(restoredLimit, time.Second) }
	s := open(t)
	err := s.Turn(ctx(t), t.Name(), func(r share.Reading) ([]byte, error) { // a new one would be quiet for 8 s
		return node.Rested(node.Config{New: own}, &r), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var sent []time.Time
	var members []*share.Member
	var all sync.WaitGroup
	running, stop := context.WithCancel(ctx(t))
	defer stop()
	for range 3 {
		m, err := share.Limiter(open(t), t.Name(), own)
		if err != nil {
			t.Fatal(err)
		}
		members = append(members, m)
		gate := paceline.NewGate(m)
		all.Go(func() {
			for {
				permit, err := gate.Wait(running, limit.One)
				if err != nil {
					return
				}
				o := limit.Outcome{Result: limit.Unsent}
				mu.Lock()
				if permit.Fresh() {
					sent, o.Result = append(sent, time.Now()), limit.Accepted
				}
				mu.Unlock()
				permit.Settle(o)
			}
		})
	}
	time.Sleep(time.Second)
	restore := save(t)
	time.Sleep(copyAge)
	restore()
	restored := time.Now()
	time.Sleep(after)
	var why error
	for _, m := range members { // one that did not find out itself has no reason
		why = errors.Join(why, m.Err())
	}
	stop()
	all.Wait()
	for _, m := range members {
		m.Close(ctx(t))
	}
	slices.SortFunc(sent, time.Time.Compare)
	for i := restoredLimit; i < len(sent); i++ {
		if d := sent[i].Sub(sent[i-restoredLimit]); d < time.Second {
			t.Errorf("%d requests in %v, of which the last %v after the store went back", restoredLimit+1, d,
				sent[i].Sub(restored))
			break
		}
	}
	t.Logf("%d sent, the last %v after the store went back; %v", len(sent), sent[len(sent)-1].Sub(restored), why)
	if len(sent) < restoredLimit || sent[len(sent)-1].Before(restored.Add(copyAge)) && why == nil {
		t.Errorf("%d sent, and nothing in the end, for no reason", len(sent))
	}
}
