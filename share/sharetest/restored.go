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

// crowd are Members that send all the time.
type crowd struct {
	running context.Context
	all     sync.WaitGroup
	members []*share.Member

	mu   sync.Mutex
	sent []time.Time
}

func restoredOwn() limit.Limiter { return limit.MustRolling(restoredLimit, time.Second) }

// add adds a Member, which begins at once.
func (c *crowd) add(t *testing.T, s share.Store) {
	m, err := share.Limiter(s, t.Name(), restoredOwn)
	if err != nil {
		t.Fatal(err)
	}
	c.members = append(c.members, m)
	gate := paceline.NewGate(m)
	c.all.Go(func() {
		for {
			permit, err := gate.Wait(c.running, limit.One)
			if err != nil {
				return
			}
			o := limit.Outcome{Result: limit.Unsent}
			c.mu.Lock()
			if permit.Fresh() {
				c.sent, o.Result = append(c.sent, time.Now()), limit.Accepted
			}
			c.mu.Unlock()
			permit.Settle(o)
		}
	})
}

// Members that send all the time send no more than their limit when the store goes back, although
// one more comes just then. They go on soon, or report why not.
func restoredMembers(t *testing.T, open func(*testing.T) share.Store, save func(*testing.T) func()) {
	err := open(t).Turn(ctx(t), t.Name(), func(r share.Reading) ([]byte, error) { // a new one would be quiet for 8 s
		return node.Rested(node.Config{New: restoredOwn}, &r), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	running, stop := context.WithCancel(ctx(t))
	defer stop()
	c := &crowd{running: running}
	for range 3 {
		c.add(t, open(t))
	}
	late := open(t)
	time.Sleep(time.Second)
	restore := save(t)
	time.Sleep(copyAge)
	restore()
	restored := time.Now()
	c.add(t, late)
	time.Sleep(after)
	var why error
	for _, m := range c.members { // one that did not find out itself has no reason
		why = errors.Join(why, m.Err())
	}
	stop()
	c.all.Wait()
	for _, m := range c.members {
		m.Close(ctx(t))
	}
	sent := c.sent
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
