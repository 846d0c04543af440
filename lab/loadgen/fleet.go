package loadgen

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
	"sync"
	"time"

	"github.com/paceline-go/paceline/ratetest"
)

// Fleet is a server and processes of clients that share its quota.
type Fleet struct {
	// Client is what each process is told, except Process, and except URL unless that is set.
	Client    Config
	Processes int
	// Strategies are the strategies of the processes, in turn. If nil, all follow Client.Strategy.
	Strategies []string
	// Server is the server that is started here, with the Scale of Client. If Client.URL is set none
	// is started: the server there must have a clock that runs as fast.
	Server ratetest.GCRAConfig
	// Command returns a command that runs Serve in a process of its own. If nil, the processes are goroutines of this one.
	Command func(ctx context.Context) *exec.Cmd
	// Open opens the store of Client.Share, if Command is nil.
	Open Opener
	// Sample is the time between two values of Report.Series, by the fleet's clock. If zero, there is none.
	Sample time.Duration
	// Tell, if not nil, is called for each answer, one at a time.
	Tell func(Line)
}

// Run runs the fleet. When ctx is done the clients are told to stop, and the report is about the
// time until then. It returns an error for an impossible configuration, and for a client that
// failed.
func (f *Fleet) Run(ctx context.Context) (Report, error) {
	if err := f.check(); err != nil {
		return Report{}, err
	}
	var server *ratetest.GCRA
	if f.Client.URL == "" {
		config := f.Server
		config.Scale = f.Client.Scale
		var err error
		if server, err = ratetest.NewGCRA(config); err != nil {
			return Report{}, err
		}
		if err := server.Start(""); err != nil {
			return Report{}, err
		}
	}
	t := &tally{threads: f.Client.Threads, last: make([]Line, f.Processes*f.Client.Threads),
		lately: make([]float64, f.Processes*f.Client.Threads), tell: f.Tell, sample: f.Sample.Seconds()}
	began := time.Now()
	errs := f.clients(ctx, server, t.add)
	r := f.report(t, time.Since(began), server)
	r.Complete = ctx.Err() == nil
	if server != nil {
		errs = append(errs, server.Close())
	}
	return r, errors.Join(errs...)
}

func (f *Fleet) check() error {
	if f.Processes < 1 {
		return fmt.Errorf("live: Processes %d is not above 0", f.Processes)
	}
	for _, c := range f.configs() {
		if _, err := newProcess(c, nil); err != nil {
			return err
		}
	}
	return nil
}

// configs are those of the processes.
func (f *Fleet) configs() []Config {
	all := make([]Config, f.Processes)
	for i := range all {
		all[i] = f.Client
		all[i].Process = i
		if len(f.Strategies) > 0 {
			all[i].Strategy = f.Strategies[i%len(f.Strategies)]
		}
	}
	return all
}

// clients runs the processes until they have ended.
func (f *Fleet) clients(ctx context.Context, server *ratetest.GCRA, tell func(Line)) []error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var processes sync.WaitGroup
	errs := make([]error, f.Processes)
	for i, c := range f.configs() {
		if server != nil {
			c.URL = server.URL()
		}
		processes.Go(func() {
			if f.Command != nil {
				errs[i] = spawn(ctx, f.Command, c, tell)
			} else {
				errs[i] = Run(ctx, c, f.Open, tell)
			}
			if errs[i] != nil {
				cancel() // the others would have the quota to themselves and prove nothing
			}
		})
	}
	processes.Wait()
	return errs
}

// spawn runs a client in a process of its own: its Config goes to its stdin, and lines come from its stdout.
func spawn(ctx context.Context, command func(context.Context) *exec.Cmd, c Config, tell func(Line)) error {
	config, err := json.Marshal(c)
	if err != nil {
		return err
	}
	cmd := command(ctx)
	lifeline, err := cmd.StdinPipe() // Wait closes it, and so does the end of this process, however that comes
	if err != nil {
		return err
	}
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
	_, _ = lifeline.Write(config) // a process that does not read it has ended, and says why
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

// Serve is the other end of Fleet.Command: it reads a Config from in, runs it, and writes its lines
// to out. When in ends, so does the run, since nobody is left to hear of it. A read of in may still
// be waiting when Serve has returned.
func Serve(ctx context.Context, in io.Reader, out io.Writer, open Opener) error {
	var c Config
	d := json.NewDecoder(in)
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return fmt.Errorf("live: the configuration on stdin: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()
	e := json.NewEncoder(out)
	var written error
	err := Run(ctx, c, open, func(l Line) { written = errors.Join(written, e.Encode(l)) })
	return errors.Join(err, written)
}
