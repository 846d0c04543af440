//go:build unix

package keeper

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/paceline-go/paceline/internal/app/daemon"
	"github.com/paceline-go/paceline/internal/app/forward"
	"github.com/paceline-go/paceline/internal/app/proxy"
	"github.com/paceline-go/paceline/observe"
)

// Forever is longer than any program waits: a program's own timeout decides.
const Forever = 365 * 24 * time.Hour

// Keeper is one proxy for the programs of many runs. New makes it. It is safe for concurrent use.
type Keeper struct {
	base proxy.Config

	mu        sync.Mutex
	proxy     *proxy.Proxy // nil: no run has come
	server    *proxy.Server
	upstreams []proxy.Upstream // of all runs that have come
	runs      []*Run           // that have not ended
	number    int              // of the latest run
	turns     []daemon.Turn    // what a user has changed, each with the whole name of what it is for
}

// New returns a Keeper. All but Upstreams and Clients of c holds for every run. If c is Live, more
// than one run may join.
func New(c proxy.Config) *Keeper {
	c.Listen, c.Admin, c.Open, c.TLS = "127.0.0.1:0", proxy.Off, false, nil
	c.Forward, c.Bounds.Stall, c.SentOfClients = proxy.Forward{}, Forever, true
	k := &Keeper{}
	c.Beside.Warn = k.warn
	k.base = c
	return k
}

// warn tells the programs that call a server of another one there.
func (k *Keeper) warn(server, line string) {
	go func() { // of a request, or within Join
		k.mu.Lock()
		defer k.mu.Unlock()
		for _, r := range k.runs {
			if slices.ContainsFunc(r.Upstreams, func(u proxy.Upstream) bool { return u.IsAt(server) }) {
				r.Log.Warn(line)
			}
		}
	}()
}

// Join opens an entrance for a run, and makes its files. The error is a *ConflictError if another run
// has other settings for one of its hosts. Leave ends what Join has begun.
func (k *Keeper) Join(r *Run) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, other := range k.runs {
		if err := conflict(r, other); err != nil {
			return err
		}
	}
	k.number++
	if err := r.begin(k.number); err != nil {
		return err
	}
	upstreams := k.with(r.Upstreams)
	if err := k.applyLocked(append(slices.Clone(k.runs), r), upstreams); err != nil {
		r.client.Sent.Close()
		return err
	}
	k.upstreams, k.runs = upstreams, append(k.runs, r)
	k.proxy.SetIdle(false)
	if err := r.open(k.server); err != nil {
		r.close(context.Background())
		k.partLocked(r)
		return err
	}
	return nil
}

// Leave ends a run: nothing of it is accepted any more, and its files are removed. Until ctx ends it
// waits for answers.
func (k *Keeper) Leave(ctx context.Context, r *Run) Figures {
	k.mu.Lock()
	r.forget()
	k.partLocked(r)
	k.mu.Unlock()
	r.close(ctx)
	return r.figures(k.proxy)
}

func (k *Keeper) partLocked(r *Run) {
	k.runs = slices.DeleteFunc(k.runs, func(o *Run) bool { return o == r })
	k.proxy.SetIdle(len(k.runs) == 0)
	if !k.base.Live {
		return
	}
	if err := k.applyLocked(k.runs, k.upstreams); err != nil {
		k.base.Log.Error("the configuration without a run", "run", r.client.Name, "err", err)
	}
}

// Names are the runs that have not ended.
func (k *Keeper) Names() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := []string{}
	for _, r := range k.runs {
		all = append(all, r.client.Name)
	}
	return all
}

// Proxy is the proxy of all runs; nil: no run has come.
func (k *Keeper) Proxy() *proxy.Proxy {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.proxy
}

// Counts is how long a request may count that is sent now.
func (k *Keeper) Counts() time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.proxy == nil {
		return 0
	}
	return k.proxy.Counts()
}

// Close ends the proxy, with all requests. Every run has left before.
func (k *Keeper) Close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.proxy == nil {
		return nil
	}
	k.server.Stop()
	k.server.Stop()
	return k.server.Wait()
}

// with returns the upstreams with those of a run in place of others for the same hosts. Upstreams
// whose runs have ended stay: what was sent there may still count.
func (k *Keeper) with(next []proxy.Upstream) []proxy.Upstream {
	taken := map[string]bool{}
	for i := range next {
		for _, o := range origins(&next[i]) {
			taken[o] = true
		}
	}
	all := slices.DeleteFunc(slices.Clone(k.upstreams), func(u proxy.Upstream) bool {
		return slices.ContainsFunc(origins(&u), func(o string) bool { return taken[o] })
	})
	return append(all, k.named(next)...)
}

