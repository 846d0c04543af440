//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/paceline-go/paceline/internal/app/daemon"
	"github.com/paceline-go/paceline/internal/app/permit"
	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/sharestore"
	"github.com/paceline-go/paceline/internal/text/rate"
	"github.com/paceline-go/paceline/limit"
)

// limitFlags are the flags of paceline daemon for permits.
type limitFlags struct {
	limits, providers, clients, headStarts []string
	late                                   time.Duration
	state                                  string
	listen, keyEnv                         string
	schema                                 bool
	share                                  storeFlags

	c   permit.Config // what check reads
	key string        // the value of keyEnv, as check read it
}

// noState is the --state without a file.
const noState = "off"

// addNamed adds the flags that a daemon takes also while it runs.
func (f *limitFlags) addNamed(p *pflag.FlagSet) {
	p.StringArrayVar(&f.limits, "limit", nil, "NAME=RATE: a limit that programs wait for, such as orders=50/s; repeatable, also for a name")
	p.StringArrayVar(&f.providers, "provider", nil, "NAME=PROVIDER: in whose words the answers of a limit are read; repeatable")
	p.StringArrayVar(&f.clients, "client", nil, "NAME=WEIGHT: the part of a client where several want more than there is, such as "+
		"nightly=0.25; of all others it is 1; repeatable")
	p.StringArrayVar(&f.headStarts, "head-start", nil, "NAME=SPAN: how much earlier a client's calls count as having come, such as "+
		"ops=10s; repeatable")
}

func (f *limitFlags) add(p *pflag.FlagSet) {
	f.addNamed(p)
	p.DurationVar(&f.late, "late", 5*time.Second, "how long after an unknown end a request may still arrive")
	p.StringVar(&f.state, "state", "", "file of what was granted, for the next daemon; off: none, and after a start nothing goes until "+
		"what an earlier daemon granted counts no more (default: a file of this user)")
	f.share.Add(p, "")
	f.share.AddPart(p)
	p.StringVar(&f.listen, "listen", "", "127.0.0.1:PORT: a port for permits, too, with the key of --key-env")
	p.StringVar(&f.keyEnv, "key-env", "", "environment variable with the key that programs send to the port of --listen")
	p.BoolVar(&f.schema, "schema", false, "print the JSON schema of the messages about permits, and end")
}

// check reads the flags.
func (f *limitFlags) check(cmd *cobra.Command) error {
	if err := f.share.Check(cmd); err != nil {
		return err
	}
	if f.share.Address != "" && f.state != "" {
		return errors.New("--state beside --share, expected one of them: the store has what was granted")
	}
	f.c.Late = f.late
	if f.late <= 0 {
		return fmt.Errorf("--late %v, expected a span above 0", f.late)
	}
	if err := f.read(); err != nil {
		return err
	}
	if len(f.limits) == 0 && (len(f.clients) > 0 || len(f.headStarts) > 0 || f.listen != "" || f.state != "") {
		return errors.New("no --limit, expected a limit that programs wait for, such as --limit orders=50/s")
	}
	return f.checkPort()
}

// read reads the limits and the clients.
func (f *limitFlags) read() error {
	for _, text := range f.limits {
		name, value, err := named("--limit", text, "NAME=RATE, such as orders=50/s")
		if err != nil {
			return err
		}
		r, err := rate.ParseCounted(value)
		if err != nil {
			return fmt.Errorf("--limit %s: %w", name, err)
		}
		if i := slices.IndexFunc(f.c.Limits, func(l permit.Limit) bool { return l.Name == name }); i >= 0 {
			f.c.Limits[i].Rates = append(f.c.Limits[i].Rates, r)
			continue
		}
		f.c.Limits = append(f.c.Limits, permit.Limit{Name: name, Rates: []rate.Limit{r}})
	}
	for _, text := range f.providers {
		name, value, err := named("--provider", text, "NAME=PROVIDER")
		if err != nil {
			return err
		}
		i := slices.IndexFunc(f.c.Limits, func(l permit.Limit) bool { return l.Name == name })
		if i < 0 {
			return fmt.Errorf("--provider %s, expected the name of a --limit", text)
		}
		f.c.Limits[i].Provider = value
	}
	return f.checkClients()
}

