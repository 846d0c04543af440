package sending

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"
)

// read returns the body, whatever its stated length. It takes the memory of the bytes that came.
func TestMemoryReads(t *testing.T) {
	body := bytes.Repeat([]byte("0123456789abcdef"), 200_000) // 3.2 MB
	for _, c := range []struct {
		says, most int64
		of         int
		want       int
		taken      int64 // at most
	}{
		{-1, 5 << 20, len(body), len(body), 4 << 20}, {int64(len(body)), 5 << 20, len(body), len(body), int64(len(body)) + 1},
		{-1, 1001, len(body), 1001, 1001}, {int64(len(body)), 1001, len(body), 1001, 1001},
		{0, 1001, 0, 0, 1}, {-1, 1001, 0, 0, 1001}, {1 << 40, 1 << 30, 100, 100, 1 << 20}, {5, 1001, 5, 5, 6}, {3, 1001, 5, 5, 16},
	} {
		m, s := &memory{limit: 1 << 20}, &share{}
		b, err := m.read(context.Background(), s, iotest.HalfReader(bytes.NewReader(body[:c.of])), c.says, c.most, nil)
		if err != nil || !bytes.Equal(b, body[:c.want]) || s.n > c.taken || m.held != s.n || int64(cap(b)) > s.n {
			t.Errorf("%+v: %d bytes, %v, %d taken of which %d are held", c, len(b), err, s.n, m.held)
		}
		if m.Free(s); m.held != 0 || m.over {
			t.Errorf("%+v: %+v", c, m)
		}
	}
}

// The bytes held stay within the limit and one answer, for any demand. All answers end. A wait on
// this side does not count as the server's time.
func TestMemoryBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const each, limit = 2 << 20, 5 << 20
		m := &memory{limit: limit}
		done, waited := make(chan error, 64), make(chan bool, 1000)
		for range 64 {
			go func() {
				s := &share{}
				r, w := io.Pipe()
				go func() {
					for range 32 {
						time.Sleep(time.Millisecond)
						_, _ = w.Write(make([]byte, each/32))
					}
					w.Close()
				}()
				b, err := m.read(t.Context(), s, r, -1, each+1, func(on bool) { waited <- on })
				if len(b) != each && err == nil {
					err = errors.New("it is not whole")
				}
				time.Sleep(time.Second) // until it is in the results
				m.Free(s)
				done <- err
			}()
		}
		for range 64 {
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		}
		if m.held != 0 || m.over || m.most > limit+each+1 || m.most < limit-each || len(waited) == 0 {
			t.Errorf("%d were held at most, expected up to %d; now %d, %v", m.most, limit+each, m.held, m.over)
		}
	})
}

// A reader that gives up leaves the queue.
func TestMemoryGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{limit: 10}
		none := func(bool) {}
		take := func(n int64) (*share, chan error, context.CancelFunc) {
			s, got := &share{}, make(chan error, 1)
			ctx, cancel := context.WithCancel(t.Context())
			go func() { got <- m.take(ctx, s, n, none) }()
			synctest.Wait()
			return s, got, cancel
		}
		first, a, _ := take(8)
		over, b, _ := take(5) // beyond the limit
		_, c, cancel := take(7)
		little, d, _ := take(1)
		if len(a) != 1 || len(b) != 1 || len(c) != 0 || len(d) != 0 {
			t.Fatalf("%d %d %d %d", len(a), len(b), len(c), len(d))
		}
		m.Free(first)
		synctest.Wait()
		if len(c) != 0 || len(d) != 0 { // behind the one with a demand of 7 of 5
			t.Fatalf("%d %d", len(c), len(d))
		}
		cancel()
		synctest.Wait()
		if err := <-c; !errors.Is(err, context.Canceled) || len(d) != 1 || m.held != 6 {
			t.Fatalf("%v, %d, %d are held", err, len(d), m.held)
		}
		m.Free(over)
		m.Free(little)
		if m.held != 0 || m.over || len(m.waiting) != 0 {
			t.Errorf("%+v", m)
		}
	})
}

// Of an answer to a waiting request 64 kB are kept, without the buffer of the whole answer.
func TestShorten(t *testing.T) {
	for n, cut := range map[int]bool{0: false, 64 << 10: false, 64<<10 + 1: true, 1 << 20: true} {
		res := &Response{Body: make([]byte, n)}
		res.Shorten()
		if want := min(n, 64<<10); len(res.Body) != want || res.Cut != cut || cut && cap(res.Body) > 2*want {
			t.Errorf("of %d bytes %d are kept, in %d, cut %v", n, len(res.Body), cap(res.Body), res.Cut)
		}
	}
}

// The bodies of answers take 128 MiB together, and one more.
func TestHeldAnswers(t *testing.T) {
	m := New(Config{}).Memory
	ctx, cancel := context.WithCancel(t.Context())
	waits := func(on bool) {
		if on {
			cancel()
		}
	}
	shares := make([]share, 4)
	for i, want := range []error{nil, nil, nil, context.Canceled} {
		if err := m.take(ctx, &shares[i], 64<<20, waits); err != want {
			t.Errorf("answer %d of 64 MiB: %v", i+1, err)
		}
	}
}
