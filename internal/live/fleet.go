package live

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"time"

	"github.com/paceline-go/paceline/ratetest"
	"github.com/paceline-go/paceline/sim/fleet"
)

// Fleet is a server and processes of clients that share its quota.
type Fleet struct {
	// Client is what each process is told, but for URL and Process.
	Client    Config
	Processes int
	Server    ratetest.GCRAConfig // Scale is that of Client
	// Command returns what runs Serve in a process of its own. If nil, processes are goroutines of this one.
	Command func(ctx context.Context) *exec.Cmd
	// Sample is the time between two values of Report.Series, by the fleet's clock. If zero, there is none.
	Sample time.Duration
	// Tell, if not nil, is called for each answer, one at a time.
	Tell func(Line)
}

// Report is what became of a Fleet. Fields are those of fleet.Report, as far as they can be measured from outside, so that
// a run in real time can be laid beside one in virtual time. Sleep.Max is with jitter, P99 and Median without.
type Report struct {
	Strategy string  `json:"strategy"`
	Seconds  float64 `json:"seconds"` // by the fleet's clock
	Complete bool    `json:"complete"`
	Clients  int     `json:"clients"`
	Scale    float64 `json:"scale"`

	Requests int `json:"requests"`
	Served   int `json:"served"`
	Limited  int `json:"limited"`
	// LimitedLate were refused more than two minutes after the beginning.
	LimitedLate        int          `json:"limited_late"`
	RetryPercent       float64      `json:"retry_percent"`
	RetryPercentPooled float64      `json:"retry_percent_pooled"`
	Sleep              fleet.Sleeps `json:"sleep_s"`
	OptimumSleep       float64      `json:"optimum_sleep_s"`
	RequestSD          float64      `json:"request_sd"`
	Jain               float64      `json:"jain"`

	RequestCount []int     `json:"request_count"` // by client: the threads of each process in turn
	LimitedCount []int     `json:"limited_count"`
	RetryRatio   []float64 `json:"retry_ratio"`
	MaxSleep     []float64 `json:"max_sleep_s"`

	Server ratetest.GCRAReport `json:"server"`
	// Series is at the instants of Sample.
	Series *fleet.Series `json:"series,omitempty"`
}

// tally gathers lines.
type tally struct {
	mu      sync.Mutex
	threads int
	last    []Line // of each client
	late    int
	before  []float64 // sleeps, as they were before each request
	tell    func(Line)

	sample float64 // seconds
	series fleet.Series
}

// until samples the instants up to at, with what was last heard. Clocks of processes differ by what they took to start.
func (t *tally) until(at float64) {
	s := &t.series
	for t.sample > 0 {
		next := float64(len(s.At)) * t.sample
		if next > at {
			return
		}
		if s.Sleep == nil {
			s.Sleep, s.ServedBy = make([][]float64, len(t.last)), make([][]int, len(t.last))
		}
		level, latest, served := int64(0), -1.0, 0
		for i, l := range t.last {
			s.Sleep[i] = append(s.Sleep[i], l.Sleep)
			s.ServedBy[i] = append(s.ServedBy[i], l.Requests-l.Retries)
			served += l.Requests - l.Retries
			if l.Requests > 0 && l.Remaining >= 0 && l.At > latest {
				level, latest = int64(l.Remaining), l.At
			}
		}
		s.At, s.Level, s.Served = append(s.At, next), append(s.Level, level), append(s.Served, served)
	}
}

func (t *tally) add(l Line) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := l.Process*t.threads + l.Thread
	if l.Process < 0 || l.Thread < 0 || l.Thread >= t.threads || i >= len(t.last) {
		return
	}
	t.until(l.At)
	if l.Status == 429 && l.At > 120 {
		t.late++
	}
	if t.last[i].Requests > 0 {
		t.before = append(t.before, t.last[i].Sleep)
	}
	t.last[i] = l
	if t.tell != nil {
		t.tell(l)
	}
}

