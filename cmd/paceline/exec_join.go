//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/daemon"
	"github.com/paceline-go/paceline/internal/app/forward"
	"github.com/paceline-go/paceline/internal/app/launch"
	"github.com/paceline-go/paceline/internal/app/proxy"
)

// joinsIn is how long a run waits for its daemon, which may have to read its journal.
const joinsIn = time.Minute

// joining is what a run sends to its daemon. Secrets go in it alone: others can read the arguments of
// a process.
type joining struct {
	Program string            `json:"program"`
	Flags   []string          `json:"flags"`
	Temp    string            `json:"temp"`
	Env     map[string]string `json:"env"`
}

// outward are the variables that say how a process reaches servers. The daemon reads its own.
var outward = []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY",
	"no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR"}

// daemonEnvironment are all variables that a daemon gets which a run starts.
var daemonEnvironment = append([]string{"HOME", "TMPDIR", "TZ", daemon.RuntimeDir, "XDG_RUNTIME_DIR", "XDG_STATE_HOME"}, outward...)

// alone reports whether a run needs a proxy of its own: what it says holds for a whole proxy.
func (x *execFlags) alone(c *proxy.Config) bool {
	usual, own := daemonBounds(), c.Bounds
	return x.apart || c.FinalOnly || c.State != "" || c.Share.Store != "" ||
		own.Body != usual.Body || own.Kept != usual.Kept || own.KeptInAll != usual.KeptInAll || own.Frozen != usual.Frozen ||
		slices.ContainsFunc(c.Upstreams, func(u proxy.Upstream) bool { return u.Batches.Folder != "" })
}

// join joins the daemon of this user, or starts it.
func (x *execFlags) join(cmd *cobra.Command, self, program string) (made launch.Made, err error) {
	ctx, cancel := context.WithTimeoutCause(cmd.Context(), joinsIn, errors.New("the daemon of this user does not take the run"))
	defer cancel()
	if x.sent != "" { // of the file of --config, perhaps
		if err := cmd.Flags().Set("sent", x.sent); err != nil {
			return made, err
		}
	}
	for _, name := range []string{"config", "ca-file", "summary", "sent"} { // the daemon is in another folder
		if f := cmd.Flag(name); f.Changed && f.Value.String() != "" {
			path, err := filepath.Abs(f.Value.String())
			if err == nil {
				err = f.Value.Set(path)
			}
			if err != nil {
				return made, err
			}
		}
	}
	j := joining{Program: filepath.Base(program), Flags: given(cmd.Flags()), Env: map[string]string{}}
	if j.Temp, err = filepath.Abs(os.TempDir()); err != nil {
		return made, err
	}
	names := slices.Concat(x.hidden, outward)
	for _, v := range forward.Variables {
		names = append(names, v.Name)
	}
	for _, name := range names {
		if value, ok := os.LookupEnv(name); ok {
			j.Env[name] = value
		}
	}
	body, err := json.Marshal(j)
	if err != nil {
		return made, err
	}
	for {
		made, err = joinOnce(ctx, body)
		refused, _ := errors.AsType[*daemon.RefusalError](err)
		switch {
		case errors.Is(err, daemon.ErrNone):
			if err := startDaemon(self); err != nil {
				return made, err
			}
			continue
		case refused != nil && refused.Status == http.StatusServiceUnavailable, endsNow(err):
		default:
			return made, err
		}
		select {
		case <-ctx.Done():
			return made, context.Cause(ctx)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// endsNow reports whether an error is that of a daemon which ends just now.
func endsNow(err error) bool {
	for _, one := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE, syscall.ECONNREFUSED, os.ErrNotExist} {
		if errors.Is(err, one) {
			return true
		}
	}
	return false
}

func joinOnce(ctx context.Context, body []byte) (made launch.Made, err error) {
	client, err := daemon.DialWith(ctx, os.Stderr)
	if err != nil {
		return made, err
	}
	defer client.CloseIdleConnections()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, daemon.Base+"/v1/runs", bytes.NewReader(body))
	if err != nil {
		return made, err
	}
	a, err := client.Do(r)
	if err != nil {
		return made, err
	}
	defer a.Body.Close()
	if err := daemon.Refusal(a); err != nil {
		return made, err
	}
	return made, json.NewDecoder(a.Body).Decode(&made)
}

// startDaemon starts the daemon of this user, with an environment that has nothing of the program's.
func startDaemon(self string) error {
	place, err := daemon.Find()
	if err != nil {
		return err
	}
	log, err := place.OpenLog()
	if err != nil {
		return err
	}
	defer log.Close()
	p := launch.Process{Line: []string{self, "daemon", "--for-runs"}, Stderr: log}
	for _, name := range daemonEnvironment {
		if value, ok := os.LookupEnv(name); ok {
			p.Env = append(p.Env, name+"="+value)
		}
	}
	if _, err := launch.Start(p); err != nil {
		return cli.Exit(cli.ExitConfig, fmt.Errorf("the daemon of this user: %w; its log is %s", err, place.Log()))
	}
	return nil
}
