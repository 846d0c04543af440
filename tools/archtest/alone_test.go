package archtest

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// foreign is which packages that users import need modules of others, and which. All that are not named here are of the standard
// library alone: README says so, and go list has the last word.
var foreign = map[string]string{
	"provider":          "github.com/dunglas/httpsfv", // structured header fields, as the IETF's draft of RateLimit has them
	"provider/classify": "github.com/dunglas/httpsfv",
	"transport":         "github.com/andybalholm/brotli github.com/dunglas/httpsfv github.com/klauspost/compress", // codings of answers
	"observe/prom": "github.com/beorn7/perks github.com/cespare/xxhash/v2 github.com/munnerz/goautoneg github.com/prometheus/client_golang " +
		"github.com/prometheus/client_model github.com/prometheus/common github.com/prometheus/procfs golang.org/x/sys google.golang.org/protobuf", // of Prometheus
	"ratetest/service":    "github.com/dunglas/httpsfv",
	"transport/record":    "github.com/andybalholm/brotli github.com/dunglas/httpsfv github.com/klauspost/compress golang.org/x/sys", // the lock of its file
	"share":               "golang.org/x/sys",                                                                                        // a clock that goes on in sleep
	"share/sharetest":     "golang.org/x/sys",
	"backlog":             "golang.org/x/sys",
	"backlog/backlogtest": "golang.org/x/sys",
}

// heavy is what the stores of packages share and backlog need. Only who imports one has it: no other package may.
var heavy = map[string]string{
	"share/sqlite":     "modernc.org/sqlite",
	"share/postgres":   "github.com/jackc/pgx/v5",
	"share/redis":      "github.com/redis/go-redis/v9",
	"backlog/sqlite":   "modernc.org/sqlite",
	"backlog/postgres": "github.com/jackc/pgx/v5",
}

// alone are the packages of the promise by name, so that it cannot shrink unseen.
var alone = []string{Root, "limit", "limit/limittest", "fairshare", "pool", "limit/window", "limit/window/shared", "limit/mono", "pool/backoff", "ratetest/latency",
	"tokens", "tokens/tiktoken", "ratetest", "ratetest/llm", "contrib/xrate", "observe", "observe/dashboard"}

func TestAlone(t *testing.T) {
	list := exec.Command("go", "list", "-deps", "-f",
		`{{if not .Standard}}{{.ImportPath}} {{with .Module}}{{.Path}}{{end}}{{range .Imports}} {{.}}{{end}}{{end}}`, "./...")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	modules, imports := map[string]string{}, map[string][]string{}
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) > 1 {
			modules[f[0]], imports[f[0]] = f[1], f[2:]
		}
	}
	var needs func(pkg string, into map[string]bool, seen map[string]bool)
	needs = func(pkg string, into, seen map[string]bool) {
		if m := modules[pkg]; m != "" && m != module {
			into[m] = true
		}
		for _, p := range imports[pkg] {
			if modules[p] != "" && !seen[p] {
				seen[p] = true
				needs(p, into, seen)
			}
		}
	}
	var found []string
	for pkg, m := range modules {
		name := strings.TrimPrefix(strings.TrimPrefix(pkg, module), "/")
		if name == "" {
			name = Root
		}
		if m != module || strings.HasPrefix(name, "cmd/") || strings.HasPrefix(name, "lab/") || strings.Contains("/"+name+"/", "/internal/") {
			continue
		}
		into := map[string]bool{}
		needs(pkg, into, map[string]bool{})
		all := strings.Join(slices.Sorted(maps.Keys(into)), " ")
		if all == "" {
			found = append(found, name)
		}
		if m := heavy[name]; m != "" {
			if !into[m] {
				t.Errorf("%s needs %q of others, and not %s", name, all, m)
			}
			continue
		}
		for engine, m := range heavy {
			if into[m] {
				t.Errorf("%s needs %s, which only %s may: who does not import that is not to build it", name, m, engine)
			}
		}
		if all != foreign[name] {
			t.Errorf("%s needs %q of others, want %q: mend it, or change foreign here and what README says", name, all, foreign[name])
		}
	}
	for _, name := range alone {
		if !slices.Contains(found, name) {
			t.Errorf("%s is not of the standard library alone", name)
		}
	}
}

// Who imports the library, and neither metrics nor the module otel nor a store of package share, neither builds nor vendors anything of Prometheus,
// OpenTelemetry or a database.
func TestVendoredAlone(t *testing.T) {
	dir := t.TempDir()
	here, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	ours, err := os.ReadFile(filepath.Join(here, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join(here, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{ // what ours requires is there already, so nothing need be fetched
		"go.mod": strings.Replace(string(ours), "module "+module, "module example.com/alone", 1) + "\nrequire " + module + " v0.0.0\n\nreplace " + module + " => " + here + "\n",
		"go.sum": string(sums),
		"main.go": "package main\n\nimport (\n\t_ \"" + module + "\"\n\t_ \"" + module + "/transport\"\n\t_ \"" + module +
			"/limit/limittest\"\n\t_ \"" + module + "/share/sharetest\"\n\t_ \"" + module + "/fairshare\"\n)\n\nfunc main() {}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("go", args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod -trimpath")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	run("mod", "vendor")
	vendored, err := os.ReadFile(filepath.Join(dir, "vendor", "modules.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(vendored), "\n"+module+"/transport\n") {
		t.Fatalf("the library is not vendored:\n%s", vendored)
	}
	for what, list := range map[string]string{"vendors": string(vendored), "builds": run("list", "-deps", ".")} {
		for line := range strings.Lines(list) {
			for _, word := range append(slices.Collect(maps.Values(heavy)), "prometheus", "opentelemetry") {
				if line[0] != '#' && strings.Contains(line, word) {
					t.Errorf("who imports the library alone %s %s", what, line)
				}
			}
		}
	}
}
