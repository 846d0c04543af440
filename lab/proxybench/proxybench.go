package proxybench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/daemon"
)

// Config says what is measured, and how often.
type Config struct {
	// Paceline is the path of the program paceline.
	Paceline string
	// Self is the path of a program that runs Serve, and Peer has its arguments before the address: as
	// a ReverseProxy in front of a URL or, without a URL, as a server that holds requests.
	Self string
	Peer []string

	Only   []string // the names of the proxies that are measured; if none, all
	Rounds int      // how many rounds there are; figures are their medians
	// how many a round sends one after the other; of those that are sent at once there are ten times as many
	Requests int
	Strict   time.Duration // how long a round before the strict server takes
	Waiting  int           // how many clients wait while memory is measured
	// Told is called when another part is done.
	Told func(done, all int)
}

// parts is how many parts the round of a peer has, for progress.
const parts = 3

const (
	together = 64 // connections, where many ask at once
	programs = 32 // before the strict server
	streams  = 20
)

// Run measures all proxies. For what could not be measured, the report says why.
func Run(ctx context.Context, c Config) (*Report, error) {
	if runtime.GOOS != "linux" {
		return nil, errors.New("bench proxy reads /proc: it needs Linux")
	}
	up, err := newUpstream()
	if err != nil {
		return nil, err
	}
	defer up.close()
	b := &bench{c: c, up: up, rows: map[string]*samples{}}
	chosen := c.peers()
	for _, p := range chosen {
		b.names = append(b.names, p.name)
		b.rows[p.name] = &samples{does: p.does}
	}
	for _, name := range []string{direct, bare} {
		b.rows[name] = &samples{}
	}
	b.all = c.Rounds*(1+parts*len(chosen)) + 1
	began := time.Now()
	for round := range c.Rounds {
		b.direct(ctx)
		for i := range b.names { // each begins a round as often as the others
			b.peer(ctx, chosen[(i+round)%len(chosen)], uint64(round+1))
		}
	}
	b.bare(ctx)
	r := b.report()
	r.Wall = time.Since(began).Seconds()
	r.Interrupted = ctx.Err() != nil
	return r, nil
}

func (c *Config) peers() (chosen []peer) {
	for _, p := range peers() {
		if len(c.Only) == 0 || slices.Contains(c.Only, p.name) {
			chosen = append(chosen, p)
		}
	}
	return chosen
}

// bench is a run.
type bench struct {
	c         Config
	up        *upstream
	names     []string
	rows      map[string]*samples
	done, all int
}

// samples are what was measured of a peer, a value a round.
type samples struct {
	does string
	why  string // why the peer was not measured

	p50, p99, cpu, rate, manyCPU []float64 // µs, µs, µs, requests/s, µs
	first, event                 []float64 // ms, µs
	memory                       []float64 // MiB
	percent, refused, denied     []float64
	other                        int // answers of the strict server's run that were neither 200 nor 429
}

func (s *samples) fail(err error) {
	if err != nil && s.why == "" {
		s.why = err.Error()
	}
}

func (b *bench) tell() {
	b.done++
	if b.c.Told != nil {
		b.c.Told(b.done, b.all)
	}
}

// direct measures the way without a proxy.
func (b *bench) direct(ctx context.Context) {
	defer b.tell()
	b.rows[direct].fail(b.passing(ctx, b.rows[direct], b.up.URL.Host, nil))
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

func (b *bench) peer(ctx context.Context, p peer, round uint64) {
	s := b.rows[p.name]
	for t, measure := range [parts]func(*daemon.Daemon) error{
		pass:   func(d *daemon.Daemon) error { return b.passing(ctx, s, d.Address, d) },
		hold:   func(d *daemon.Daemon) error { return b.holding(ctx, s, d) },
		strict: func(d *daemon.Daemon) error { return b.strict(ctx, s, d, round) },
	} {
		if ctx.Err() == nil {
			c, able, err := p.program(&b.c, task(t), b.up.URL)
			if err == nil && able {
				err = with(c, measure)
			}
			s.fail(err)
		}
		b.tell()
	}
}

// passing measures what a proxy adds where nothing is in the way; d is nil where there is none.
func (b *bench) passing(ctx context.Context, s *samples, address string, d *daemon.Daemon) error {
	// not measured: it opens the connections and warms up the code
	if _, _, err := closed(ctx, address, plainPath, together, together*20); err != nil {
		return err
	}
	spent := func(f func() error) (cpu time.Duration, err error) {
		var before time.Duration
		if d != nil {
			if before, _, err = used(d.PID()); err != nil {
				return 0, err
			}
		}
		if err := f(); err != nil || d == nil {
			return 0, err
		}
		after, _, err := used(d.PID())
		return after - before, err
	}
	cpu, err := spent(func() error {
		took, _, err := closed(ctx, address, plainPath, 1, b.c.Requests)
		if err == nil {
			s.p50, s.p99 = append(s.p50, micros(at(took, 0.5))), append(s.p99, micros(at(took, 0.99)))
		}
		return err
	})
	if err != nil {
		return err
	}
	s.cpu = append(s.cpu, micros(cpu)/float64(b.c.Requests))
	many := 10 * b.c.Requests
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

// holding measures the memory of a proxy that has many clients wait.
func (b *bench) holding(ctx context.Context, s *samples, d *daemon.Daemon) error {
	release, err := waitAll(ctx, d.Address, b.c.Waiting)
	if err != nil {
		return err
	}
	defer release()
	if !rest(ctx, 2*time.Second) {
		return ctx.Err()
	}
	_, memory, err := used(d.PID())
	s.memory = append(s.memory, float64(memory)/(1<<20))
	return err
}

func (b *bench) strict(ctx context.Context, s *samples, d *daemon.Daemon, seed uint64) error {
	if err := b.up.again(seed); err != nil {
		return err
	}
	answers, err := greedy(ctx, d.Address, programs, b.c.Strict)
	if err != nil {
		return err
	}
	served, refused, most, err := b.up.verdict(b.c.Strict)
	if err != nil || ctx.Err() != nil {
		return errors.Join(err, ctx.Err())
	}
	s.percent = append(s.percent, 100*float64(served)/float64(most))
	s.refused = append(s.refused, float64(refused))
	s.denied = append(s.denied, float64(max(answers[429]-refused, 0)))
	for status, n := range answers {
		if status != 200 && status != 429 {
			s.other += n
		}
	}
	return nil
}

func (b *bench) bare(ctx context.Context) {
	defer b.tell()
	s := b.rows[bare]
	for range b.c.Rounds {
		if ctx.Err() == nil {
			s.fail(with(bareServer(&b.c), func(d *daemon.Daemon) error { return b.holding(ctx, s, d) }))
		}
	}
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

func errOdd(what string, n int) error { return fmt.Errorf("%s %d, expected 1 or more", what, n) }

// Check returns an error if a field has an impossible value.
func (c *Config) Check() error {
	switch {
	case len(c.peers()) < max(len(c.Only), 1):
		var names []string
		for _, p := range peers() {
			names = append(names, p.name)
		}
		return fmt.Errorf("only %q, expected some of %q", c.Only, names)
	case c.Rounds < 1:
		return errOdd("rounds", c.Rounds)
	case c.Requests < 1:
		return errOdd("requests", c.Requests)
	case c.Waiting < 1:
		return errOdd("waiting", c.Waiting)
	case c.Strict < 2*time.Second:
		return fmt.Errorf("strict %v, expected 2s or more: the server's window is 1 s", c.Strict)
	}
	return nil
}