// Run runs the fleet. When ctx is done the clients are told to stop, and the report is of what was until then. The error is
// of a configuration that cannot be, or of a client that failed.
func (f *Fleet) Run(ctx context.Context) (Report, error) {
	if f.Processes < 1 {
		return Report{}, fmt.Errorf("live: Processes %d is not above 0", f.Processes)
	}
	if _, err := newProcess(f.Client, nil); err != nil {
		return Report{}, err
	}
	server := f.Server
	server.Scale = f.Client.Scale
	g, err := ratetest.NewGCRA(server)
	if err != nil {
		return Report{}, err
	}
	if err := g.Start(""); err != nil {
		return Report{}, err
	}
	t := &tally{threads: f.Client.Threads, last: make([]Line, f.Processes*f.Client.Threads), tell: f.Tell, sample: f.Sample.Seconds()}
	began := time.Now()
	var processes sync.WaitGroup
	errs := make([]error, f.Processes)
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	for i := range errs {
		c := f.Client
		c.URL, c.Process = g.URL(), i
		processes.Go(func() {
			if f.Command != nil {
				errs[i] = spawn(within, f.Command, c, t.add)
			} else {
				errs[i] = Run(within, c, t.add)
			}
			if errs[i] != nil {
				cancel() // without it the others have the quota to themselves, and prove nothing
			}
		})
	}
	processes.Wait()
	seconds := time.Since(began).Seconds() * f.Client.Scale
	r := t.report()
	r.Strategy, r.Scale, r.Complete = f.Client.Strategy, f.Client.Scale, ctx.Err() == nil
	r.Seconds = min(seconds, f.Client.Duration.Seconds())
	r.OptimumSleep = float64(r.Clients) / f.Client.Params.Rate
	if f.Sample > 0 {
		t.until(r.Seconds)
		r.Series = &t.series
	}
	r.Server = g.Report()
	errs = append(errs, g.Close())
	return r, errors.Join(errs...)
}

func (t *tally) report() (r Report) {
	r.Clients, r.LimitedLate = len(t.last), t.late
	ratios, asking := 0.0, 0
	for _, l := range t.last {
		ratio := 0.0
		if l.Requests > 0 {
			ratio = float64(l.Retries) / float64(l.Requests)
			ratios += ratio
			asking++
		}
		r.Requests += l.Requests
		r.Limited += l.Retries
		r.RequestCount = append(r.RequestCount, l.Requests)
		r.LimitedCount = append(r.LimitedCount, l.Retries)
		r.RetryRatio = append(r.RetryRatio, ratio)
		r.MaxSleep = append(r.MaxSleep, l.MaxSleep)
		r.Sleep.Max = max(r.Sleep.Max, l.MaxSleep)
	}
	r.Served = r.Requests - r.Limited
	if asking > 0 {
		r.RetryPercent = 100 * ratios / float64(asking)
		r.RetryPercentPooled = 100 * float64(r.Limited) / float64(r.Requests)
	}
	if n := len(t.before); n > 0 {
		slices.Sort(t.before)
		r.Sleep.P99, r.Sleep.Median = t.before[(n-1)*99/100], t.before[(n-1)/2]
	}
	r.RequestSD, r.Jain = fleet.Spread(r.RequestCount)
	return r
}

// spawn runs a client in a process of its own: its Config goes to its stdin, and lines come from its stdout.
func spawn(ctx context.Context, command func(context.Context) *exec.Cmd, c Config, tell func(Line)) error {
	config, err := json.Marshal(c)
	if err != nil {
		return err
	}
	cmd := command(ctx)
	cmd.Stdin = bytes.NewReader(config)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("live: client process %d: %w", c.Process, err)
	}
	var strange error
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		var l Line
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			strange = fmt.Errorf("live: client process %d said %.100q, which is no line of a client", c.Process, lines.Bytes())
			continue
		}
		tell(l)
	}
	if err := cmd.Wait(); err != nil && ctx.Err() == nil {
		return fmt.Errorf("live: client process %d: %w: %s", c.Process, err, bytes.TrimSpace(stderr.Bytes()))
	}
	return strange
}

// Serve is the other end of Fleet.Command: it reads a Config from in, runs it, and writes its lines to out.
func Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	var c Config
	d := json.NewDecoder(in)
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return fmt.Errorf("live: the configuration on stdin: %w", err)
	}
	e := json.NewEncoder(out)
	var written error
	err := Run(ctx, c, func(l Line) { written = errors.Join(written, e.Encode(l)) })
	return errors.Join(err, written)
}
