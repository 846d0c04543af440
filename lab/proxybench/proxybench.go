// Package proxybench measures what `paceline proxy` adds to a request, beside
// net/http/httputil.ReverseProxy. Each is a process of its own, before the same server and under the
// same load; they take turns, and the figures are medians of rounds.
//
// The server and the load are in this process. On a machine with few cores they take time from each
// proxy alike. The comparison is between proxies, and with no proxy at all.
package proxybench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/daemon"
)

// Config says what is measured, and how often.
type Config struct {
	// Paceline is the path of the program paceline.
	Paceline string
	// Self is the path of a program that runs Serve, and Peer has its arguments before the address.
	Self string
	Peer []string

	Rounds int // how many rounds there are; figures are their medians
	// Requests is how many a round sends one after the other. Ten times as many are sent at once.
	Requests int
	// Told is called when another part is done.
	Told func(done, all int)
}

// The rows.
const (
	direct = "no proxy"
	ours   = "paceline"
	plain  = "ReverseProxy"
)

const (
	together = 64 // connections, where many ask at once
	streams  = 20
)

// Run measures both proxies. For what could not be measured, the report says why.
func Run(ctx context.Context, c Config) (*Report, error) {
	if runtime.GOOS != "linux" {
		return nil, errors.New("bench proxy reads /proc: it needs Linux")
	}
	up := newUpstream()
	defer up.Close()
	proxies := []struct {
		name, program string
		args          []string
	}{
		{ours, c.Paceline, []string{"proxy", "--to", up.URL, "--listen", "ADDRESS", "--admin", "off", "--log", "off",
			"--limit", "none"}},
		{plain, c.Self, append(slices.Clone(c.Peer), "ADDRESS", up.URL)},
	}
	rows := map[string]*samples{direct: {}, ours: {}, plain: {}}
	began := time.Now()
	for round := range c.Rounds {
		rows[direct].fail(rows[direct].passing(ctx, &c, up.Listener.Addr().String(), nil))
		for i := range proxies { // each begins a round as often as the other
			p := proxies[(i+round)%len(proxies)]
			if ctx.Err() == nil {
				rows[p.name].fail(with(daemon.Config{Program: p.program, Args: p.args}, func(d *daemon.Daemon) error {
					return rows[p.name].passing(ctx, &c, d.Address, d)
				}))
			}
		}
		if c.Told != nil {
			c.Told(round+1, c.Rounds)
		}
	}
	r := &Report{Rounds: c.Rounds, Requests: c.Requests, Wall: time.Since(began).Seconds(), Interrupted: ctx.Err() != nil}
	for _, name := range []string{direct, ours, plain} {
		r.Rows = append(r.Rows, rows[name].row(name, rows))
	}
	return r, nil
}

// samples are what was measured in a row, a value a round.
type samples struct {
	why                          string    // why the row was not measured
	p50, p99, cpu, rate, manyCPU []float64 // µs, µs, µs, requests/s, µs
	first, event                 []float64 // ms, µs
}

func (s *samples) fail(err error) {
	if err != nil && s.why == "" {
		s.why = err.Error()
	}
}

// with runs f beside a program that was started for it.
func with(c daemon.Config, f func(*daemon.Daemon) error) error {
	dir, err := os.MkdirTemp("", "bench-proxy-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	c.Dir = dir
	d, err := daemon.Start(c)
	if err != nil {
		return err
	}
	defer d.Stop()
	return f(d)
}

// passing measures the way to the server; d is nil where no proxy is in it.
func (s *samples) passing(ctx context.Context, c *Config, address string, d *daemon.Daemon) error {
	// not measured: it opens the connections and warms up the code
	if _, _, err := closed(ctx, address, plainPath, together, together*20); err != nil {
		return err
	}
	spent := func(f func() error) (cpu time.Duration, err error) {
		var before time.Duration
		if d != nil {
			if before, err = used(d.PID()); err != nil {
				return 0, err
			}
		}
		if err := f(); err != nil || d == nil {
			return 0, err
		}
		after, err := used(d.PID())
		return after - before, err
	}
	cpu, err := spent(func() error {
		took, _, err := closed(ctx, address, plainPath, 1, c.Requests)
		if err == nil {
			s.p50, s.p99 = append(s.p50, micros(at(took, 0.5))), append(s.p99, micros(at(took, 0.99)))
		}
		return err
	})
	if err != nil {
		return err
	}
	s.cpu = append(s.cpu, micros(cpu)/float64(c.Requests))
	many := 10 * c.Requests
	cpu, err = spent(func() error {
		_, wall, err := closed(ctx, address, plainPath, together, many)
		s.rate = append(s.rate, float64(many)/wall.Seconds())
		return err
	})
	if err != nil {
		return err
	}
	s.manyCPU = append(s.manyCPU, micros(cpu)/float64(many))
	first, under, err := events(ctx, address, streams)
	if err != nil {
		return err
	}
	s.first, s.event = append(s.first, micros(at(first, 0.5))/1000), append(s.event, micros(at(under, 0.5)))
	return nil
}

// used is the processor time of a process.
func used(pid int) (time.Duration, error) {
	const ticks = 100 // how many of the kernel's units are in a second, on all Linux there is
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The second field is a name in brackets, which may hold spaces.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	user, err1 := strconv.ParseInt(fields[11], 10, 64)
	system, err2 := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * (time.Second / ticks), errors.Join(err1, err2)
}

// at returns the value below which a part of the sorted values is.
func at(sorted []time.Duration, part float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(int(part*float64(len(sorted))), len(sorted)-1)]
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// median returns the median of the values. It is nil if there are none.
func median(all []float64) *float64 {
	if len(all) == 0 {
		return nil
	}
	all = slices.Sorted(slices.Values(all))
	m := (all[(len(all)-1)/2] + all[len(all)/2]) / 2
	return &m
}

// Check returns an error if a field has an impossible value.
func (c *Config) Check() error {
	switch {
	case c.Rounds < 1:
		return fmt.Errorf("rounds %d, expected 1 or more", c.Rounds)
	case c.Requests < 1:
		return fmt.Errorf("requests %d, expected 1 or more", c.Requests)
	}
	return nil
}