// named gives upstreams names by their addresses: those of a file are one run's own.
func (k *Keeper) named(all []proxy.Upstream) []proxy.Upstream {
	if !k.base.Live { // one run alone: its names are in its state file
		return all
	}
	all = slices.Clone(all)
	times := map[string]int{}
	for i := range all {
		u := &all[i]
		u.Name = origins(u)[0] + strings.TrimSuffix(u.To.EscapedPath(), "/")
		if times[u.Name]++; times[u.Name] > 1 {
			u.Name += "#" + strconv.Itoa(times[u.Name])
		}
	}
	return all
}

// origins are the hosts of an upstream, with their ports where these are not the standard ones. http
// and https of a host are one.
func origins(u *proxy.Upstream) (all []string) {
	for _, x := range u.Servers() {
		host := forward.CanonicalHost(x.To.Hostname())
		if p := x.To.Port(); p != "" && p != standardPorts[x.To.Scheme] {
			host = net.JoinHostPort(host, p)
		}
		all = append(all, host)
	}
	return all
}

var standardPorts = map[string]string{"http": "80", "https": "443"}

// Turn makes a change for all runs: see proxy.Proxy.Turn. It holds until the Keeper ends, for later runs, too.
func (k *Keeper) Turn(t daemon.Turn) (said string, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.proxy == nil:
		return "", errors.New("no program is served yet; expected one by paceline exec")
	case t.Knob == daemon.Pause || t.Knob == daemon.Resume:
		return k.proxy.Turn(t)
	}
	base := k.config(k.runs, k.upstreams)
	c, _ := turned(base, k.turns)
	next, made, said, err := c.Turned(t, &base)
	if err != nil {
		return "", err
	}
	if err := k.proxy.Apply(next); err != nil {
		return "", err
	}
	k.turns = append(k.turns, made)
	return said, nil
}

// turned is a configuration with changes. Those of runs that have ended change nothing. said are the others, in words.
func turned(base proxy.Config, turns []daemon.Turn) (c proxy.Config, said []string) {
	c = base
	for _, t := range turns {
		if next, _, text, err := c.Turned(t, &base); err == nil {
			c, said = next, append(said, text)
		}
	}
	return c, said
}

// Settings are what Turn can change, as it is now.
func (k *Keeper) Settings() (s proxy.Settings) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.proxy != nil {
		s = k.proxy.Settings()
		_, s.Changes = turned(k.config(k.runs, k.upstreams), k.turns)
	}
	return s
}

// Sources are those of the proxy.
func (k *Keeper) Sources() []observe.Source {
	if p := k.Proxy(); p != nil {
		return p.Sources()
	}
	return nil
}

// config is the configuration for runs, without changes by a user.
func (k *Keeper) config(runs []*Run, upstreams []proxy.Upstream) proxy.Config {
	c := k.base
	c.Clients = proxy.Clients{}
	for _, r := range runs {
		c.Clients.List = append(c.Clients.List, r.client)
	}
	c.Upstreams = slices.Clone(upstreams)
	for i := range c.Upstreams { // a whole URL names its upstream; paths are for base URLs
		c.Upstreams[i].Host, c.Upstreams[i].Path = "", fmt.Sprint("/", i)
	}
	return c
}

// applyLocked makes the proxy one for these runs.
func (k *Keeper) applyLocked(runs []*Run, upstreams []proxy.Upstream) (err error) {
	c, _ := turned(k.config(runs, upstreams), k.turns)
	if k.proxy != nil {
		return k.proxy.Apply(c)
	}
	k.proxy, err = proxy.New(c)
	if unread(err) && k.base.Live { // all that may have been sent counts, as the file is gone then
		k.base.Log.Error("the state file is put aside", "to", c.State+aside, "err", err)
		if moved := os.Rename(c.State, c.State+aside); moved != nil {
			return errors.Join(err, moved)
		}
		k.proxy, err = proxy.New(c)
	}
	if err == nil {
		k.server = k.proxy.Start(nowhere{make(chan struct{})}, nil)
	}
	return err
}

// aside is the end of the name of a state file that could not be read.
const aside = ".unread"

// unread reports whether a proxy did not begin because it cannot read its state file. A file that another
// process has is none: to put it aside would take that one's away.
func unread(err error) bool {
	e, ok := errors.AsType[*proxy.ConfigError](err)
	_, used := errors.AsType[*proxy.InUseError](err)
	return ok && e.Field == "State" && !used
}

// nowhere is a listener that nobody reaches: a program comes by the forward proxy alone.
type nowhere struct{ over chan struct{} }

func (n nowhere) Accept() (net.Conn, error) { <-n.over; return nil, net.ErrClosed }
func (n nowhere) Close() error              { close(n.over); return nil }
func (nowhere) Addr() net.Addr              { return &net.TCPAddr{} }
