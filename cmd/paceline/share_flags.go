package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"time"

	client "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/paceline-go/paceline/internal/app/proxy"
	"github.com/paceline-go/paceline/internal/app/run"
	"github.com/paceline-go/paceline/internal/app/sharestore"
	"github.com/paceline-go/paceline/share"
	"github.com/paceline-go/paceline/share/postgres"
	"github.com/paceline-go/paceline/share/redis"
	"github.com/paceline-go/paceline/share/sqlite"
)

// shareFlags are for limits that processes of one's own share by a store.
type shareFlags struct {
	address, name, fallback string
	weight, least           float64
}

const shareForms = "sqlite:FILE, postgres://… or redis://…"

func (f *shareFlags) add(p *pflag.FlagSet, also string) {
	p.StringVar(&f.address, "share", "", "a store by which all processes that give it keep to the limits together: sqlite:FILE on one machine, postgres://USER@HOST/NAME or redis://HOST"+also)
	p.StringVar(&f.name, "share-name", "", "what the limits are called in the store: the same for all who share them, another for another server (default \""+sharestore.DefaultName+"\")")
	p.StringVar(&f.fallback, "share-fallback", "wait", "while the store is away: wait, or split, 1/n of the limit as n processes had it last, which is not exact where only some of them are cut off")
}

// addPart adds what says how much of the limits the process has.
func (f *shareFlags) addPart(p *pflag.FlagSet) {
	p.Float64Var(&f.weight, "share-weight", 1, "this process' part where there is not enough for all: of weights 1 and 3 the second has three quarters")
	p.Float64Var(&f.least, "share-least", 0, "the part of the whole that it has at least then, whatever weights and numbers others have: 0.2 of 500/m are 100 a minute")
}

// isStore tells whether an address is meant to be one of a store.
func isStore(address string) bool { return strings.Contains(address, ":") }

// suits checks what the flags say beside those of limits.
func (f *shareFlags) suits(cmd *cobra.Command, limits []run.Rate, auto bool) error {
	if err := f.alone(cmd); err != nil || f.address == "" {
		return err
	}
	switch {
	case auto:
		return errors.New("--share with --limit auto: what is to be found out cannot be kept in a store; expected a limit")
	case len(limits) == 0:
		return errors.New("--share with --limit none: there is nothing to share; expected a limit")
	case cmd.Flag("latency-max").Changed:
		return errors.New("--share with --latency-max: what a promise of latencies gains cannot be shared")
	}
	return nil
}

// alone checks that the store is named where the rest is.
func (f *shareFlags) alone(cmd *cobra.Command) error {
	if f.address == "" {
		for _, name := range []string{"share-name", "share-fallback", "share-weight", "share-least"} {
			if flag := cmd.Flag(name); flag != nil && flag.Changed {
				return fmt.Errorf("--%s without --share, expected %s", name, shareForms)
			}
		}
		return nil
	}
	if _, err := share.ParseFallback(f.fallback); err != nil {
		return fmt.Errorf("--share-fallback %w", err)
	}
	if err := share.CheckWeight(cmp.Or(f.weight, 1)); err != nil || f.weight == 0 && cmd.Flag("share-weight") != nil {
		return fmt.Errorf("--share-weight %w", share.CheckWeight(f.weight))
	}
	if err := share.CheckLeast(f.least); err != nil {
		return fmt.Errorf("--share-least %w", err)
	}
	if strings.ContainsFunc(f.name, func(r rune) bool { return r < ' ' }) || len(f.name) > 100 {
		return fmt.Errorf("--share-name %q, expected up to 100 characters", f.name)
	}
	return nil
}

// by is that for the configuration of a proxy.
func (f *shareFlags) by() proxy.ShareBy {
	if f.address == "" {
		return proxy.ShareBy{}
	}
	return proxy.ShareBy{Store: proxy.Secret(f.address), Name: f.name, Fallback: f.fallback, Weight: f.weight, Least: f.least}
}

