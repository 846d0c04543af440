package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCount(t *testing.T) {
	files := map[string]string{
		"go.mod": "module example.com/p\n\ngo 1.26\n",
		"doc.go": "// Package p has a table.\n//\n//\ta.go  the caller\n//\tb.go, c.go  the others; not x.go\npackage p\n",
		"a.go":   "package p\n\nimport \"strings\"\n\nfunc a() { b(); T{}.c(); own(); strings.ToUpper(\"\") }\n\nfunc own() {}\n",
		"b.go":   "package p\n\nfunc b() { (T).c(T{}); own() }\n",
		"c.go":   "package p\n\ntype T struct{}\n\nfunc (T) c() { b() }\n",
	}
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range files {
		write(name, text)
	}
	t.Setenv("GOWORK", "off")
	c, err := load(dir, ".")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := c.String(), "40 % of 5 calls go up"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if c.pairs[pair{"b.go", "a.go"}] != 1 || c.pairs[pair{"c.go", "b.go"}] != 1 || len(c.pairs) != 2 {
		t.Errorf("%v go up, want b.go → a.go and c.go → b.go", c.pairs)
	}
	write("d.go", "package p\n")
	if _, err := load(dir, "."); err == nil || !strings.Contains(err.Error(), "d.go is not in the table") {
		t.Errorf("%v, want an error that names d.go", err)
	}
}
