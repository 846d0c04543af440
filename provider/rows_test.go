package provider

import (
	"slices"
	"testing"
)

// Each name of a refuser in a row is in the row's list, so that the scope of the refusal can be
// found.
func TestRefusersAreListed(t *testing.T) {
	names := map[string]bool{}
	for _, d := range rows() {
		if name := d.Provider.Name; names[name] {
			t.Errorf("two rows are %s", name)
		}
		names[d.Provider.Name] = true
		for _, f := range d.refuse {
			listed := slices.ContainsFunc(d.Refusers, func(x Refuser) bool { return x.Pattern.Match(f.by) })
			if f.by != "" && f.by != "=" && !listed {
				t.Errorf("%s: %s refuses, and is not among the Refusers", d.Provider.Name, f.by)
			}
		}
	}
}
