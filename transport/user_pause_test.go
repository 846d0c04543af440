package transport_test

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/observe"
	"github.com/paceline-go/paceline/transport"
)

// A key rests until its instant, and another goes in its place. A rest of all holds each request, of hosts
// that come later, too, until Resume. A request that cannot wait so long is refused with the instant.
func TestRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newKeyed()
		tr := mustNew(t, transport.Config{Base: b, Keys: keys(t, 1000, "team/a", "c")})
		send := func(n int, hosts ...string) {
			t.Helper()
			for i := range n {
				if code, _, err := do(t, tr, get(t, "http://"+hosts[i%len(hosts)]+"/")); err != nil || code != 200 {
					t.Error(code, err)
				}
			}
		}
		stateOf := func(name string) observe.KeyState {
			s := tr.Snapshot()
			for _, k := range s.Keys {
				if k.Name == name {
					return k
				}
			}
			t.Errorf("no key %s", name)
			return observe.KeyState{}
		}
		send(10, "a.test")
		b.count()
		hour := time.Now().Add(time.Hour)
		tr.Rest("a", hour)
		send(10, "a.test", "new.test")
		if n := b.count(); n["c"] != 10 || stateOf("a").State != observe.KeyPaused || !stateOf("a").Until.Equal(hour) || stateOf("c").State != observe.KeyOK {
			t.Errorf("sent %v, a is %+v", n, stateOf("a"))
		}
		time.Sleep(time.Hour)
		send(10, "a.test", "new.test")
		if n := b.count(); n["a"] == 0 || stateOf("a").State != observe.KeyOK {
			t.Errorf("after its rest: sent %v, a is %+v", n, stateOf("a"))
		}

		tr.Rest("", time.Time{})
		var all sync.WaitGroup
		for _, host := range []string{"a.test", "new.test", "newer.test"} {
			all.Go(func() { send(1, host) })
		}
		time.Sleep(24 * time.Hour)
		s := tr.Snapshot()
		if n := b.count(); len(n) != 0 || s.Waiting != 3 || len(s.Paused) != 3 || s.Paused[0].Why != "by its user" || !s.Paused[0].Until.IsZero() {
			t.Errorf("all rest: sent %v, %d wait, %+v", n, s.Waiting, s.Paused)
		}
		tr.Resume("")
		synctest.Wait()
		all.Wait()
		if s := tr.Snapshot(); len(s.Paused) != 0 || s.Waiting != 0 {
			t.Errorf("resumed: %d wait, %+v", s.Waiting, s.Paused)
		}

		tr.Rest("", time.Now().Add(time.Hour))
		impatient, err := tr.With(transport.Config{Base: b, Keys: keys(t, 1000, "team/a", "c"), MaxWait: atMost(time.Minute)})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		_, _, err = do(t, impatient, get(t, "http://a.test/"))
		if e, is := errors.AsType[*transport.Error](err); !is || !errors.Is(err, paceline.ErrDeadline) || e.Name != "rest" || !e.Ready.Equal(began.Add(time.Hour)) || time.Since(began) > 0 {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		tr.Rest("", time.Time{})
		_, _, err = do(t, impatient, get(t, "http://a.test/"))
		if e, is := errors.AsType[*transport.Error](err); !is || e.Name != "rest" || !e.Ready.IsZero() || time.Since(began) != time.Minute {
			t.Errorf("without an end, after %v: %v", time.Since(began), err)
		}
	})
}

// A partition that was forgotten while its key rested goes again after Resume, and rests again if it is known
// no more.
func TestRestOfForgottenPartitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newKeyed()
		tr := mustNew(t, transport.Config{Base: b, Keys: keys(t, 1000, "a"), MaxPartitions: 1, MaxWait: atMost(time.Second)})
		for _, host := range []string{"a.test", "b.test", "a.test"} {
			if _, _, err := do(t, tr, get(t, "http://"+host+"/")); err != nil {
				t.Error(err)
			}
			tr.Rest("a", time.Time{})
			for _, host := range []string{"a.test", "b.test", "a.test"} {
				if _, _, err := do(t, tr, get(t, "http://"+host+"/")); err == nil {
					t.Errorf("%s: sent", host)
				}
			}
			tr.Resume("a")
		}
	})
}
