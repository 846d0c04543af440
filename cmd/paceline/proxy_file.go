package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/proxy"
	"github.com/paceline-go/paceline/internal/app/proxy/config"
)

// runFile runs a proxy from a configuration file.
func (f *proxyFlags) runFile(cmd *cobra.Command) error {
	if err := besideConfig(cmd, "log", "log-level", "takeover", "env"); err != nil {
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
	r.stamp, r.hup = stampOf(file.Names), make(chan os.Signal, 1)
	signal.Notify(r.hup, syscall.SIGHUP)
	defer signal.Stop(r.hup)
	ctx, stop := context.WithCancel(cmd.Context())
	defer stop()
	go r.run(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	return attendProxy(cmd, p, c, l, signals)
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
		r.log.Error("the configuration is not applied, and that before it goes on", "file", r.name, "err", err)
		return
	}
	r.last, r.stamp = file, stampOf(file.Names)
	r.told.Info("the configuration is applied", "file", r.name)
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
