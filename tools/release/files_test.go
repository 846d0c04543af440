package main

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// All that is packed of the same program and documents is the same, in whatever order they come and wherever they lie; of
// other dates it is not, so none is forgotten.
func TestSamePacked(t *testing.T) {
	documents := []file{{name: "LICENSE", data: []byte("a licence\n")}, {name: "README.md", data: []byte("read\n")},
		{name: "CHANGELOG.md", data: []byte("changes\n")}, {name: "THIRD_PARTY.txt", data: []byte("others\n")},
		{name: "man/paceline.1", data: []byte("a page\n")}, {name: "completions/paceline.bash", data: []byte("a script\n")},
		{name: "completions/_paceline-lab", data: []byte("another\n")}}
	pack := func(date time.Time, documents []file) map[string][]byte {
		b := &build{source: source{commit: "c0ffee", tag: tagged, version: "0.9.8", date: date}, out: t.TempDir(), tmp: t.TempDir(), shared: documents}
		paceline := map[platform]file{}
		for _, p := range platforms {
			var programs []file
			for _, c := range commands {
				programs = append(programs, file{name: c.name, data: []byte(c.name + " for " + p.String()), executable: true})
			}
			paceline[p] = programs[0]
			if err := b.archive(p, programs); err != nil {
				t.Fatal(err)
			}
			if p.os != "linux" {
				continue
			}
			if err := b.deb(p, programs); err != nil {
				t.Fatal(err)
			}
		}
		for _, do := range []func(map[platform]file) error{b.image, b.npm} {
			if err := do(paceline); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.sums(); err != nil {
			t.Fatal(err)
		}
		files := map[string][]byte{}
		for _, name := range list(t, b.out) {
			data, err := os.ReadFile(filepath.Join(b.out, name))
			if err != nil {
				t.Fatal(err)
			}
			files[name] = data
		}
		return files
	}
	date := time.Unix(1767323045, 0).UTC()
	first := pack(date, documents)
	other := slices.Clone(documents)
	slices.Reverse(other)
	time.Sleep(1100 * time.Millisecond) // dates in archives are whole seconds
	second, later := pack(date, other), pack(date.Add(time.Hour), documents)
	if len(first) != 6+2+1+7+1 {
		t.Errorf("it made %d files: %q", len(first), slices.Sorted(maps.Keys(first)))
	}
	for name, data := range first {
		if !bytes.Equal(data, second[name]) {
			t.Errorf("%s is not the same twice", name)
		}
		if bytes.Equal(data, later[name]) {
			t.Errorf("%s is the same an hour later", name)
		}
	}
}
