package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/proxy"
	"github.com/paceline-go/paceline/internal/app/proxy/config"
	"github.com/paceline-go/paceline/internal/app/run"
	"github.com/paceline-go/paceline/internal/app/run/output"
	"github.com/paceline-go/paceline/internal/app/run/sending"
	"github.com/paceline-go/paceline/internal/text/rate"
	"github.com/paceline-go/paceline/provider"
)

// upstreamFlags have a run send by an upstream of a proxy's file: by its targets, keys and limits.
type upstreamFlags struct {
	name string // FILE or FILE#NAME
	file config.File
	of   *proxy.Upstream // in file; nil: there is none

	partly bool // servers left out some limits

	proxy  *proxy.Proxy
	shared func() error
	end    context.CancelFunc // of waits
}

// notWithUpstream are the flags of run that do not go with --upstream.
var notWithUpstream = refusals{
	{"limit preset rpm tpm itpm otpm limit-model rule per-second count charge", fileHas},
	{"share share-name share-fallback share-weight share-least strangers sharers", fileHas},
	{"rejects-free latency-max use ramp", fileHas},
	{"key-env organization key-host ban-status nonce-unit nonce-gap nonce-status", fileHas},
	{"auth-command auth-every oauth-token-url oauth-client-id-env oauth-client-secret-env", fileHas},
	{"oauth-scopes oauth-param", fileHas},
	{"provider max-outage base-url", fileHas},
	{"redirects", "a redirect leads to another server"},
	{"via enqueued poll", "a batch belongs to one account"},
}

const fileHas = "the file says it; expected one of the two"

// attemptTime is longer than a run lasts: the upstream bounds its attempts, and waits are no part of them.
const attemptTime = 30 * 24 * time.Hour

func (f *upstreamFlags) add(p *pflag.FlagSet) {
	p.StringVar(&f.name, "upstream", "",
		"FILE or FILE#NAME: send by that upstream of a file of paceline proxy, so to its targets, with its keys and limits")
}

// read reads the file and finds the upstream. It returns why flags do not go together.
func (f *upstreamFlags) read(cmd *cobra.Command, of *runFlags) error {
	if f.name == "" {
		return nil
	}
	if err := refuses(cmd, notWithUpstream, "--upstream"); err != nil {
		return cli.Usage(err)
	}
	path, wanted, _ := strings.Cut(f.name, "#")
	var err error
	if f.file, err = loadProxy(path, os.LookupEnv); err != nil {
		return err
	}
	var names []string
	all := f.file.Config.Upstreams
	for i := range all {
		names = append(names, all[i].Name)
		if all[i].Name == wanted || wanted == "" && len(all) == 1 {
			f.of = &all[i]
		}
	}
	if f.of == nil {
		return cli.Usage(fmt.Errorf("--upstream %s, expected %s#NAME with one of %s", f.name, path,
			strings.Join(names, ", ")))
	}
	if to := f.of.Servers()[0].To; of.llm.baseURL == "" { // of batch files, which name no host
		of.llm.baseURL = (&url.URL{Scheme: to.Scheme, Host: to.Host}).String()
	}
	return nil
}

// open makes the way to the upstream, which is the Base of the run.
func (f *upstreamFlags) open(cmd *cobra.Command, c *run.Config) (err error) {
	if f.of == nil {
		return nil
	}
	c.Servers, c.Unknown = f.servers(cmd)
	if cmd.Flag("dry-run").Changed {
		return nil
	}
	u := *f.of
	u.Batches = proxy.Batches{}
	if cmd.Flag("timeout").Changed {
		u.AnswerTimeout = c.Timeout
	}
	p := f.file.Config
	p.Listen, p.Admin, p.Open, p.TLS = "127.0.0.1:0", proxy.Off, false, nil
	p.Forward, p.Clients = proxy.Forward{}, proxy.Clients{}
	p.Upstreams, p.Log, p.State, p.Begins = []proxy.Upstream{u}, c.Log, "", sending.Begins
	switch {
	case p.Share.Store != "": // the store has them
	case c.OutDir != "":
		p.State = output.IndexOf(c.OutDir) + sentName
	case c.Out != "-":
		p.State = c.Out + sentName
	}
	if err := openProxyShare(cmd.Context(), &p); err != nil {
		return err
	}
	f.shared = p.Shared.Close
	if f.proxy, err = proxy.New(p); err != nil {
		return inUse(cli.Exit(cli.ExitConfig, f.file.Locate(err)))
	}
	waits, end := context.WithCancel(cmd.Context())
	if !c.Until.IsZero() {
		waits, end = context.WithDeadline(cmd.Context(), c.Until)
	}
	f.end = end
	c.Base, c.Timeout, c.Hidden = f.proxy.Line(u.Name, "run", waits), attemptTime, u.Secrets()
	c.Beside = f.proxy.Sources()
	return nil
}

// servers are the limits of the upstream's servers, as far as they hold for all requests. It returns none if one of the
// servers has no limit, and unknown if its limits are to be found out.
func (f *upstreamFlags) servers(cmd *cobra.Command) (all []rate.Server, unknown bool) {
	f.partly = false
	for i, u := range f.of.Servers() {
		if len(f.of.Targets) > 0 && f.of.Targets[i].After == proxy.Never {
			continue
		}
		s := rate.Server{}
		if len(f.of.Targets) > 0 {
			s.Name = u.Name
		}
		add := func(l rate.Limit, scope provider.Scope, only bool) {
			switch {
			case only || scope == provider.Resource || scope == provider.Route:
				f.partly = true
			case scope == provider.IP || scope == provider.All:
				s.Limits = append(s.Limits, rate.Repeated{Limit: l.Part(f.of.Use), Times: 1})
			default:
				s.Limits = append(s.Limits, rate.Repeated{Limit: l.Part(f.of.Use), Times: max(len(u.Keys), 1)})
			}
		}
		for _, l := range u.Limits {
			add(l.Limit, l.Scope, l.Only != "")
		}
		preset, _ := provider.LookupPreset(u.Preset)
		for _, p := range preset.Plain().Policies {
			if knows(p.Unit) && !p.Unpublished() && p.Rule != provider.Concurrency {
				add(new(minuteFlags).published(cmd, p), p.Scope, false)
			}
		}
		unknown = unknown || u.Auto
		f.partly = f.partly || slices.ContainsFunc(u.Keys, func(k proxy.Key) bool { return len(k.Limits) > 0 })
		if all = append(all, s); len(s.Limits) == 0 {
			return nil, unknown
		}
	}
	return all, unknown
}

// note is what the plan leaves out; empty: nothing.
func (f *upstreamFlags) note() string {
	if !f.partly {
		return ""
	}
	return "limits of one key, model, route or resource in the file are not in the plan: they may make it longer"
}

// sentName ends the name of the file with what was sent and still counts, beside that of the results.
const sentName = ".sent"

// stopWaiting ends the waits of requests. Those in flight go on.
func (f *upstreamFlags) stopWaiting() {
	if f.end != nil {
		f.end()
	}
}

func (f *upstreamFlags) close() {
	f.stopWaiting()
	if f.proxy != nil {
		f.proxy.Close()
	}
	if f.shared != nil {
		_ = f.shared()
	}
}
