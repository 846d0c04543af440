package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/proxy"
	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/text/rate"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/tokens"
)

// perMinute adds the limits of --rpm and the flags like it to an upstream. As in run, they replace
// the limits of --preset for the same unit. A model with limits of its own has no other limits. So
// the upstream cannot name the preset any more, and its remaining limits are added one by one.
func (f *proxyFlags) perMinute(cmd *cobra.Command, u *proxy.Upstream) error {
	all, _ := f.minuteFlags.limits()
	models, _, err := f.ofModels()
	if err != nil {
		return err
	}
	all = append(all, models...)
	if len(all) == 0 && !cmd.Flag("rule").Changed {
		return nil
	}
	for _, l := range all {
		u.Limits = append(u.Limits, proxy.Limit{Limit: f.produced(u, l)})
	}
	if err := f.writeOut(cmd, u); err != nil {
		return err
	}
	if !f.u.PerSecond {
		return nil
	}
	u.PerSecond = false
	found := false
	for _, minute := range u.Limits {
		if second, ok := format.PerSecond(minute.Limit); ok {
			u.Limits, found = append(u.Limits, proxy.Limit{Limit: second, Scope: minute.Scope, Only: minute.Only}), true
		}
	}
	if !found {
		return cli.Usage(errors.New("--per-second, expected limits per minute that are buckets: --preset, --rpm, --tpm, " +
			"and not --rule rolling"))
	}
	return nil
}

// writeOut replaces the preset of an upstream by its limits that the flags do not replace.
func (f *proxyFlags) writeOut(cmd *cobra.Command, u *proxy.Upstream) error {
	preset, ok := provider.LookupPreset(u.Preset)
	if !ok {
		return nil
	}
	who, _ := provider.Publisher(u.Preset)
	if f.u.PerSecond && !who.PerSecond {
		return cli.Usage(fmt.Errorf("--per-second with --preset %s: %s does not say that limits per minute also hold per "+
			"second", f.u.Preset, who.Title))
	}
	if u.Provider == nil {
		u.Provider, _ = provider.Lookup(who.Name)
	}
	u.Preset = ""
	for _, p := range preset.Plain().Policies {
		switch {
		case f.replaces(p), p.Unpublished():
			continue
		case p.Rule == provider.Concurrency:
			if n := int(p.Limit); u.InFlight == 0 || n < u.InFlight {
				u.InFlight = n
			}
			continue
		case !knows(p.Unit):
			return cli.Usage(fmt.Errorf("--preset %s limits %s, which nobody counts here; expected --limit without --preset",
				f.u.Preset, p.Unit))
		}
		scope := p.Scope
		if scope == provider.All {
			scope = provider.IP
		}
		u.Limits = append(u.Limits, proxy.Limit{Limit: f.produced(u, f.published(cmd, p)), Scope: scope})
	}
	return nil
}

// produced counts output as the server produces it, if the provider documents that.
func (f *proxyFlags) produced(u *proxy.Upstream, l rate.Limit) rate.Limit {
	row, _ := provider.LookupProvider(u.Seller())
	l.Produced = l.Bucket && l.Unit == limit.Output && row.Tokens == tokens.Produced.String()
	return l
}
