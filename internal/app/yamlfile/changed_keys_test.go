package yamlfile_test

import (
	"cmp"
	"slices"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/paceline-go/paceline/internal/app/yamlfile"
)

// The keys that differ are named, and no value is.
func TestChanges(t *testing.T) {
	const was = "a: 1\nup:\n  - {name: x, limits: [1/s, 2/m], header: {Key: secret1}}\n  - {name: y, to: h}\nlist: [{to: p}]\nbase: &b {n: 1}\nref: *b\n"
	for _, c := range []struct {
		now  string
		want []string
	}{
		{was, nil},
		{"ref: {n: 1}\nbase: {n: 1}\nlist: [{to: p}]\nup:\n  - {to: h, name: y}\n  - name: x\n    limits: [1/s, 2/m]\n    header: {Key: secret1}\na: 1\n", nil}, // other words for the same
		{"a: 2\nup:\n  - {name: x, limits: [1/s, 3/m], header: {Key: secret2}}\n  - {name: z, to: h}\nlist: [{to: q}, {to: p}]\nbase: {n: 1}\n",
			[]string{"a", "up.x.limits", "up.x.header.Key", "up.z", "up.y", "list.1.to", "list.2", "ref"}},
		{"a: [1]\nup: none\nlist: []\nbase: {n: 1}\nref: {n: 1}\n", []string{"a", "up", "list"}},
	} {
		var from, to yaml.Node
		if err := cmp.Or(yaml.Unmarshal([]byte(was), &from), yaml.Unmarshal([]byte(c.now), &to)); err != nil {
			t.Fatal(err)
		}
		if got := yamlfile.Changes(from.Content[0], to.Content[0]); !slices.Equal(got, c.want) {
			t.Errorf("%s\n%q, want %q", c.now, got, c.want)
		}
	}
}
