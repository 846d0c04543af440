package send

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"
)

// leave counts how often it was asked, and says yes so many times.
type leave struct{ asked, yes atomic.Int64 }

func (l *leave) Fresh() bool {
	l.asked.Add(1)
	return l.yes.Add(-1) >= 0
}

// Nothing of a request arrives whose leave has lapsed, over a new connection or one that was kept, and one with leave arrives.
func TestLeave(t *testing.T) {
	for _, l := range links {
		for _, kind := range shapes {
			t.Run(fmt.Sprint(l.name, "/", kind), func(t *testing.T) {
				t.Parallel()
				s, url, bare := l.start(t, func() act { return answer })
				for name, rt := range map[string]http.RoundTripper{"own": bare, "wrapped": wraps{bare}} {
					b := over1(t, rt)
					for i, yes := range []int64{0, 5, 0, 5} { // the third goes over a kept connection
						a, asked := new(Exchange), new(leave)
						asked.yes.Store(yes)
						a.Leave = asked
						id := i
						if name == "wrapped" {
							id += 10
						}
						_, err := finish(b.Send(kind.request(t.Context(), url, id), a))
						came := s.came(id)
						switch {
						case yes == 0 && (!errors.Is(err, ErrLapsed) || came != 0 || a.Written()):
							t.Errorf("%s %d without leave: arrived %d times, written %v, error %v", name, i, came, a.Written(), err)
						case yes > 0 && (err != nil || came != 1):
							t.Errorf("%s %d with leave: arrived %d times, error %v", name, i, came, err)
						}
						if n := asked.asked.Load(); n < 1 || n > 2 {
							t.Errorf("%s %d: asked %d times", name, i, n)
						}
					}
				}
			})
		}
	}
}

// An attempt without leave may be made again when there is.
func TestLeaveAgain(t *testing.T) {
	s, url, bare := links[0].start(t, func() act { return answer })
	b, a, asked := over1(t, bare), new(Exchange), new(leave)
	a.Leave = asked
	if _, err := finish(b.Send(shapes[1].request(t.Context(), url, 1), a)); !errors.Is(err, ErrLapsed) {
		t.Errorf("without leave: %v", err)
	}
	asked.yes.Store(5)
	if _, err := finish(b.Send(shapes[1].request(t.Context(), url, 1), a)); err != nil || s.came(1) != 1 {
		t.Errorf("with leave: arrived %d times, %v", s.came(1), err)
	}
}

// wraps is a RoundTripper that is not an http.Transport, with the trace events of one.
type wraps struct{ http.RoundTripper }

// answered is a connection whose other end answers before the Write of the request has returned.
type answered struct {
	net.Conn
	answer func()
}

func (c *answered) Write(b []byte) (int, error) {
	if f := c.answer; f != nil {
		c.answer = nil
		f()
	}
	return len(b), nil
}

// An answer came before the Write of its request had returned. Later bytes need no leave: over a
// connection that has switched protocols, they are the client's next message.
func TestLeaveOfWhatIsOnItsWay(t *testing.T) {
	a, asked, below := new(Exchange), new(leave), new(answered)
	asked.yes.Store(1)
	a.Leave = asked
	c := &conn{Conn: below}
	if err := a.start(true); err != nil || !a.got(c, false) {
		t.Fatal(err)
	}
	below.answer = func() {
		a.returns()
		if _, err := c.Write([]byte("hello")); err != nil {
			t.Errorf("what comes next: %v", err)
		}
	}
	if _, err := c.Write([]byte("GET /chat")); err != nil || asked.asked.Load() != 1 {
		t.Errorf("the request: %v; leave was asked %d times", err, asked.asked.Load())
	}
}

// Once Send has returned, the leave is no longer asked, and nothing is written: its owner may have
// ended it.
func TestLeaveEndsWithSend(t *testing.T) {
	a, asked, below := new(Exchange), new(leave), new(answered)
	asked.yes.Store(5)
	if written, began, rtt := a.Times(time.Now()); written || !began.IsZero() || rtt != 0 {
		t.Errorf("before it is sent: %v, %v, %v", written, began, rtt)
	}
	a.Leave = asked
	gone := errors.New("gone")
	b := NewBase(roundTripper(func(*http.Request) (*http.Response, error) { return nil, gone }))
	if _, err := b.Send(shapes[0].request(t.Context(), "http://a.test", 1), a); err != gone || asked.asked.Load() != 1 {
		t.Fatalf("%v, leave was asked %d times", err, asked.asked.Load())
	}
	a.over = nothing // it had asked for a connection that never came
	c := &conn{Conn: below}
	c.serves.Store(a)
	if n, err := c.Write([]byte("GET")); n != 0 || err != ErrLapsed || asked.asked.Load() != 1 {
		t.Errorf("after Send %d bytes are written, %v; leave was asked %d times", n, err, asked.asked.Load())
	}
}
