package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/screen"
	"github.com/paceline-go/paceline/internal/text/rate"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/ratetest/service"
)

const serveProviderLong = `Serve an API with its published limits: enforced by the documented kind of window, for each key, address, model or route as
documented, and told in the provider's own header fields, status codes and bodies of errors. What it serves is made up:
any method of any path will do. Some providers have endpoints of their APIs, which ask for a key. A key is whatever the
usual header fields hold; a request without one counts as its address.

%s
Every path of its own is a route of its own, unless the provider says otherwise. With --scale 10 its clock runs ten times
faster than ours; all that it says of time is by its clock.

Ctrl-C ends it: requests under way are answered, then a report goes to stdout: of each limit and who shares it the fullest
window, as an independent judge sees it who reads the lines that --log writes. It fails if one decision was against the
rule. A second Ctrl-C aborts.`

type serveProvider struct {
	serving
	latencies
	about  service.Info
	config service.Config
	limits []string
}

// newServeProviders returns a verb for each provider.
func newServeProviders() (all []*cobra.Command) {
	for _, p := range service.All() {
		all = append(all, newServeProvider(p))
	}
	return all
}

func newServeProvider(p service.Info) *cobra.Command {
	s := serveProvider{about: p, config: service.Config{Provider: p.Name}}
	c := &cobra.Command{
		Use:     p.Name,
		GroupID: groupProviders,
		Short:   p.About,
		Long:    fmt.Sprintf(serveProviderLong, s.sets()),
		Example: "  paceline serve " + p.Name + "\n  paceline serve " + p.Name + " --limit 20/m --log requests.jsonl\n" +
			"  paceline explain " + explainedAs(p.Name) + "http://127.0.0.1:9999/any/path",
	}
	c.RunE = s.until(s.run)
	s.serving.flags(c, "text", "json")
	f := c.Flags()
	f.StringVar(&s.config.Preset, "preset", p.Presets[0], "which of its limits: "+strings.Join(p.Presets, ", "))
	f.StringArrayVar(&s.limits, "limit", nil,
		"a limit of your own, such as 20/m: N/U for the first, NAME=N/U for any, NAME=N for one of requests at once; "+
			rate.Forms+"; repeatable")
	f.Float64Var(&s.config.Scale, "scale", 1, "how many times faster its clock runs than ours")
	s.latencies.flags(f, "constant:0s", ", by its clock")
	f.Uint64Var(&s.config.Seed, "seed", 1, "seed of the latencies")
	s.clockFlag(c)
	return c
}

// sets describes the limits of each preset of a provider.
func (s *serveProvider) sets() string {
	var b strings.Builder
	for i, name := range s.about.Presets {
		x, err := service.New(service.Config{Provider: s.about.Name, Preset: name})
		if err != nil {
			panic(err) // only a mistake in the table can cause it
		}
		if i == 0 {
			fmt.Fprintf(&b, "Its limits (--preset %s):\n\n", name)
		} else {
			fmt.Fprintf(&b, "--preset %s:\n\n", name)
		}
		for _, p := range x.Limits() {
			fmt.Fprintf(&b, "  %-12s %s\n", p.Name, limitInWords(p))
		}
		b.WriteByte('\n')
	}
	if s.about.Assumed != "" {
		fmt.Fprintf(&b, "Not documented, and assumed: %s.\n", s.about.Assumed)
	}
	return b.String()
}

var ruleWords = map[provider.Rule]string{
	provider.Rolling: "in any window", provider.Calendar: "in windows of the clock",
	provider.Anchored: "in windows that begin with a request", provider.Bucket: "a bucket",
}

func limitInWords(p provider.Policy) string {
	if p.Rule == provider.Concurrency {
		return fmt.Sprintf("%d requests at once, of %s", p.Limit, p.Scope.Info().One)
	}
	burst := ""
	if p.Burst > 0 && p.Rule == provider.Bucket {
		burst = fmt.Sprintf(" that holds %d", p.Burst)
	}
	return fmt.Sprintf("%d %s per %s, %s%s, of %s", p.Limit, p.Unit, plain(p.Window), ruleWords[p.Rule], burst,
		p.Scope.Info().One)
}

// plain writes 1h for 1h0m0s.
func plain(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}

