package proxy

import (
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// counted is a connection that counts the deadlines of Reads set on it.
type counted struct {
	net.Conn
	told int
}

func (c *counted) SetReadDeadline(t time.Time) error {
	c.told++
	return c.Conn.SetReadDeadline(t)
}

// single is a listener that has one connection to offer.
type single chan net.Conn

func (l single) Accept() (net.Conn, error) {
	if c, ok := <-l; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (l single) Close() error { return nil }
func (single) Addr() net.Addr { return &net.TCPAddr{} }

// A Read ends at its latest deadline, to the nanosecond, after any number of changes. The
// connection below gets only the near deadlines.
func TestReadDeadlines(t *testing.T) {
	for _, c := range []struct {
		name string
		set  []time.Duration // the deadlines, one set each second; 0: none
		ends time.Duration   // the Read; 0: it does not
		told int
	}{
		{"far", []time.Duration{10 * time.Second}, 10 * time.Second, 1},
		{"near", []time.Duration{300 * time.Millisecond}, 300 * time.Millisecond, 1},
		{"past", []time.Duration{-time.Hour}, 0, 1},
		{"put off", []time.Duration{3 * time.Second, 30 * time.Second, 3 * time.Second}, 5 * time.Second, 1},
		{"put off when it is near", []time.Duration{1500 * time.Millisecond, 30 * time.Second}, 31 * time.Second, 3},
		{"taken back", []time.Duration{10 * time.Second, 0}, time.Hour, 0},
		{"taken back when it is near", []time.Duration{1500 * time.Millisecond, 0}, time.Hour, 2},
		{"as requests have it", []time.Duration{2 * time.Minute, 10 * time.Second, 0, 2 * time.Minute, 10 * time.Second, 0, 2 * time.Minute}, 126 * time.Second, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ours, theirs := net.Pipe()
				defer theirs.Close()
				below := &counted{Conn: ours}
				offers := make(single, 1)
				offers <- below
				l := newListener(offers, &Bounds{Connections: 1, Stall: time.Minute})
				k, err := l.Accept()
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				var ended time.Duration
				done := make(chan struct{})
				set := func(d time.Duration) {
					at := time.Now().Add(d)
					if d == 0 {
						at = time.Time{}
					}
					if err := k.SetReadDeadline(at); err != nil {
						t.Error(err)
					}
				}
				set(c.set[0])
				go func() {
					defer close(done)
					_, err = k.Read(make([]byte, 1))
					ended = time.Since(began)
				}()
				for _, d := range c.set[1:] {
					time.Sleep(time.Second)
					set(d)
				}
				time.Sleep(time.Hour - time.Since(began))
				k.Close()
				<-done
				if ended != c.ends || c.ends < time.Hour && !errors.Is(err, os.ErrDeadlineExceeded) || below.told != c.told {
					t.Errorf("Read ended after %v with %v, want after %v; the connection was told %d times, want %d", ended, err, c.ends, below.told, c.told)
				}
				l.Close()
			})
		})
	}
}

// says is a connection whose next Read has a text.
type says struct {
	net.Conn
	text string
}

func (s says) Read(p []byte) (int, error) { return copy(p, s.text), nil }

// Only bytes that came are looked at. A buffer is used again, and still has those of an earlier request.
func TestOnlyWhatCameIsScanned(t *testing.T) {
	const length = "\r\nContent-Length: 5\r\n"
	for text, want := range map[string]int64{"POST / HTTP/1.1\r\nHost: a\r\n": 0, "POST / HTTP/1.1\r\nHost: a" + length: 1} {
		c := &conn{Conn: says{text: text}}
		p := []byte(strings.Repeat(length, 10))
		if n, err := c.Read(p); n != len(text) || err != nil {
			t.Fatal(n, err)
		}
		if got := c.lengths.seen.Load(); int64(got) != want {
			t.Errorf("%q has %d lengths, want %d", text, got, want)
		}
	}
}
