package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/paceline-go/paceline/backlog"
	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/run"
	"github.com/paceline-go/paceline/internal/app/run/sending"
	"github.com/paceline-go/paceline/internal/app/work"
	"github.com/paceline-go/paceline/internal/text"
)

// defaultBacklog is the name of a backlog if none is given.
const defaultBacklog = "default"

// backlogFlags name a backlog.
type backlogFlags struct {
	store, name string
	any         bool // also a backlog of another program
}

func (f *backlogFlags) add(p *pflag.FlagSet) {
	p.StringVar(&f.store, "backlog", "", "a store with a list of requests that many processes send together: sqlite:FILE on "+
		"one machine, or postgres://USER@HOST/NAME")
	p.StringVar(&f.name, "backlog-name", defaultBacklog, "name of the backlog in the store")
}

// check refuses flags that do not go with a backlog.
func (f *backlogFlags) check(cmd *cobra.Command) error {
	if f.store == "" {
		if cmd.Flag("backlog-name").Changed {
			return errors.New("--backlog-name without --backlog, expected sqlite:FILE or postgres://…")
		}
		return nil
	}
	return refuses(cmd, notWithBacklog, "--backlog")
}

// givenOf are the given flags of some names.
func givenOf(cmd *cobra.Command, names string) (all []string) {
	for name := range strings.FieldsSeq(names) {
		if isGiven(cmd, name) {
			all = append(all, "--"+name)
		}
	}
	return all
}

// isGiven reports whether a flag is on the command line. It is not if the verb does not have it.
func isGiven(cmd *cobra.Command, name string) bool {
	flag := cmd.Flag(name)
	return flag != nil && flag.Changed
}

// refusals are flags that do not go with something, and why.
type refusals []struct{ flags, why string }

func refuses(cmd *cobra.Command, all refusals, with string) error {
	for _, r := range all {
		if flags := givenOf(cmd, r.flags); len(flags) > 0 {
			return fmt.Errorf("%s with %s: %s", flags[0], with, r.why)
		}
	}
	return nil
}

// notWithBacklog are the flags of run that do not go with --backlog.
var notWithBacklog = refusals{
	{"ordered", "results of a backlog are in the order of the input anyway"},
	{"decay", "a backlog sends by priority and age; expected --ttl, which ends what is stale"},
	{"out-dir max-file", "answers are kept in the store, and not in files; expected --out"},
	{"via enqueued poll", "a batch of a provider is of one process"},
	{"upstream", "the limits of an upstream are of one process"},
	{"every rounds", "a backlog has one result for each id"},
	{"next next-while max-pages", "the next page is known only to the process that read the one before"},
	{"per-second", "a limit that lets a large request go alone cannot be shared"},
	{"retry-dead", "expected paceline backlog retry-dead"},
	{"strangers sharers use ramp recent", "the limits are shared by a store"},
	{"latency-max", "what a promise of latencies gains cannot be shared"},
	{"nonce-unit nonce-gap nonce-status", "nonces rise in the order of one process"},
	{"sync trust-clock", "it is of the journal of a run, and a backlog needs none"},
	{"report", "it has the results of one process alone"},
	{"append", "a backlog knows its own requests"},
	{"same-errors", "a wrong address is found by the first answers of one run, and a backlog may have many"},
}

// notAtWork are the flags of run that are of the input or of the results.
var notAtWork = refusals{
	{"url method body id no-header curl input-format skip-invalid prompt-column model system json-schema max-tokens format dry-run by queue",
		"the requests are in the backlog; expected it with paceline enqueue"},
	{"out dead errors select out-format", "the results are in the backlog; expected paceline backlog results"},
}

// hide hides flags from help.
func hide(c *cobra.Command, names string) {
	for name := range strings.FieldsSeq(names) {
		if flag := c.Flag(name); flag != nil {
			flag.Hidden = true
		}
	}
}

// opened is an open backlog.
type opened struct {
	*backlog.Backlog
	store backlog.Store
	shown string // the address without a password
}

// open opens the backlog. With existing, neither a store nor a backlog is made.
func (f *backlogFlags) open(ctx context.Context, existing bool) (*opened, error) {
	s, err := openBacklogs(ctx, f.store, existing)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	o := backlog.Options{Format: work.Format, Existing: existing}
	if f.any {
		o.Format = ""
	}
	b, err := backlog.Open(ctx, s, f.name, o)
	if err != nil {
		shown := redactedStore(f.store)
		if errors.Is(err, backlog.ErrNoBacklog) {
			err = fmt.Errorf("%w: %q; paceline backlog ls %s says what is there, and paceline enqueue makes one",
				backlog.ErrNoBacklog, f.name, shown)
		}
		err = fmt.Errorf("%s: %w", shown, err)
		return nil, cli.Exit(cli.ExitConfig, errors.Join(err, s.Close()))
	}
	return &opened{b, s, redactedStore(f.store)}, nil
}

func (o *opened) close() { _ = o.store.Close() }

// shares makes the limits those of all processes: by a file beside a SQLite backlog, by the same database otherwise.
func (f *backlogFlags) shares(of *runFlags) {
	s := &of.sharing.store
	unlimited := slices.Contains(of.limits, "none") && len(of.llm.each) == 0
	if f.store == "" || s.Address != "" || unlimited || slices.Contains(of.limits, "auto") {
		return
	}
	if s.Address = f.store; s.Name == "" {
		s.Name = f.name
	}
	if file, ok := storeFile(f.store); ok {
		s.Address = "sqlite:" + file + ".limits"
	}
}

// agrees notes in a backlog how its workers divide their limits, and what they may spend (0: anything), for later ones.
// It refuses a worker that does so otherwise than one that is there: their limits cannot show it.
func (o *opened) agrees(ctx context.Context, own string, budget sending.Money) error {
	if budget > 0 {
		own += fmt.Sprintf(" and a budget of %v", budget)
	}
	return work.ChangeNote(ctx, o.Backlog, func(note *work.Note) (changed bool, err error) {
		was := note.Limits
		if was == own {
			return false, nil
		}
		note.Limits = own
		switch {
		case budget == 0:
			note.Budget = nil
		case note.Budget == nil:
			note.Budget = &work.Budget{Most: budget}
		default:
			note.Budget.Most = budget
		}
		if was == "" {
			return true, nil
		}
		all, err := o.Workers(ctx)
		if n := len(livingOf(all)); n > 0 && err == nil {
			err = fmt.Errorf("%s here %s, and this one would send %s; expected the same of all. A worker that was killed "+
				"is here for 15s", text.Count(n, "worker sends", "workers send"), text.Sanitize(was), own)
		}
		return true, err
	})
}

// suits reports what of a run's configuration does not go with a backlog.
func (f *backlogFlags) suits(c *run.Config) error {
	switch {
	case f.store == "":
		return nil
	case c.Auto != nil:
		return errors.New("--limit auto with --backlog: a limit that one process finds out is not that of all; expected a limit")
	}
	if what := templateOf(c, "nonce"); what != "" {
		return fmt.Errorf("%s with --backlog: nonces rise in the order of one process", what)
	}
	return nil
}

// templateOf names the first header or parameter in which a run fills something in: "{key} in Authorization". It is empty
// if there is none.
func templateOf(c *run.Config, filled string) string {
	for _, t := range slices.Concat(c.Header, c.Query) {
		if t.Has(filled) {
			return fmt.Sprintf("{%s} in %s", filled, t.Name())
		}
	}
	return ""
}