// checkClients reads the parts of clients.
func (f *limitFlags) checkClients() error {
	of := func(name string) *permit.ClientConfig {
		i := slices.IndexFunc(f.c.Clients, func(c permit.ClientConfig) bool { return c.Name == name })
		if i < 0 {
			i = len(f.c.Clients)
			f.c.Clients = append(f.c.Clients, permit.ClientConfig{Name: name})
		}
		return &f.c.Clients[i]
	}
	for _, text := range f.clients {
		name, value, err := named("--client", text, "NAME=WEIGHT, such as nightly=0.25")
		if err != nil {
			return err
		}
		if of(name).Weight, err = strconv.ParseFloat(value, 64); err != nil || !(of(name).Weight >= 0.001 && of(name).Weight <= 1000) {
			return fmt.Errorf("--client %s, expected a weight from 0.001 to 1000", text)
		}
	}
	for _, text := range f.headStarts {
		name, value, err := named("--head-start", text, "NAME=SPAN, such as ops=10s")
		if err != nil {
			return err
		}
		if of(name).HeadStart, err = time.ParseDuration(value); err != nil || of(name).HeadStart < 0 {
			return fmt.Errorf("--head-start %s, expected a span such as 10s", text)
		}
	}
	return nil
}

// checkPort allows a port of this machine alone, with a key.
func (f *limitFlags) checkPort() error {
	if f.listen == "" {
		if f.keyEnv != "" {
			return errors.New("--key-env without --listen, expected both")
		}
		return nil
	}
	at, err := netip.ParseAddrPort(f.listen)
	switch {
	case err != nil || !at.Addr().IsLoopback():
		return fmt.Errorf("--listen %s, expected an address of this machine such as 127.0.0.1:7881", f.listen)
	case f.keyEnv == "":
		return errors.New("--listen without --key-env, expected a variable with the key that programs send")
	}
	keys, err := format.KeysFromEnv("key-env", []string{f.keyEnv}, os.LookupEnv)
	if err != nil {
		return err
	}
	if f.key = keys[0].Secret; len(f.key) < 16 {
		return fmt.Errorf("--key-env %s: the key has %d bytes, expected 16 or more that nobody guesses", f.keyEnv, len(f.key))
	}
	return nil
}

// named splits NAME=VALUE.
func named(flag, text, form string) (name, value string, err error) {
	name, value, ok := strings.Cut(text, "=")
	if name, value = strings.TrimSpace(name), strings.TrimSpace(value); !ok || name == "" || value == "" {
		return "", "", fmt.Errorf("%s %q, expected %s", flag, text, form)
	}
	return name, value, nil
}

// mount mounts permits on a daemon: those of its limits, and of the upstreams of runs. The caller calls
// end before it ends the runs.
func (f *limitFlags) mount(ctx context.Context, d *daemon.Server, runs *served, log io.Writer) (end func(), err error) {
	f.c.Proxy = runs.keeper.Proxy
	f.c.Log = slog.New(slog.NewTextHandler(log, nil))
	shared, err := f.share.Open(ctx, f.c.Log)
	if err != nil {
		return nil, err
	}
	switch {
	case shared != nil:
		f.c.Share = func(name string, made func() limit.Limiter) (limit.Limiter, error) {
			return shared.Join(ctx, shared.Name(sharestore.Place{Resource: name}), made)
		}
	case f.state == "":
		f.c.State = filepath.Join(d.Place().State, "permits.state")
	case f.state == noState:
	default:
		f.c.State = f.state
	}
	s, err := permit.New(f.c)
	if err != nil {
		return nil, errors.Join(err, shared.Close())
	}
	s.Mount(func(pattern string, h http.Handler) {
		d.Handle(pattern, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			d.Use()
			h.ServeHTTP(w, r)
		}))
	})
	d.Handle("POST /v1/limits", takeLimits(d, s))
	runs.permits = s
	d.Tune(permit.Track)
	d.Tune(func(h *http.Server) { h.RegisterOnShutdown(s.Stop) })
	d.Report("permits", s.Fact)
	port, err := f.open(s)
	if err != nil {
		return nil, errors.Join(err, s.Close(), shared.Close())
	}
	return func() {
		port()
		if err := errors.Join(s.Close(), shared.Close()); err != nil {
			f.c.Log.Error("what was granted", "err", err)
		}
	}, nil
}

// open opens the port of --listen.
func (f *limitFlags) open(s *permit.Server) (shut func(), err error) {
	if f.listen == "" {
		return func() {}, nil
	}
	l, err := net.Listen("tcp", f.listen)
	if err != nil {
		return nil, cannotListen("--listen", f.listen, "paceline daemon", err)
	}
	mux := http.NewServeMux()
	s.Mount(mux.Handle)
	h := &http.Server{Handler: permit.Keyed(mux, f.key), ReadHeaderTimeout: 10 * time.Second}
	permit.Track(h)
	served := make(chan struct{})
	go func() {
		_ = h.Serve(l)
		close(served)
	}()
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		s.Stop()
		if h.Shutdown(ctx) != nil {
			h.Close()
		}
		<-served
	}, nil
}
