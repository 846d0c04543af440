//go:build unix

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/forward"
	"github.com/paceline-go/paceline/internal/app/launch"
	"github.com/paceline-go/paceline/internal/testkit/race"
)

// docs/any-program.md has the table of variables.
func TestVariablesPage(t *testing.T) {
	race.Without(t)
	const file, begin, end = "../../docs/any-program.md", "<!-- variables -->\n", "<!-- end -->"
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the variables", file)
	}
	var want strings.Builder
	want.WriteString(before + begin + "\n| variable | value | programs |\n|---|---|---|\n")
	for _, v := range forward.Variables {
		want.WriteString(fmt.Sprintf("| `%s` | %s | %s |\n", v.Name, v.Of(forward.At{URL: "the proxy", Bundle: "the bundle"}), v.For))
	}
	for _, v := range launch.FileVariables() {
		want.WriteString(fmt.Sprintf("| `%s` | a file of `exec` | %s |\n", v[0], v[1]))
	}
	want.WriteString("\n" + end + after)
	if *update {
		if err := os.WriteFile(file, []byte(want.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if string(page) != want.String() {
		t.Errorf("%s is not what the table says; go test ./cmd/paceline -run VariablesPage -update writes it", file)
	}
}

// --env prints the variables in three forms, and nothing else.
func TestForwardEnvironment(t *testing.T) {
	t.Setenv("K1", "secret-1234567890")
	for form, want := range map[string]string{
		"sh": "export HTTPS_PROXY='http://any:KEY@127.0.0.1:7880'\n", "docker": "\nSSL_CERT_FILE=/", "json": `"https_proxy": "http://any:KEY@127.0.0.1:7880"`,
	} {
		var out, errs bytes.Buffer
		code := execute(context.Background(), []string{"proxy", "--to", "http://127.0.0.1:1", "--limit", "1/s", "--forward", "127.0.0.1:7880",
			"--client-key-env", "K1", "--env", form}, strings.NewReader(""), &out, &errs)
		if code != cli.ExitOK || !strings.Contains(out.String(), want) || errs.Len() > 0 || strings.Contains(out.String(), "secret-") {
			t.Errorf("%s: exit %d\n%s%s", form, code, out.String(), errs.String())
		}
	}
	for args, want := range map[string]string{
		"--env sh":                                "--env without --forward",
		"--forward 127.0.0.1:1 --env xml":         `--env "xml", expected sh, docker or json`,
		"--forward 0.0.0.0:1":                     "--forward 0.0.0.0:1 can be reached from other machines",
		"--forward 127.0.0.1:1 --tunnels all":     `--tunnels "all", expected public or none`,
		"--forward 127.0.0.1:1 --forward-bundle=": "--forward-bundle none, expected a file",
		"--forward 127.0.0.1:7878":                "another address of this proxy",
	} {
		var out, errs bytes.Buffer
		code := execute(context.Background(), append([]string{"proxy", "--to", "http://127.0.0.1:1", "--limit", "1/s"}, strings.Fields(args)...), strings.NewReader(""), &out, &errs)
		if code != cli.ExitUsage || !strings.Contains(errs.String(), want) {
			t.Errorf("%s: exit %d, %q, expected %q", args, code, errs.String(), want)
		}
	}
}

// proxy ca prints the certificate of a forward proxy alone, and says what it is for.
func TestProxyCA(t *testing.T) {
	a, err := forward.NewAuthority([]string{"api.example.com"}, 1, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	own := write(t, "own.pem", string(a.PEM()))
	bundle := filepath.Join(t.TempDir(), "bundle.pem")
	if err := a.WriteBundle(bundle, func(string) string { return own }); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{bundle: "for api.example.com, until ", write(t, "empty.pem", ""): "has no certificate of paceline proxy --forward",
		filepath.Join(t.TempDir(), "none"): "expected the --forward-bundle"} {
		var out, errs bytes.Buffer
		code := execute(context.Background(), []string{"proxy", "ca", file}, strings.NewReader(""), &out, &errs)
		good := file == bundle
		if good != (code == cli.ExitOK) || !strings.Contains(errs.String(), want) || good != (out.String() == string(a.PEM())) {
			t.Errorf("%s: exit %d, prints %s%s, expected %q", file, code, out.String(), errs.String(), want)
		}
	}
}
