package run

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// A slow reader of the results slows the sending, and does not fill the memory.
func TestSlowReader(t *testing.T) {
	srv, _ := counting(t, func(http.ResponseWriter, *http.Request) {})
	reader, writer := io.Pipe()
	c := newBench(t).config
	c.Out, c.Stdout, c.Concurrency = "-", writer, 3
	r, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Open(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		done <- r.Send(context.Background(), "in", strings.NewReader(strings.Join(requests(200, srv.URL), "\n")))
	}()
	sends := func() int { return r.Progress().Sends }
	for last := 0; last == 0 || last != sends(); time.Sleep(20 * time.Millisecond) {
		last = sends()
	}
	if n := sends(); n == 0 || n > 3*c.Concurrency+1 {
		t.Errorf("%d were sent while nobody read a result", n)
	}
	lines := make(chan int)
	go func() {
		n := 0
		for s := bufio.NewScanner(reader); s.Scan(); n++ {
		}
		lines <- n
	}()
	if err := <-done; err != nil {
		t.Error(err)
	}
	writer.Close()
	if n := <-lines; n != 200 {
		t.Errorf("%d results", n)
	}
	if got, err := r.Close(); err != nil || got.Lost != 0 || got.Done != 200 {
		t.Errorf("%+v, %v", got, err)
	}
}

// A stream stops at a bad line. The requests before it end.
func TestStreamStops(t *testing.T) {
	srv, _ := counting(t, func(http.ResponseWriter, *http.Request) {})
	text := request("a", srv.URL) + "\n{\"url\":1}\n" + request("b", srv.URL) + "\n" + request("a", srv.URL) + "\n"
	for _, skip := range []bool{false, true} {
		c := newBench(t).config
		var notices lockedBuffer
		c.SkipInvalid, c.Notice = skip, func(s string) { fmt.Fprintln(&notices, s) }
		r, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Open(); err != nil {
			t.Fatal(err)
		}
		err = r.Send(context.Background(), "stdin", strings.NewReader(text))
		got, cerr := r.Close()
		if cerr != nil || got.Lost != 0 || got.Left != 0 {
			t.Errorf("%+v, %v", got, cerr)
		}
		if !skip && (!errors.Is(err, ErrInput) || errors.Is(err, ErrUnsent) || got.Done != 1 ||
			err.Error() != "invalid input: stdin:2:8: url is a number, expected a string; reading stops here, what was read before is finished") {
			t.Errorf("%+v, %v", got, err)
		}
		want := "stdin:2:8: url is a number, expected a string\nstdin:4:7: id \"a\" is already on line 1, expected each id once\n"
		if skip && (err != nil || got.Done != 2 || got.Invalid != 2 || notices.String() != want) {
			t.Errorf("%+v, %v, notices:\n%s", got, err, notices.String())
		}
	}
}

// After an interrupt, requests in flight get their answers, and waiting requests are left. A reader
// that is stuck in its input does not delay that.
func TestDrain(t *testing.T) {
	began, release := make(chan struct{}, 10), make(chan struct{})
	srv, _ := counting(t, func(http.ResponseWriter, *http.Request) { began <- struct{}{}; <-release })
	c := newBench(t).config
	c.Concurrency = 2
	r, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Open(); err != nil {
		t.Fatal(err)
	}
	in, feed := io.Pipe()
	defer feed.Close()
	go func() { fmt.Fprintln(feed, strings.Join(requests(5, srv.URL), "\n")) }()
	go func() {
		<-began
		<-began
		for r.Progress().Waiting != 3 {
			time.Sleep(time.Millisecond)
		}
		if p := r.Progress(); p.Why != "answers: 2 in flight is the most that --concurrency allows" {
			t.Errorf("why: %q", p.Why)
		}
		r.Drain()
		close(release)
	}()
	if err := r.Send(context.Background(), "stdin", in); err != nil {
		t.Error(err)
	}
	if got, err := r.Close(); err != nil || got.Done != 2 || got.Left != 3 || got.Lost != 0 {
		t.Errorf("%+v, %v", got, err)
	}
}
