package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/proxy"
	"github.com/paceline-go/paceline/internal/app/proxy/config"
)

// runFile runs a proxy from a configuration file.
func (f *proxyFlags) runFile(cmd *cobra.Command) error {
	if err := besideConfig(cmd, "log", "log-level", "takeover", "recent", "env"); err != nil {
		return err
	}
	log, access, err := f.logs(cmd)
	if err != nil {
		return err
	}
	file, err := loadProxy(f.file, os.LookupEnv)
	if err != nil {
		return err
	}
	c := file.Config
	c.Log, c.Access, c.Live = log, access, true
	checked, err := c.Checked()
	if err != nil {
		return cli.Exit(cli.ExitConfig, file.Locate(err))
	}
	if f.env != "" {
		return printEnvironment(cmd.OutOrStdout(), checked, f.env)
	}
	p, l, err := f.open(cmd, &c, func(err error) error { return cli.Exit(cli.ExitConfig, file.Locate(err)) })
	if err != nil {
		return err
	}
	defer c.Shared.Close()
	r := &reload{name: f.file, last: file, apply: p.Apply, log: log, told: logOf(cmd, f.log, slog.LevelInfo)}
	r.ended(nil, "")
	r.stamp, r.hup = stampOf(file.Names), make(chan os.Signal, 1)
	signal.Notify(r.hup, syscall.SIGHUP)
	defer signal.Stop(r.hup)
	ctx, stop := context.WithCancel(cmd.Context())
	defer stop()
	go r.run(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	return f.attend(cmd, p, c, l, signals, r)
}

// besideConfig refuses all flags beside --config but those that are given.
func besideConfig(cmd *cobra.Command, allowed ...string) error {
	var others []string
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		if flag.Name != "config" && !slices.Contains(allowed, flag.Name) && !cli.IsHelp(flag) {
			others = append(others, "--"+flag.Name)
		}
	})
	if len(others) == 0 {
		return nil
	}
	last := len(allowed) - 1
	return cli.Usage(fmt.Errorf("%s beside --config, where the file says it; expected --config with no other flag but "+
		"--%s and --%s", strings.Join(others, ", "), strings.Join(allowed[:last], ", --"), allowed[last]))
}

// reload applies the configuration again at SIGHUP, and after a change of its file or of a file
// that it names. An error in the new configuration is logged, and then none of it is applied.
type reload struct {
	name      string
	last      config.File
	stamp     string // stampOf the files at the last look
	unsettled bool   // the files have just changed, and a writer may not be done
	refused   bool   // the latest configuration was not applied
	hup       chan os.Signal
	apply     func(proxy.Config) error
	log, told *slog.Logger

	mu      sync.Mutex
	applied time.Time // when the configuration in force was applied
	wrong   error     // why a later one is not; nil: there is none
	line    string    // the latest change, for the page; empty: none since the start
}

// ended notes the end of a reading of the file.
func (r *reload) ended(err error, line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.wrong = err; line != "" && err == nil || r.applied.IsZero() {
		r.applied = time.Now()
	}
	r.line = line
}

// file is the whole path of the file; empty without one. r may be nil.
func (r *reload) file() string {
	if r == nil {
		return ""
	}
	if path, err := filepath.Abs(r.name); err == nil {
		return path
	}
	return r.name
}

// lines are for the page. r may be nil.
func (r *reload) lines() []string {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.line == "" {
		return nil
	}
	return []string{r.line}
}

// metrics has the names that Prometheus has for its own configuration. r may be nil.
func (r *reload) metrics() []prometheus.Collector {
	if r == nil {
		return nil
	}
	gauge := func(name, help string, of func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "paceline_config_last_reload_" + name, Help: help},
			func() float64 {
				r.mu.Lock()
				defer r.mu.Unlock()
				return of()
			})
	}
	return []prometheus.Collector{
		gauge("successful", "1 if the latest configuration file was applied, 0 if it was refused.", func() float64 {
			if r.wrong != nil {
				return 0
			}
			return 1
		}),
		gauge("success_timestamp_seconds", "When a configuration was last applied.", func() float64 {
			return float64(r.applied.UnixMilli()) / 1000
		}),
	}
}

// look is the time between two looks at the files. A change is applied when two looks in a row have
// found the same files.
const look = time.Second

func (r *reload) run(ctx context.Context) {
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.hup:
			r.stamp, r.unsettled = stampOf(r.last.Names), false
			r.again(true)
		case <-tick.C:
			switch stamp := stampOf(r.last.Names); {
			case stamp != r.stamp:
				r.stamp, r.unsettled = stamp, true
			case r.unsettled:
				r.unsettled = false
				r.again(false)
			}
		}
	}
}

// again reads the file, and applies it if it has changed. asked means that a user sent SIGHUP and
// expects an answer.
func (r *reload) again(asked bool) {
	file, err := loadProxy(r.name, os.LookupEnv)
	if err == nil && file.Sum == r.last.Sum && !asked {
		if r.refused {
			r.refused = false
			r.ended(nil, "")
			r.told.Info("the file is right again, and says what is in force", "file", r.name)
		}
		return
	}
	if err == nil {
		if err = r.apply(file.Config); err != nil {
			err = file.Locate(err)
		}
	}
	if r.refused = err != nil; r.refused {
		r.ended(err, fmt.Sprintf("%s: the configuration is not applied, and that before it goes on: %v",
			time.Now().Format(time.TimeOnly), err))
		r.log.Error("the configuration is not applied, and that before it goes on", "file", r.name, "err", err)
		return
	}
	changes := file.Changes(&r.last)
	r.last, r.stamp = file, stampOf(file.Names)
	r.ended(nil, fmt.Sprintf("%s: the configuration is applied; changed: %s", time.Now().Format(time.TimeOnly), changes))
	r.told.Info("the configuration is applied", "file", r.name, "changed_keys", changes)
}

// stampOf describes the files by their sizes and times. It changes when one of the files does.
func stampOf(names []string) string {
	var s strings.Builder
	for _, name := range names {
		about, err := os.Stat(name)
		if err != nil {
			fmt.Fprintf(&s, "%s: %v\n", name, err)
			continue
		}
		fmt.Fprintf(&s, "%s: %d %d %v\n", name, about.Size(), about.ModTime().UnixNano(), about.Mode())
	}
	return s.String()
}

// isFile reports whether there is a file of that name.
func isFile(name string) bool {
	about, err := os.Stat(name)
	return err == nil && about.Mode().IsRegular()
}
