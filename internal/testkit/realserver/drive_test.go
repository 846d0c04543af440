package realserver_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/internal/testkit/realserver"
	"github.com/paceline-go/paceline/limit"
)

// long runs each client for 45 s and holds it to its share of the ceiling. Without it they run for 2 s: a shared machine
// may be too busy that long to hold anybody to a rate, but not to refuse nobody.
var long = need.Long()

// client sends requests to one server through a Gate, as fast as its limiter allows.
type client struct {
	name    string
	server  realserver.Limited
	limiter func() limit.Limiter // a new one
	rate    float64              // requests per second, what the server allows in the long run
	burst   int                  // what it allows at once
	// ceiling returns the most requests per second that the mean round trip leaves.
	ceiling func(rtt time.Duration) float64
	least   float64 // percent of the ceiling that a long run must reach
	// jitter, if positive, is the most that the path holds a request before it is written; uniform from 0.
	jitter time.Duration
	// atSend settles a request when it is sent, as a client does that counts its sends.
	atSend   bool
	breaks   string // how it breaks the server's rule, if it does: then it must be refused
	onlyLong bool   // it takes a long run to tell

	// What became of it.
	sent     int
	refused  int // by the answers
	rtt      time.Duration
	arrivals []realserver.Arrival
	err      error
	refusal  http.Header // of the first that was refused: who answers
	printed  string      // by the server
}

// requests returns how many to send: as many as go at once, one more, and whole seconds of the rate.
func (c *client) requests() int {
	seconds := 2.0
	if long {
		seconds = 45
	}
	return c.burst + 1 + int(seconds*c.rate)
}

// drive sends to url.
func (c *client) drive(url string) error {
	n := c.requests()
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(float64(n)/c.rate*3)*time.Second+10*time.Second)
	defer cancel()
	workers := c.burst + 4
	transport := &http.Transport{MaxIdleConnsPerHost: workers, MaxConnsPerHost: workers}
	defer transport.CloseIdleConnections()
	h := &http.Client{Transport: transport}
	gate := paceline.NewGate(c.limiter())
	var (
		wg       sync.WaitGroup
		last     atomic.Int64
		mu       sync.Mutex // guards what follows and c's results
		total    time.Duration
		problems []error
	)
	for range workers {
		wg.Go(func() {
			for {
				id := last.Add(1)
				if id > int64(n) {
					return
				}
				permit, err := gate.Wait(ctx, limit.One)
				if err == nil {
					err = c.send(ctx, h, fmt.Sprintf("%s?id=%d", url, id), permit, &mu, &total)
				}
				if err != nil {
					mu.Lock()
					problems = append(problems, err)
					mu.Unlock()
					return
				}
			}
		})
	}
	wg.Wait()
	c.rtt = total / time.Duration(max(c.sent, 1))
	return errors.Join(problems...)
}

func (c *client) send(ctx context.Context, h *http.Client, url string, permit paceline.Permit, mu *sync.Mutex, total *time.Duration) error {
	began := time.Now()
	if c.atSend {
		permit.Settle(limit.Outcome{Result: limit.Accepted})
	}
	if c.jitter > 0 {
		time.Sleep(rand.N(c.jitter))
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	res, err := h.Do(q)
	if err != nil {
		if !c.atSend {
			permit.Settle(limit.Outcome{Result: limit.Unknown})
		}
		return err
	}
	_, err = io.Copy(io.Discard, res.Body)
	res.Body.Close()
	took := time.Since(began)
	o := limit.Outcome{RTT: took, Result: limit.Accepted}
	if res.StatusCode == http.StatusTooManyRequests {
		o.Result = limit.Limited
	}
	if !c.atSend {
		permit.Settle(o)
	}
	mu.Lock()
	defer mu.Unlock()
	c.sent++
	*total += took
	if o.Result == limit.Limited {
		if c.refused == 0 {
			c.refusal = res.Header
		}
		c.refused++
	} else if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", url, res.Status)
	}
	return err
}

