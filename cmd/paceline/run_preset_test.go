package main

import (
	"testing"

	"github.com/paceline-go/paceline/internal/app/run"
	"github.com/paceline-go/paceline/provider"
)

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
