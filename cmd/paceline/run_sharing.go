package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/paceline-go/paceline/fairshare"
	"github.com/paceline-go/paceline/internal/app/run"
	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/sharestore"
	"github.com/paceline-go/paceline/internal/text"
)

// sharingFlags are for shared limits: with strangers, or through a store with the user's other
// processes.
type sharingFlags struct {
	kind    string
	sharers float64
	use     float64
	ramp    time.Duration
	store   storeFlags
}

func (f *sharingFlags) add(p *pflag.FlagSet) {
	p.StringVar(&f.kind, "strangers", "",
		"strangers use the same limits: take a fair share, by the answers. =bucket, =fixed (windows) or =rolling names "+
			"the way in which the server counts, if its answers have no reset")
	p.Lookup("strangers").NoOptDefVal = "auto"
	f.store.Add(p, ". With --strangers, a number: the shares to take")
	f.store.AddPart(p)
	p.Float64Var(&f.sharers, "sharers", 0,
		"with --strangers: the number of users, if some may be greedy. The run then keeps its part of that number "+
			"(default: all are trusted)")
	partVar(p, &f.use, "use", useUsage)
	p.DurationVar(&f.ramp, "ramp", 0, rampUsage)
}

// checkUse finds limits of which no part can be used.
func (f *sharingFlags) checkUse(c *run.Config) error {
	flag := "--use"
	if f.ramp != 0 {
		flag = "--ramp"
	}
	switch {
	case f.ramp < 0:
		return fmt.Errorf("--ramp %v, expected 0s or more", f.ramp)
	case (f.use == 0 || f.use == 1) && f.ramp == 0:
		return nil
	case c.Auto != nil:
		return fmt.Errorf("%s with --limit auto, which finds its own part; expected a limit that is known", flag)
	case c.Strangers != nil:
		return fmt.Errorf("%s with --strangers, which finds its own part; expected one of the two", flag)
	}
	return nil
}

// ceiling describes the limit behind percentages.
func (f *sharingFlags) ceiling() string {
	if f.kind != "" {
		return "what all share"
	}
	return "the limit"
}

// weight is the run's number of shares in a quota that strangers use, too: --share with
// --strangers. isNumber is false if --share names a store.
func (f *sharingFlags) weight() (w float64, isNumber bool) {
	if f.store.Address == "" {
		return 1, true
	}
	w, err := strconv.ParseFloat(f.store.Address, 64)
	return w, err == nil
}

// config configures the sharing of the limits.
func (f *sharingFlags) config(cmd *cobra.Command, c *run.Config) (err error) {
	if c.Strangers, err = f.sharing(cmd, c.Limits, c.Auto != nil); err != nil {
		return err
	}
	if err := f.checkUse(c); err != nil {
		return err
	}
	c.Use, c.Ramp = f.use, f.ramp
	if c.Auto != nil && c.Strangers != nil { // --limit auto has a law of its own for strangers
		c.Auto.Weight, c.Auto.Sharers, c.Auto.Strangers = c.Strangers.Weight, c.Strangers.Sharers, true
		c.Strangers = nil
	}
	return nil
}

// sharing is nil if the run shares no limit.
func (f *sharingFlags) sharing(cmd *cobra.Command, limits []format.Rate, auto bool) (*run.Sharing, error) {
	weight, isNumber := f.weight()
	if f.kind == "" {
		if cmd.Flag("share").Changed && isNumber {
			return nil, fmt.Errorf("--share %s is for limits that others use, too: it needs --strangers; expected that, or %s",
				f.store.Address, storeForms)
		}
		if cmd.Flag("sharers").Changed {
			return nil, errors.New("--sharers is for limits that others use, too: it needs --strangers")
		}
		return nil, suits(&f.store, cmd, limits, auto)
	}
	kind, known := countingKinds[f.kind]
	switch {
	case !known:
		return nil, fmt.Errorf("--strangers=%s, expected %s, or nothing", f.kind,
			strings.Join(slices.Sorted(maps.Keys(countingKinds)), ", "))
	case len(limits) == 0 && !auto:
		return nil, errors.New("--strangers with --limit none: a share of what? expected a limit")
	case auto && kind != fairshare.UnknownKind:
		return nil, fmt.Errorf("--strangers=%s with --limit auto, which finds out how the server counts; expected --strangers", f.kind)
	case !isNumber && isStoreAddress(f.store.Address):
		return nil, errors.New("--strangers with a store to --share by: what strangers use is in no store; expected one of " +
			"the two")
	case !isNumber || !(weight > 0):
		return nil, fmt.Errorf("--share %v, expected a number above 0", f.store.Address)
	case !(f.sharers >= 0):
		return nil, fmt.Errorf("--sharers %v, expected how many share the limits", f.sharers)
	}
	for _, flag := range []string{"share-name", "share-fallback", "share-weight", "share-least"} {
		if cmd.Flag(flag).Changed {
			return nil, fmt.Errorf("--%s with --strangers: it is of a store to --share by; expected one of the two", flag)
		}
	}
	for _, flag := range []string{"latency-max", "rejects-free"} {
		if cmd.Flag(flag).Changed {
			return nil, fmt.Errorf("--%s with --strangers: a share is found by answers, not by when requests arrive", flag)
		}
	}
	return &run.Sharing{Kind: kind, Weight: weight, Sharers: f.sharers}, nil
}

// plan returns the plan of a dry run, with the first wait that a store requires.
func (f *runFlags) plan(r *run.Run, c *run.Config) run.Plan {
	p := f.llm.plan(r)
	f.countingNotes(&p, c)
	if note := f.llm.ownLimits(); note != "" {
		p.Notes = append(p.Notes, note)
	}
	if c.Every > 0 {
		p.Notes = append(p.Notes, roundsNote(&p, c.Every))
	}
	if note := f.upstream.note(); note != "" {
		p.Notes = append(p.Notes, note)
	}
	if c.Auto != nil && len(c.Limits)+len(c.Resources) > 0 {
		p.Notes = append(p.Notes, "a tighter limit is found out (--limit auto)")
	}
	longest := time.Duration(0)
	for _, l := range c.Limits {
		longest = max(longest, time.Duration(float64(l.Most())/l.Speed()*float64(time.Second)))
	}
	if isStoreAddress(f.sharing.store.Address) && longest > 0 {
		p.Notes = append(p.Notes,
			fmt.Sprintf("a store that does not have these limits yet lets nothing go for 7 s and %s first, since nobody can "+
				"tell it from one that has lost them (--share). If no process has sent anything for so long, "+
				"paceline share new STORE %s lets the limits begin at once", text.Span(longest), text.Sanitize(cmp.Or(f.sharing.store.Name, sharestore.DefaultName))))
	}
	return p
}
