package prom_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/observe"
	"github.com/paceline-go/paceline/observe/prom"
)

// Prometheus' own tool finds nothing wrong with the rules, nor with the series, and each rule fires when it should and not before.
func TestPromtool(t *testing.T) {
	promtool := need.Program(t, "promtool")
	run := func(input string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), promtool, args...)
		cmd.Stdin = strings.NewReader(input)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	run("", "check", "rules", "../../deploy/alerts.yaml")
	run("", "test", "rules", "testdata/alerts.yaml")
	text, _ := scrape(t, paceline.NewGate(limit.MustRolling(5, time.Second)))
	run(text, "check", "metrics")
}

// A Prometheus scrapes a Gate and a Pool's worth of series, reads the rules, and has the numbers of the Snapshot.
func TestPrometheusScrapes(t *testing.T) {
	program := need.Program(t, "prometheus")
	g := paceline.NewGate(limit.MustRolling(1000, time.Minute))
	for range 7 {
		p, err := g.Wait(t.Context(), limit.One)
		if err != nil {
			t.Fatal(err)
		}
		p.Settle(limit.Outcome{Result: limit.Accepted})
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", prom.Handler(observe.NameSource("gate", g)))
	server := httptest.NewServer(mux)
	defer server.Close()
	rules, err := filepath.Abs("../../deploy/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	err = os.WriteFile(config, fmt.Appendf(nil, "global: {scrape_interval: 200ms, evaluation_interval: 200ms}\nrule_files: [%q]\nscrape_configs: [{job_name: paceline, static_configs: [{targets: [%q]}]}]\n",
		rules, strings.TrimPrefix(server.URL, "http://")), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cmd := exec.CommandContext(ctx, program, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address, "--log.level=warn")
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cancel()
		cmd.Wait()
		if t.Failed() {
			t.Log(said.String())
		}
	}()
	ask := func(path string, v any) error {
		resp, err := http.Get("http://" + address + path)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		return json.NewDecoder(resp.Body).Decode(v)
	}
	var answer struct {
		Data struct {
			Result []struct {
				Metric map[string]string
				Value  [2]any
			}
		}
	}
	value := func(query string) (float64, bool) {
		answer.Data.Result = nil
		if err := ask("/api/v1/query?query="+url.QueryEscape(query), &answer); err != nil || len(answer.Data.Result) != 1 {
			return 0, false
		}
		v, err := strconv.ParseFloat(answer.Data.Result[0].Value[1].(string), 64)
		return v, err == nil
	}
	s := g.Snapshot()
	for query, want := range map[string]float64{
		`paceline_requests_total{source="gate",result="accepted"}`:                                 float64(s.Accepted),
		`paceline_limit_ceiling{limit="requests"}`:                                                 float64(s.Limits[0].Allowed),
		`paceline_limit_used{limit="requests"}`:                                                    float64(s.Limits[0].Used),
		`paceline_wait_seconds_count{limit="none"}`:                                                float64(s.Waits[0].Count),
		`histogram_quantile(0.99, sum by (le) (paceline_wait_seconds_bucket)) < 1`:                 0.00099,
		`count(count by (__name__) ({__name__=~"paceline_.*"})) > bool 10`:                         1,
		`scrape_samples_scraped{job="paceline"} == scrape_samples_post_metric_relabeling > bool 0`: 1,
	} {
		var got float64
		ok := false
		for range 300 {
			if got, ok = value(query); ok {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		if !ok || got != want {
			t.Errorf("%s is %v (%v), want %v", query, got, ok, want)
		}
	}
	var groups struct {
		Data struct {
			Groups []struct {
				Rules []struct{ Name, Health, LastError string }
			}
		}
	}
	for range 100 {
		if err := ask("/api/v1/rules", &groups); err != nil {
			t.Fatal(err)
		}
		if len(groups.Data.Groups) == 1 && groups.Data.Groups[0].Rules[0].Health != "unknown" {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if len(groups.Data.Groups) != 1 || len(groups.Data.Groups[0].Rules) != 13 {
		t.Fatalf("%+v", groups)
	}
	for _, r := range groups.Data.Groups[0].Rules {
		if r.Health != "ok" {
			t.Errorf("%s is %s: %s", r.Name, r.Health, r.LastError)
		}
	}
}
