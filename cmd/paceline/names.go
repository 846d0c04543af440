package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/paceline-go/paceline/quota"
)

// near returns the names that somebody may have meant, the likeliest first: those that begin so, and those that a slip or two away.
func near(name string, names []string) []string {
	const most = 5
	type guess struct {
		name string
		off  int
	}
	var all []guess
	low := strings.ToLower(name)
	slips := min(2, len(low)/3)
	for _, n := range names {
		off := distance(low, strings.ToLower(n))
		if low != "" && strings.HasPrefix(strings.ToLower(n), low) {
			off = min(off, 1)
		}
		if off <= max(slips, 1) && off < len(low) {
			all = append(all, guess{n, off})
		}
	}
	slices.SortStableFunc(all, func(a, b guess) int { return cmp.Or(a.off-b.off, strings.Compare(a.name, b.name)) })
	if len(all) > 0 && all[0].off == 0 { // it is that, in other letters
		all = all[:1]
	}
	var out []string
	for _, g := range all[:min(len(all), most)] {
		out = append(out, g.name)
	}
	return out
}

// distance is how many letters must be changed, left out or added to make one of the other.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := before
			if a[i] != b[j] {
				change++
			}
			before = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// orNear is "; did you mean a or b?", or nothing.
func orNear(name string, names []string) string {
	if found := near(name, names); len(found) > 0 {
		return "; did you mean " + strings.Join(found, " or ") + "?"
	}
	return ""
}

// unknownProvider is the error of a --provider that is not there.
func unknownProvider(name string) error {
	if _, ok := quota.LookupProvider(name); ok {
		return fmt.Errorf("--provider %s: what it answers is no HTTP", name)
	}
	return fmt.Errorf("--provider %q is not in the table%s paceline explain --providers lists it; whoever is not in it is read without --provider, as any server",
		name, cmp.Or(orNear(name, providerNames()), "."))
}

// unknownPreset is the error of a --preset that is not there.
func unknownPreset(name string) error {
	return fmt.Errorf("--preset %q: no limits are published by that name%s paceline explain --providers lists them", name, cmp.Or(orNear(name, presetNames()), ";"))
}

func providerNames() []string {
	var names []string
	for _, p := range quota.Providers() {
		names = append(names, p.Name)
	}
	return names
}

func presetNames() []string {
	var names []string
	for _, p := range quota.Presets() {
		names = append(names, p.Name)
	}
	return names
}

// completeNames completes --provider and --preset.
func completeNames(c *cobra.Command) {
	for flag, names := range map[string]func() []string{"provider": providerNames, "preset": presetNames} {
		// It fails for a flag that is not there.
		_ = c.RegisterFlagCompletionFunc(flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return names(), cobra.ShellCompDirectiveNoFileComp
		})
	}
}