// shareOf are the flags that say the same as a configuration.
func shareOf(by proxy.ShareBy) *shareFlags {
	return &shareFlags{string(by.Store), by.Name, cmp.Or(by.Fallback, "wait"), by.Weight, by.Least}
}

// openProxyShare opens the store of a configuration.
func openProxyShare(ctx context.Context, c *proxy.Config) (err error) {
	if c.Shared, err = shareOf(c.Share).open(ctx, c.Log); err != nil {
		return err
	}
	checked, err := c.Checked()
	if err == nil {
		err = checked.CheckShared(ctx)
	}
	if err != nil {
		return exitError{exitConfig, errors.Join(err, c.Shared.Close())}
	}
	return nil
}

// open opens the store, and returns the limits in it; nil: they are not shared. Nothing was sent if there is an error.
func (f *shareFlags) open(ctx context.Context, log *slog.Logger) (l *sharestore.Limits, err error) {
	if f.address == "" {
		return nil, nil
	}
	fallback, _ := share.ParseFallback(f.fallback) // alone has checked it
	s, err := openShare(ctx, f.address)
	if err != nil {
		return nil, exitError{exitConfig, fmt.Errorf("--share %w", err)}
	}
	l = sharestore.New(sharestore.Config{Store: s, Address: redacted(f.address), Closer: s, Name: f.name, Fallback: fallback, Weight: f.weight, Least: f.least, Logger: log})
	if err := l.Check(ctx, l.Name(sharestore.Place{}), nil); err != nil {
		return nil, exitError{exitConfig, errors.Join(fmt.Errorf("--share: %w", err), s.Close())}
	}
	return l, nil
}

// shareStore is a store that whoever opened it closes.
type shareStore interface {
	share.Store
	io.Closer
}

type postgresStore struct{ *postgres.Store }

func (s postgresStore) Close() error {
	s.Store.Close()
	return nil
}

// shareSchemes are what addresses of stores begin with.
var shareSchemes = map[string]func(ctx context.Context, address string) (shareStore, error){
	"sqlite": func(_ context.Context, address string) (shareStore, error) {
		file, _ := sqliteFile(address)
		if file == "" {
			return nil, errors.New("no file, expected sqlite:FILE")
		}
		return sqlite.Open(file)
	},
	"postgres":   openPostgres,
	"postgresql": openPostgres,
	"redis":      openRedis,
	"rediss":     openRedis,
}

func sqliteFile(address string) (string, bool) { return strings.CutPrefix(address, "sqlite:") }

func openPostgres(ctx context.Context, address string) (shareStore, error) {
	s, err := postgres.Open(ctx, address)
	if err != nil {
		return nil, err
	}
	return postgresStore{s}, nil
}

func openRedis(_ context.Context, address string) (shareStore, error) {
	client.SetLogger(&logging.VoidLogger{}) // it would write on standard error what our errors say
	s, err := redis.Open(address)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// openShare opens a store. The error begins with its address, without a password.
func openShare(ctx context.Context, address string) (shareStore, error) {
	scheme, _, ok := strings.Cut(address, ":")
	open := shareSchemes[scheme]
	if !ok || open == nil || scheme != "sqlite" && !isURL(address) {
		return nil, fmt.Errorf("%q, expected %s", redacted(address), shareForms)
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	s, err := open(ctx, address)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", redacted(address), err)
	}
	return s, nil
}

func isURL(address string) bool { return strings.Contains(address, "://") }

// redacted is an address without its password. Of one that is no URL nobody knows where it has one, as in host=a password=b.
func redacted(address string) string {
	scheme, _, _ := strings.Cut(address, ":")
	switch {
	case scheme == "sqlite":
		return address
	case !isURL(address) && strings.Contains(address, "="):
		if shareSchemes[scheme] == nil {
			return "…"
		}
		return scheme + ":…"
	}
	u, err := url.Parse(address)
	if err != nil {
		return scheme + ":…"
	}
	q := u.Query()
	for name := range q {
		if slices.Contains([]string{"password", "sslpassword"}, name) {
			q.Set(name, "xxxxx")
			u.RawQuery = q.Encode()
		}
	}
	return u.Redacted()
}
