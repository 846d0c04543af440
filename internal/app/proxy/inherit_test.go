package proxy

import (
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/app/daemon"
	"github.com/paceline-go/paceline/internal/app/journal"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/transport"
)

// A request that is in flight while another process takes over counts in full until its answer, and
// then for a window, in the next process and in the file. If the former process ends without an outcome,
// the request counts for as long as it may still arrive.
func TestInFlightGoesOver(t *testing.T) {
	const window, answers = 20 * time.Second, 30 * time.Second
	for _, c := range []struct {
		name string
		ends time.Duration // of the former process, after the handover; 0: with its answer
		went time.Duration // of the next process's request, after the handover
	}{
		{"answered", 0, answers + window},
		{"broken off", 10 * time.Second, 10*time.Second + journal.Late + window},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				slow := make(chan struct{}, 1)
				slow <- struct{}{}
				server := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					io.Copy(io.Discard, r.Body)
					select {
					case <-slow:
						time.Sleep(answers)
					default:
					}
				})
				conf := to(mustURL(t, "http://server.test"), "1/20s")
				conf.State, conf.clock, conf.Log = filepath.Join(t.TempDir(), "proxy.state"), bubbleClock, slog.New(slog.DiscardHandler)
				conf.MaxWait = 5 * time.Minute
				former := virtual(t, server, conf)
				go former.do("POST", "/", "{}")
				synctest.Wait()
				if err := former.proxy.state.suspend(); err != nil {
					t.Fatal(err)
				}
				former.proxy.state.journal.Lock().Leave() // a former process passes it on
				conf.Taken = &daemon.Predecessor{}
				next := virtual(t, server, conf)
				conf.Taken, next.proxy.config.Taken = nil, nil
				former.proxy.state.handOver(func(entry int64, o limit.Outcome) error {
					if c.ends == 0 {
						next.proxy.state.inherit(entry, o)
					}
					return nil
				})
				began := time.Now()
				if c.ends > 0 {
					time.AfterFunc(c.ends, next.proxy.state.abandon)
				}
				next.do("POST", "/", "{}")
				if after := time.Since(began); after < c.went || after > c.went+time.Second {
					t.Errorf("the next went %v after the handover, expected %v", after, c.went)
				}
				next.stop()
				third, again := virtual(t, server, conf), time.Now()
				third.do("POST", "/", "{}")
				if after := time.Since(again); after < window-time.Second || after > window+time.Second {
					t.Errorf("the third went %v later, expected %v", after, window)
				}
			})
		})
	}
}

// An outcome that comes while a partition is being made counts there, once: it is neither in what Earlier
// returned, nor in flight any more.
func TestOutcomeWhileAPartitionIsMade(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	former := open(t, path)
	p := transport.Partition{Scope: provider.Key, Host: "h"}
	entry, err := ledger{former, "u"}.Send(transport.Partition{Host: "h"}, limit.One)
	if err == nil {
		err = former.suspend()
	}
	if err != nil {
		t.Fatal(err)
	}
	former.journal.Lock().Leave() // a former process passes it on
	next, err := openState(path, time.Minute, time.Minute, &daemon.Predecessor{}, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(next.close)
	former.handOver(func(int64, limit.Outcome) error { return nil })
	l := ledger{next, "u"}
	settled := 0
	make := func(between func()) (earlier int) {
		all, _ := l.Earlier(p, time.Now())
		between()
		l.Underway(p, func(limit.Cost) func(limit.Outcome) { return func(limit.Outcome) { settled++ } })
		return len(all)
	}
	if n := make(func() { next.inherit(entry, limit.Outcome{Result: limit.Accepted}) }); n != 0 || settled != 1 {
		t.Errorf("%d earlier and %d settled, expected 0 and 1", n, settled)
	}
	if n := make(func() {}); n != 1 || settled != 1 {
		t.Errorf("then %d earlier and %d settled, expected 1 and 1", n, settled)
	}
	if former.close(); !former.door.TryLock() {
		t.Fatal("a process that has ended holds its door")
	}
	former.door.Unlock()
}

// If no process takes over, the former one goes on: its requests wait for no longer than that takes,
// and its file is whole.
func TestNobodyTakesOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) })
		conf := to(mustURL(t, "http://server.test"), "2/20s")
		conf.State, conf.clock, conf.Log = filepath.Join(t.TempDir(), "proxy.state"), bubbleClock, slog.New(slog.DiscardHandler)
		x := virtual(t, server, conf)
		x.do("POST", "/", "{}")
		if err := x.proxy.state.suspend(); err != nil {
			t.Fatal(err)
		}
		next, _, err := journal.Open(journal.Config{Path: conf.State, Keep: time.Minute, Alive: true, Clock: bubbleClock,
			Forget: func(string) bool { return true }}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		next.Close() // it ends at once
		time.AfterFunc(3*time.Second, x.proxy.state.resume)
		began := time.Now()
		x.do("POST", "/", "{}")
		if after := time.Since(began); after != 3*time.Second {
			t.Errorf("it went after %v, expected 3s", after)
		}
		x.stop()
		again := time.Now()
		virtual(t, server, conf).do("POST", "/", "{}")
		if after := time.Since(again); after < 16*time.Second || after > 18*time.Second {
			t.Errorf("the next process sent after %v, expected 17s", after)
		}
	})
}
