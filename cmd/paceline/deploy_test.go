package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/need"
)

const deployed = "../../deploy/"

// Each file of a proxy in deploy is right, also those within manifests.
func TestDeployedFiles(t *testing.T) {
	t.Setenv("EXAMPLE_KEY", "sk-example-8Qn2")
	t.Setenv("TEAM_KEY", "team-key-5Vd1")
	found := 0
	for _, name := range []string{"systemd/proxy.yaml", "container/proxy.yaml", "kubernetes/sidecar.yaml", "kubernetes/gateway.yaml"} {
		b, err := os.ReadFile(deployed + name)
		if err != nil {
			t.Fatal(err)
		}
		text := string(b)
		if _, within, ok := strings.Cut(text, "  proxy.yaml: |\n"); ok { // of a ConfigMap
			within, _, _ = strings.Cut(within, "\n---\n")
			text = strings.ReplaceAll("\n"+within, "\n    ", "\n")
		}
		// systemd puts the key there.
		text = strings.ReplaceAll(text, "/run/credentials/paceline-proxy.service/example_key", write(t, "example_key", "sk-example-8Qn2\n"))
		var out, errs strings.Builder
		if code := execute(context.Background(), []string{"proxy", "check", write(t, "proxy.yaml", text)}, strings.NewReader(""), &out, &errs); code != 0 {
			t.Errorf("%s: exit code %d: %s%s", name, code, out.String(), errs.String())
		}
		found++
	}
	if found != 4 {
		t.Errorf("%d files", found)
	}
}

// systemd finds nothing wrong with the units, and rates the service as hardly exposed.
func TestDeployedUnits(t *testing.T) {
	t.Parallel()
	analyze := need.Program(t, "systemd-analyze")
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"paceline-proxy.service", "paceline-proxy.socket"} {
		text, err := os.ReadFile(deployed + "systemd/" + name)
		if err != nil {
			t.Fatal(err)
		}
		text = bytes.ReplaceAll(text, []byte("/usr/bin/paceline"), []byte(self)) // verify looks for the program
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), analyze, args...)
		cmd.Env = append(os.Environ(), "SYSTEMD_UNIT_PATH="+dir+":")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("systemd-analyze %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	service := filepath.Join(dir, "paceline-proxy.service")
	if said := run("verify", "--man=no", "--recursive-errors=no", service, filepath.Join(dir, "paceline-proxy.socket")); strings.Contains(said, "paceline") {
		t.Errorf("verify: %s", said)
	}
	run("security", "--offline=true", "--threshold=20", "--no-pager", service) // of 100
}

// The Prometheus of compose.yaml takes its file, and finds the rules beside it.
func TestDeployedScrape(t *testing.T) {
	t.Parallel()
	promtool := need.Program(t, "promtool")
	dir := t.TempDir()
	for from, to := range map[string]string{"container/prometheus.yml": "prometheus.yml", "alerts.yaml": "alerts.yaml"} {
		text, err := os.ReadFile(deployed + from)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, to), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.CommandContext(t.Context(), promtool, "check", "config", filepath.Join(dir, "prometheus.yml")).CombinedOutput(); err != nil || !strings.Contains(string(out), "13 rules found") {
		t.Errorf("%v: %s", err, out)
	}
}

// A Prometheus with the file of deploy scrapes a proxy that works. Each query of the dashboard then has a
// series at least.
func TestDashboardHasSeries(t *testing.T) {
	t.Parallel()
	program := need.Program(t, "prometheus")
	server := newLawful(t, 50, time.Second)
	numbers := need.Address(t)
	p := newPassing(t, nil, "--to", server.URL, "--limit", "50/s", "--key-env", "DASHBOARD_KEY", "-H", "Authorization: {key}", "--metrics", numbers, "--metrics-names", "--log", "off")
	p.env = []string{"DASHBOARD_KEY=sk-dashboard-3Xw7"}
	p.begin()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() {
		for id := 1; ctx.Err() == nil; id++ {
			if resp, err := http.Get(fmt.Sprintf("http://%s/?id=%d", p.at, id)); err == nil {
				resp.Body.Close()
			}
			time.Sleep(20 * time.Millisecond)
		}
	}()
	text, err := os.ReadFile(deployed + "container/prometheus.yml")
	if err != nil {
		t.Fatal(err)
	}
	text = bytes.ReplaceAll(text, []byte("proxy:9090"), []byte(numbers))
	text = bytes.ReplaceAll(text, []byte("15s"), []byte("200ms"))
	text = bytes.ReplaceAll(text, []byte("rule_files: [alerts.yaml]\n"), nil)
	address := need.Address(t)
	cmd := exec.CommandContext(ctx, program, "--config.file="+write(t, "prometheus.yml", string(text)), "--storage.tsdb.path="+t.TempDir(), "--web.listen-address="+address, "--log.level=warn")
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { stop(); _ = cmd.Wait() }()
	queries := dashboardQueries(t)
	if len(queries) < 12 {
		t.Fatalf("%d queries", len(queries))
	}
	for end := time.Now().Add(time.Minute); len(queries) > 0; time.Sleep(200 * time.Millisecond) {
		for q := range queries {
			if n, err := seriesOf(address, q); err == nil && n > 0 {
				delete(queries, q)
			}
		}
		if time.Now().After(end) {
			t.Fatalf("these have no series: %v\n%s", queries, said.String())
		}
	}
}

// dashboardQueries are the queries of all panels and variables, as Grafana sends them.
func dashboardQueries(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(deployed + "container/grafana/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Panels     []struct{ Targets []struct{ Expr string } }
		Templating struct{ List []struct{ Query string } }
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	filled := strings.NewReplacer("$source", ".*", "$job", ".*", "$__rate_interval", "1m", "[1h]", "[1m]")
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			all[filled.Replace(target.Expr)] = true
		}
	}
	of := regexp.MustCompile(`^label_values\((\w+), (\w+)\)$`)
	for _, v := range d.Templating.List {
		if m := of.FindStringSubmatch(v.Query); m != nil {
			all[fmt.Sprintf("count by (%s) (%s)", m[2], m[1])] = true
		}
	}
	return all
}

// seriesOf is how many series a query has.
func seriesOf(address, query string) (int, error) {
	resp, err := http.Get("http://" + address + "/api/v1/query?query=" + url.QueryEscape(query))
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err
	}
	var answer struct {
		Status, Error string
		Data          struct{ Result []json.RawMessage }
	}
	if err := json.Unmarshal(b, &answer); err != nil || answer.Status != "success" {
		return 0, fmt.Errorf("%s: %s%s", query, answer.Error, b)
	}
	return len(answer.Data.Result), nil
}
