//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/daemon"
	"github.com/paceline-go/paceline/internal/app/keeper"
	"github.com/paceline-go/paceline/internal/app/launch"
	"github.com/paceline-go/paceline/internal/app/permit"
	"github.com/paceline-go/paceline/internal/app/proxy"
	"github.com/paceline-go/paceline/provider"
)

// daemonBounds are those of paceline exec without other flags.
func daemonBounds() proxy.Bounds {
	return proxy.Bounds{Header: 256 << 10, Body: 1 << 30, Kept: 32 << 20, KeptInAll: 512 << 20, Frozen: 64 << 20}
}

// leastIdle is how long a daemon waits for its first run, and for the next one.
const leastIdle = 10 * time.Second

// served are the runs of paceline exec that a daemon serves.
type served struct {
	server *daemon.Server
	keeper *keeper.Keeper
	over   context.Context // ends them all
	runs   sync.WaitGroup

	permits *permit.Server
}

// counts is how long something that is sent now may count.
func (p *served) counts() time.Duration { return max(p.keeper.Counts(), p.permits.Counts(), leastIdle) }

// mountRuns lets runs join. Until over ends, each is watched.
func mountRuns(over context.Context, s *daemon.Server, c proxy.Config) *served {
	c.Live, c.State, c.MaxWait = true, filepath.Join(s.Place().State, "daemon.state"), keeper.Forever
	c.Bounds, c.Beside = daemonBounds(), besideExec()
	p := &served{server: s, keeper: keeper.New(c), over: over}
	s.Handle("POST /v1/runs", http.HandlerFunc(p.join))
	s.Report("runs", func() any { return p.keeper.Names() })
	return p
}

// besideExec is what other programs of the user learn of exec.
func besideExec() (b proxy.Beside) {
	if notesSends {
		folder, _ := recentFolder() // the daemon has found its place
		b = proxy.Beside{Folder: folder, Door: "exec", Way: throughExec}
	}
	return b
}

// throughExec says how a run sends to an upstream of exec. With fields or keys of its own, only whoever started
// exec knows.
func throughExec(u *proxy.Upstream) string {
	unnamed := func(l proxy.Limit) bool { return l.Text == "" || l.Only != "" || l.Scope != provider.Key }
	if len(u.Limits) == 0 && u.Preset == "" || slices.ContainsFunc(u.Limits, unnamed) ||
		len(u.Header)+len(u.Query)+len(u.Keys)+len(u.Charges)+len(u.Targets) > 0 {
		return ""
	}
	line := []string{"paceline exec"}
	if ip := net.ParseIP(u.To.Hostname()); ip.IsLoopback() || u.To.Hostname() == "localhost" {
		line = append(line, "--capture") // a run uses no proxy to this machine
	}
	line = append(line, "--to", cli.Quoted(u.To.String()))
	if u.Preset != "" {
		line = append(line, "--preset", u.Preset)
	}
	for _, l := range u.Limits {
		line = append(line, "--limit", cli.Quoted(l.Text))
	}
	return fmt.Sprintf("with this in front of the command, they do: %s --", strings.Join(line, " "))
}

// close ends all runs, after over has ended.
func (p *served) close() error {
	p.runs.Wait()
	return p.keeper.Close()
}

func (p *served) join(w http.ResponseWriter, r *http.Request) {
	peer, _ := daemon.PeerOf(r.Context())
	var said io.WriteCloser = discard{}
	if f := daemon.TakeFile(r.Context()); f != nil {
		said = f
	}
	run, x, err := p.read(r.Body, peer.PID, said)
	if err != nil {
		said.Close()
		daemon.Refuse(w, http.StatusBadRequest, "%v", err)
		return
	}
	release, ok := p.server.Hold(fmt.Sprintf("%s (process %d)", run.Program, run.PID))
	if !ok {
		said.Close()
		daemon.Refuse(w, http.StatusServiceUnavailable, "the daemon ends")
		return
	}
	if err := p.keeper.Join(run); err != nil {
		release()
		said.Close()
		daemon.Refuse(w, http.StatusConflict, "%v", inExec(err))
		return
	}
	made := run.Made() // the program may end at once, and its run with it
	p.runs.Go(func() {
		defer release()
		defer said.Close()
		launch.Ended(p.over, run.PID)
		figures := p.keeper.Leave(context.WithoutCancel(p.over), run)
		if p.over.Err() != nil {
			fmt.Fprintln(said, "paceline: the daemon was stopped, and connections to the named hosts are refused from now on")
		}
		if err := x.report(said, figures); err != nil {
			fmt.Fprintln(said, "paceline:", err)
		}
	})
	daemon.Answer(w, http.StatusOK, made)
}

// read reads what a run says. said is the program's standard error.
func (p *served) read(body io.Reader, pid int, said io.Writer) (*keeper.Run, *execFlags, error) {
	var j joining
	if err := json.NewDecoder(body).Decode(&j); err != nil {
		return nil, nil, err
	}
	if pid <= 0 {
		return nil, nil, errors.New("the process is in another namespace, and its end is not seen; expected --apart")
	}
	for _, name := range outward {
		if j.Env[name] != os.Getenv(name) {
			return nil, nil, fmt.Errorf("%s is another one than that of the daemon, which sends for all runs; expected the "+
				"same, or --apart, or paceline daemon stop before", name)
		}
	}
	x, cmd := newExecFlags()
	cmd.SetErr(said)
	x.getenv = func(name string) (string, bool) { value, ok := j.Env[name]; return value, ok }
	if err := cmd.Flags().Parse(j.Flags); err != nil {
		return nil, nil, err
	}
	c, err := x.configured(cmd)
	if err != nil {
		return nil, nil, err
	}
	run := x.runOf(c, j.Program, pid)
	run.Temp = j.Temp
	run.Settings = x.settings(j)
	return run, x, nil
}

// settings is equal for two runs that say the same of their servers.
func (x *execFlags) settings(j joining) string {
	var b strings.Builder
	b.WriteString(x.sum + "\n")
	for _, f := range j.Flags {
		switch name, _, _ := strings.Cut(f, "="); name {
		case "--weight", "--head-start", "--quiet", "--summary", "--sent", "--awaited", "--log-level", "--max-wait",
			"--capture", "--allow-local":
		default:
			fmt.Fprintf(&b, "%q\n", f)
		}
	}
	for _, name := range x.hidden {
		fmt.Fprintf(&b, "%q\n", j.Env[name])
	}
	return b.String()
}

// inExec turns an error about a field into one about a flag.
func inExec(err error) error {
	if c, ok := errors.AsType[*keeper.ConflictError](err); ok && proxyFields[c.Field] != "" {
		c.Field = "--" + proxyFields[c.Field]
	}
	return inFlags(err)
}

// discard is standard error that is closed.
type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }
func (discard) Close() error                { return nil }
