package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/paceline-go/paceline/internal/batch"
	"github.com/paceline-go/paceline/throttle"
)

// sharingFlags are for limits that strangers use, too.
type sharingFlags struct {
	kind           string
	share, sharers float64
}

// sharedKinds are the words for how a server counts.
var sharedKinds = map[string]throttle.Kind{
	"auto": throttle.UnknownKind, "bucket": throttle.TokenBucket, "fixed": throttle.FixedWindow, "rolling": throttle.RollingWindow,
}

func (f *sharingFlags) add(p *pflag.FlagSet) {
	p.StringVar(&f.kind, "strangers", "", "others use the same limits and know nothing of this run: take a fair share, by what answers say; =bucket, =fixed (windows) or =rolling says how the server counts, where it tells no reset")
	p.Lookup("strangers").NoOptDefVal = "auto"
	p.Float64Var(&f.share, "share", 1, "with --strangers: how many shares to take")
	p.Float64Var(&f.sharers, "sharers", 0, "with --strangers: among how many the limits are meant to be shared, where some of them may be greedy: its part is kept to (default: all are trusted)")
}

// ceiling is what percentages are of.
func (f *sharingFlags) ceiling() string {
	if f.kind != "" {
		return "what all share"
	}
	return "the ceiling"
}

// sharing is nil where the limits are this run's alone.
func (f *sharingFlags) sharing(cmd *cobra.Command, limits []batch.Rate) (*batch.Sharing, error) {
	if f.kind == "" {
		for _, flag := range []string{"share", "sharers"} {
			if cmd.Flag(flag).Changed {
				return nil, fmt.Errorf("--%s is for limits that others use, too: it needs --strangers", flag)
			}
		}
		return nil, nil
	}
	kind, known := sharedKinds[f.kind]
	switch {
	case !known:
		return nil, fmt.Errorf("--strangers=%s, expected %s, or nothing", f.kind, strings.Join(slices.Sorted(maps.Keys(sharedKinds)), ", "))
	case len(limits) == 0:
		return nil, errors.New("--strangers with --limit none: a share of what? expected a limit")
	case !(f.share > 0):
		return nil, fmt.Errorf("--share %v, expected a number above 0", f.share)
	case !(f.sharers >= 0):
		return nil, fmt.Errorf("--sharers %v, expected how many share the limits", f.sharers)
	}
	for _, flag := range []string{"latency-max", "rejects-free"} {
		if cmd.Flag(flag).Changed {
			return nil, fmt.Errorf("--%s with --strangers: a share is found by answers, not by when requests arrive", flag)
		}
	}
	return &batch.Sharing{Kind: kind, Weight: f.share, Sharers: f.sharers}, nil
}
