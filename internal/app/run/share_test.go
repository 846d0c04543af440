package run

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/app/sharestore"
	"github.com/paceline-go/paceline/internal/testkit/fakeconn"
	"github.com/paceline-go/paceline/internal/text/rate"
	"github.com/paceline-go/paceline/share/sharetest"
)

// sharingBench is a bench whose limit others may share, and a server that notes when requests
// arrive.
type sharingBench struct {
	*bench
	store *sharetest.Memory
	dial  func()

	mu      sync.Mutex
	arrived []time.Duration
}

func newSharingBench(t *testing.T, limits ...string) *sharingBench {
	s := &sharingBench{bench: newBench(t), store: new(sharetest.Memory), dial: func() {}}
	base := time.Now()
	s.config.clock = bubbleClock
	s.config.Timeout = time.Minute
	for _, text := range limits {
		l, err := rate.ParseLimit(text)
		if err != nil {
			t.Fatal(err)
		}
		s.config.Limits = append(s.config.Limits, l)
	}
	s.config.Share = sharestore.New(sharestore.Config{Store: s.store, Address: "memory"})
	s.config.Dial = func(context.Context, string, string) (net.Conn, error) {
		s.dial()
		return fakeconn.Conn(func() int {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.arrived = append(s.arrived, time.Since(base))
			return http.StatusOK
		}), nil
	}
	return s
}

// The run loses its store between the grant and the write, while a connection is opened. Nothing is
// written, no attempt is counted, and the request goes when there is leave again.
func TestLapsedLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSharingBench(t, "20/s")
		first := true
		s.dial = func() {
			if !first {
				return
			}
			first = false
			s.store.Away(errors.New("cut off"))
			go func() {
				time.Sleep(6 * time.Second)
				s.store.Away(nil)
			}()
			time.Sleep(4 * time.Second)
		}
		got := s.run(`{"id":"a","method":"POST","url":"http://server/","body":"b"}`)
		if got.err != nil || got.Done != 1 || got.results["a"].Attempts != 1 {
			t.Errorf("%v: %+v\n%s", got.err, got.results["a"], got.notices)
		}
		if len(s.arrived) != 1 || s.arrived[0] < 14*time.Second || s.arrived[0] > 17*time.Second { // a new store is quiet for 8 s
			t.Errorf("it arrived at %v", s.arrived)
		}
		s.config.Share.Close()
	})
}

// The store keeps the sends. A later run with a folder of its own waits for those of the first that
// still count. A run with another limit is refused before it sends anything.
func TestSharedAcrossRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSharingBench(t, "20/m")
		if got := s.run(requests(20, "http://server/")...); got.err != nil || got.Done != 20 {
			t.Fatalf("%+v", got)
		}
		s.config.Share.Close()
		last := s.arrived[19]
		again := newSharingBench(t, "20/m")
		again.config.Share = sharestore.New(sharestore.Config{Store: s.store, Address: "memory"})
		began := time.Now()
		if got := again.run(`{"id":"a","url":"http://server/"}`); got.err != nil || got.Done != 1 {
			t.Fatalf("%+v", got)
		}
		if waited := time.Since(began); waited < 59*time.Second || waited > 63*time.Second {
			t.Errorf("the second run waited %v; the first ended at %v", waited, last)
		}
		again.config.Share.Close()
		other := newSharingBench(t, "30/m")
		other.config.Share = sharestore.New(sharestore.Config{Store: s.store, Address: "memory"})
		got := other.run(`{"id":"a","url":"http://server/"}`)
		if !errors.Is(got.err, ErrConfig) || !strings.Contains(got.err.Error(), `"30/m" here`) || !strings.Contains(got.err.Error(), `"20/m" where`) || len(other.arrived) > 0 {
			t.Errorf("another limit: %v", got.err)
		}
		s.store.Away(errors.New("no route to it"))
		again.config.Append = true
		if got = again.run(`{"id":"b","url":"http://server/"}`); !errors.Is(got.err, ErrConfig) || !strings.Contains(got.err.Error(), "memory cannot be reached: no route to it") || len(again.arrived) > 1 {
			t.Errorf("without the store: %v", got.err)
		}
	})
}

// While the window of a shared limit is full with the requests of another process, the progress line says for how long, and the ETA counts
// that wait.
func TestWaitForASharedWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := newSharingBench(t, "20/m")
		if got := first.run(requests(20, "http://server/")...); got.err != nil || got.Done != 20 {
			t.Fatalf("%+v", got)
		}
		first.config.Share.Close()
		s := newSharingBench(t, "20/m")
		s.config.Share = sharestore.New(sharestore.Config{Store: first.store, Address: "memory"})
		seen := make(chan Progress, 1)
		s.drain = func(r *Run) {
			time.Sleep(30 * time.Second)
			seen <- r.Progress()
		}
		if got := s.run(requests(3, "http://server/")...); got.err != nil || got.Done != 3 {
			t.Fatalf("%+v", got)
		}
		p := <-seen
		near := func(d time.Duration) bool { return d > 27*time.Second && d < 32*time.Second }
		if p.Why != "the shared limit default" || !near(p.WaitLeft) || !near(p.ETA) {
			t.Errorf("%q, %v left, ETA %v", p.Why, p.WaitLeft, p.ETA)
		}
		s.config.Share.Close()
	})
}