// reached returns the rate of the arrivals after the first that had to wait, per second.
func (c *client) reached() float64 {
	if len(c.arrivals) < c.burst+2 {
		return 0
	}
	after := c.arrivals[len(c.arrivals)-1].At.Sub(c.arrivals[c.burst].At)
	return float64(len(c.arrivals)-c.burst-1) / after.Seconds()
}

// run runs the clients side by side, each against a server of its own, and judges them by the logs of the servers.
func run(t *testing.T, clients []*client) {
	t.Helper()
	var running []*client
	var servers []*realserver.Server
	for _, c := range clients {
		if !c.onlyLong || long {
			running = append(running, c)
			servers = append(servers, c.server.Start(t))
		}
	}
	var wg sync.WaitGroup
	for i, c := range running {
		wg.Go(func() { c.err = c.drive(servers[i].URL) })
	}
	wg.Wait()
	for i, c := range running {
		c.arrivals = servers[i].Arrivals(t)
		c.printed, _ = servers[i].Read("output")
		for n := 0; n < 2 && c.err == nil && (c.refused > 0) == (c.breaks == ""); n++ {
			// A server looks at the clock once per turn of its loop. One that is held up for long in the middle of a turn, by a
			// busy machine, counts what arrives then as of before it was sent. And what a client sends at once does not arrive
			// at once. Neither happens over and over.
			t.Logf("%s, %v: %d refused; once more, alone\n%s", c.name, c.server, c.refused, table([]*client{c}))
			c.sent, c.refused, c.rtt = 0, 0, 0
			s := c.server.Start(t)
			c.err = c.drive(s.URL)
			c.arrivals = s.Arrivals(t)
			c.printed, _ = s.Read("output")
		}
		c.judge(t)
	}
	t.Log("\n" + table(running))
}

func (c *client) judge(t *testing.T) {
	t.Helper()
	name := c.name + ", " + c.server.String()
	if c.err != nil {
		t.Errorf("%s: %v", name, c.err)
	}
	ids := map[string]bool{}
	refused := 0
	var first *realserver.Arrival
	for i, a := range c.arrivals {
		ids[a.ID] = true
		if a.Refused() {
			refused++
			if first == nil {
				first = &c.arrivals[i]
			}
		}
	}
	if n := c.requests(); len(c.arrivals) != n || len(ids) != n || c.sent != n || c.refused != refused {
		t.Errorf("%s: the log has %d requests, %d different ones, %d refused; the client sent %d, %d refused; want %d. The first refusal: %v. The server printed:\n%.2000s",
			name, len(c.arrivals), len(ids), refused, c.sent, c.refused, n, c.refusal, c.printed)
	}
	switch {
	case c.breaks != "" && refused == 0:
		t.Errorf("%s: none of %d refused, although it %s", name, len(c.arrivals), c.breaks)
	case c.breaks == "" && refused > 0:
		t.Errorf("%s: %d of %d refused by the server's log; the first and what came before:\n%s", name, refused, len(c.arrivals), c.before(*first))
	}
	if got := 100 * c.reached() / c.ceiling(c.rtt); long && c.breaks == "" && got < c.least {
		t.Errorf("%s: %.2f %% of the ceiling, want at least %v %%", name, got, c.least)
	}
}

// before returns the arrivals up to a, as the server logged them.
func (c *client) before(a realserver.Arrival) string {
	var b strings.Builder
	for _, x := range c.arrivals {
		if d := a.At.Sub(x.At); d >= 0 && d <= 2500*time.Millisecond {
			fmt.Fprintf(&b, "%+5d ms  id %s  %d  %s\n", -d.Milliseconds(), x.ID, x.Status, x.Verdict)
		}
		if x.ID == a.ID {
			break
		}
	}
	return b.String()
}

func table(clients []*client) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "server\tclient\trequests\trefused\tmean RTT\tper second\tof its rate\tof the ceiling")
	for _, c := range clients {
		rate := c.reached()
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%.2f ms\t%.3f\t%.2f %%\t%.2f %%\n", c.server, c.name, len(c.arrivals), c.refused,
			c.rtt.Seconds()*1000, rate, 100*rate/c.rate, 100*rate/c.ceiling(c.rtt))
	}
	w.Flush()
	return b.String()
}