func (s *serveProvider) run(ctx context.Context) error {
	if err := s.check(); err != nil {
		return cli.Usage(err)
	}
	return attend(ctx, &s.serving, func(log io.Writer) (*service.Server, error) {
		s.config.LogTo = log
		return service.New(s.config)
	}, func(x *service.Server, url string) greeting {
		var limits []string
		for _, p := range x.Limits() {
			limits = append(limits, p.Name+": "+limitInWords(p))
		}
		return greeting{fmt.Sprintf("serving %s/ as %s: %s", url, s.about.Name, strings.Join(limits, "; ")),
			s.try(url, x.Limits())}
	}, func(x *service.Server) error {
		r := x.Report()
		return errors.Join(s.write(r), verdicts(r.Wrong, r.FirstWrong))
	})
}

func (s *serveProvider) check() (err error) {
	c := &s.config
	switch {
	case !slices.Contains(s.about.Presets, c.Preset):
		return fmt.Errorf("--preset %q: want %s", c.Preset, strings.Join(s.about.Presets, ", "))
	case !(c.Scale > 0 && c.Scale <= 1000):
		return fmt.Errorf("--scale %v: want more than 0 and at most 1000", c.Scale)
	}
	if err := s.checkClock(); err != nil {
		return err
	}
	c.VirtualClients = s.clients
	x, err := service.New(service.Config{Provider: c.Provider, Preset: c.Preset})
	if err != nil {
		return err
	}
	known := x.Limits()
	for _, v := range s.limits {
		p, err := parseLimit(v, known)
		if err != nil {
			return fmt.Errorf("--limit: %w", err)
		}
		c.Limits = append(c.Limits, p)
	}
	c.Before, c.After, err = s.laws()
	return err
}

// parseLimit reads a limit that replaces one of the known ones. If that is a bucket, its size
// becomes the new limit.
func parseLimit(v string, known []provider.Policy) (provider.Policy, error) {
	p := provider.Policy{Name: known[0].Name}
	text := v
	if name, rest, ok := strings.Cut(v, "="); ok {
		p.Name, text = name, rest
	}
	i := slices.IndexFunc(known, func(k provider.Policy) bool { return k.Name == p.Name })
	if i < 0 {
		var names []string
		for _, k := range known {
			names = append(names, strconv.Quote(k.Name))
		}
		return p, fmt.Errorf("%q: no limit %q, expected one of %s", v, p.Name, strings.Join(names, ", "))
	}
	var err error
	if known[i].Rule == provider.Concurrency {
		if p.Limit, err = strconv.ParseInt(text, 10, 64); err != nil || p.Limit < 1 || p.Limit > provider.MaxCount {
			return p, fmt.Errorf("%q: %q is a limit of requests at once, expected a whole number", v, p.Name)
		}
		return p, nil
	}
	n, err := rate.Parse(text)
	p.Limit, p.Window = n.N, n.Per
	if err == nil && p.Window > provider.MaxWait {
		err = fmt.Errorf("%q: the window is longer than %v", v, provider.MaxWait)
	}
	return p, err
}

func (s *serveProvider) write(r service.Report) error {
	if s.output == "json" {
		return cli.WriteJSON(s.out, r)
	}
	if len(r.Limits) > 0 {
		t := screen.Table{Right: true}
		t.Head("limit", "of", "accepted", "refused", "most", "per", "worst window", "in %")
		for _, l := range r.Limits {
			per := "at once"
			if l.Window > 0 {
				per = plain(l.Window)
			}
			t.Row(l.Policy, l.Who, strconv.Itoa(l.Accepted), strconv.Itoa(l.Refused), strconv.FormatInt(l.Limit, 10), per,
				strconv.FormatInt(l.Worst, 10), fmt.Sprintf("%.1f", l.WorstPercent))
		}
		if err := t.Write(s.out, screen.TableWidth); err != nil {
			return err
		}
	}
	bans := ""
	if r.Bans > 0 {
		bans = fmt.Sprintf(", %d bans with %d requests refused for them", r.Bans, r.AfterBan)
	}
	if r.TooLarge > 0 {
		bans += fmt.Sprintf(", %d larger than a limit", r.TooLarge)
	}
	_, err := fmt.Fprintf(s.out, "%d accepted and %d limited in %v%s; up to %d under way at once, %d dropped at the end\n",
		r.Accepted, r.Limited, r.Elapsed.Round(time.Millisecond), bans, r.Peak, r.Dropped)
	return err
}
