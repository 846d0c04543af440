package run

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/fakeconn"
)

// Each kind of failed attempt is counted under its name, and its dead letters, too.
func TestFailedAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		network := fakeconn.New()
		srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			switch q.URL.Path {
			case "/r1":
				w.WriteHeader(http.StatusNotFound)
			case "/r2":
				if n++; n < 3 {
					w.WriteHeader(http.StatusServiceUnavailable)
				}
			case "/r3":
				time.Sleep(time.Minute)
			}
		})}
		go func() { _ = srv.Serve(network) }()
		b := newBench(t)
		b.network, b.config.Attempts = network, 3
		var lines []string
		for i := range 4 {
			lines = append(lines, fmt.Sprintf(`{"id":"r%d","url":"http://a.test/r%d"}`, i, i))
		}
		ran := b.run(lines...)
		time.Sleep(time.Hour)
		srv.Close()
		got := map[string]string{}
		for _, f := range ran.Failed {
			got[f.What] = fmt.Sprint(f.Attempts, " ", f.Dead, " ", f.Example)
		}
		for what, want := range map[string]string{"404": "1 1 answered 404 Not Found", "503": "2 0 answered 503 Service Unavailable", "timeout": "3 1 no answer: no answer within 5s"} {
			if got[what] != want {
				t.Errorf("%s: %s, want %s; all are %v", what, got[what], want, ran.Failed)
			}
		}
	})
}

// What stood in the way is said as the system says it, over real connections.
func TestFailuresOfTheNetwork(t *testing.T) {
	closes, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer closes.Close()
	go func() {
		for reset := false; ; reset = !reset {
			c, err := closes.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 1<<10))
			if reset {
				_ = c.(*net.TCPConn).SetLinger(0)
			}
			c.Close()
		}
	}()
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	for _, c := range []struct {
		to   net.Listener
		want []string
	}{
		{gone, []string{"connection refused"}},
		{closes, []string{"connection closed", "connection reset"}},
	} {
		b := newBench(t)
		b.config.MaxOutage, b.config.Attempts = 300*time.Millisecond, 2
		ran := b.run(request("a", "http://"+c.to.Addr().String()+"/"))
		var got []string
		for _, f := range ran.Failed {
			got = append(got, f.What)
		}
		slices.Sort(got)
		if !slices.Equal(got, c.want) {
			t.Errorf("%q, want %q; %v", got, c.want, ran.err)
		}
	}
}
