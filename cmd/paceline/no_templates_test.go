package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A program that can run a template keeps every exported method of every type that it uses, since a template may name
// it: this one was 8 MiB larger. Cobra runs templates for those who set some.
func TestNoTemplates(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-f", `{{.ImportPath}} {{join .Imports " "}} .`, ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		for _, name := range []string{"text/template", "html/template"} {
			if slices.Contains(words[1:], name) && words[0] != "github.com/spf13/cobra" && words[0] != "html/template" {
				t.Errorf("%s imports %s", words[0], name)
			}
		}
	}
	for _, folder := range []string{".", "../../internal/app/cli"} {
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatal(len(files), err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, call := range []string{"VersionTemplate(", "UsageTemplate(", "HelpTemplate("} {
				if !strings.HasSuffix(file, "_test.go") && strings.Contains(string(text), ".Set"+call) {
					t.Errorf("%s calls Set%s)", file, call)
				}
			}
		}
	}
}
