package main

import (
	"cmp"
	"fmt"

	"github.com/paceline-go/paceline/internal/text"
	"github.com/paceline-go/paceline/provider"
)

// unknownProvider is the error for a --provider that does not exist.
func unknownProvider(name string) error {
	if _, ok := provider.LookupProvider(name); ok {
		return fmt.Errorf("--provider %s: what it answers is no HTTP", name)
	}
	return fmt.Errorf("--provider %q is not in the table%s paceline explain --providers lists it; whoever is not in it "+
		"is read without --provider, as any server",
		name, cmp.Or(text.DidYouMean(name, providerNames()), "."))
}

// unknownPreset is the error for a --preset that does not exist.
func unknownPreset(name string) error {
	return fmt.Errorf("--preset %q: no limits are published by that name%s paceline explain --providers lists them",
		name, cmp.Or(text.DidYouMean(name, presetNames()), ";"))
}

func providerNames() []string {
	var names []string
	for _, p := range provider.Providers() {
		names = append(names, p.Name)
	}
	return names
}

func presetNames() []string {
	var names []string
	for _, p := range provider.Presets() {
		names = append(names, p.Name)
	}
	return names
}
