package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/paceline-go/paceline/internal/app/run"
	"github.com/paceline-go/paceline/provider"
)

// A preset without a number is no limit. The error says what is one, also where only the number of
// requests at once is not published.
func TestPresetWithoutANumber(t *testing.T) {
	for _, name := range []string{"x", "twilio", "gemini"} {
		f, cmd, c := &runFlags{}, &cobra.Command{}, run.Config{Concurrency: 8}
		f.via.via = "requests"
		f.llm.add(cmd)
		f.backlog.add(cmd.Flags())
		if err := cmd.ParseFlags([]string{"--preset", name}); err != nil {
			t.Fatal(err)
		}
		want := "--preset " + name + " has no number"
		if err := f.allLimits(cmd, &c); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		f.limits = []string{"20/s"}
		if err := f.allLimits(cmd, &c); err != nil || len(c.Limits) != 1 || c.Concurrency != 8 {
			t.Errorf("%s with --limit: %v, %+v", name, err, c.Limits)
		}
	}
}

// A preset alone sets the reading of answers to that of its publisher, also where that has another name.
func TestPresetSetsTheReading(t *testing.T) {
	for _, p := range provider.Presets() {
		who, _ := provider.Publisher(p.Name)
		want, _ := provider.Lookup(who.Name)
		f, c := runFlags{}, run.Config{}
		f.llm.preset = p.Name
		if err := f.readings(&c); err != nil || c.Provider != want {
			t.Errorf("%s: read as %v, want %v; %v", p.Name, c.Provider, want, err)
		}
	}
}
