package main

import (
	"encoding/json"
	"log/slog"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/paceline-go/paceline/internal/app/proxy"
)

// TestReload: a file is applied after a change, if it is the same a second later, and at SIGHUP. An
// error in it is logged once, with its place, and changes nothing.
func TestReload(t *testing.T) {
	t.Chdir(t.TempDir())
	synctest.Test(t, func(t *testing.T) {
		version := 0
		write := func(name, text string) {
			version++
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(name, time.Time{}, time.Unix(int64(version), 0)); err != nil {
				t.Fatal(err)
			}
		}
		with := func(limit string) string {
			return "version: 1\nupstreams:\n  - {to: 'http://127.0.0.1:1', limits: [" + limit + "], header: {X-Key: '{key}'}, keys: [{name: a, file: a.key}]}\n"
		}
		write("a.key", "secret-1\n")
		write("p.yaml", with("1/s"))
		file, err := loadProxy("p.yaml", os.LookupEnv)
		if err != nil {
			t.Fatal(err)
		}
		var log, told strings.Builder
		var applied []proxy.Config
		r := &reload{
			name: "p.yaml", last: file, stamp: stampOf(file.Names), hup: make(chan os.Signal, 1),
			apply: func(c proxy.Config) error {
				if c.Listen != file.Config.Listen {
					return &proxy.ConfigError{Field: "Listen", Err: os.ErrInvalid}
				}
				applied = append(applied, c)
				return nil
			},
			log: slog.New(slog.NewTextHandler(&log, nil)), told: slog.New(slog.NewTextHandler(&told, nil)),
		}
		go r.run(t.Context())
		expect := func(what string, n int, logged string) {
			t.Helper()
			time.Sleep(3500 * time.Millisecond)
			synctest.Wait()
			if len(applied) != n || strings.Count(told.String(), "is applied") != n {
				t.Errorf("%s: applied %d times, want %d\n%s%s", what, len(applied), n, log.String(), told.String())
			}
			if logged == "" != (log.Len() == 0) || !strings.Contains(log.String(), logged) {
				t.Errorf("%s: logged %q, want %q", what, log.String(), logged)
			}
			if strings.Count(log.String(), "not applied") > 1 {
				t.Errorf("%s: it is logged again: %s", what, log.String())
			}
			log.Reset()
		}
		r.ended(nil, "")
		began := time.Now()
		reports := func(ok float64, line string) {
			t.Helper()
			registry := prometheus.NewRegistry()
			registry.MustRegister(r.metrics()...)
			all, err := registry.Gather()
			if err != nil || len(all) != 2 {
				t.Fatal(all, err)
			}
			at, success := all[0].GetMetric()[0].GetGauge().GetValue(), all[1].GetMetric()[0].GetGauge().GetValue()
			if changed := at >= float64(began.Unix())+1; success != ok || changed != (len(applied) > 0) {
				t.Errorf("last reload: %v at %v", success, at)
			}
			if lines := strings.Join(r.lines(), "\n"); line == "" != (lines == "") || !strings.Contains(lines, line) || strings.Contains(lines, "secret-") {
				t.Errorf("the page has %q, want %q", lines, line)
			}
		}
		reports(1, "")
		expect("nothing has changed", 0, "")
		write("p.yaml", with("2/s"))
		expect("a limit", 1, "")
		reports(1, "the configuration is applied; changed: upstreams.1.limits")
		if l := applied[0].Upstreams[0].Limits[0]; l.N != 2 {
			t.Errorf("the limit is %v", l)
		}
		write("p.yaml", with("2/s"))
		expect("written again", 1, "")
		write("a.key", "secret-2\n")
		expect("a key in its file", 2, "")
		if !strings.Contains(told.String(), "changed_keys=upstreams.1.limits\n") || strings.Contains(told.String(), "secret-") {
			t.Error(told.String())
		}
		write("p.yaml", with("2"))
		expect("a broken file", 2, `p.yaml:3:41: limits: \"2\" does not say per what time`)
		reports(0, "p.yaml:3:41: limits")
		write("p.yaml", "listen: 127.0.0.1:9\n"+with("3/s"))
		expect("what cannot change", 2, "p.yaml:1:9: listen: ")
		write("p.yaml", with("2/s"))
		expect("as it was", 2, "")
		reports(1, "")
		if n := strings.Count(told.String(), "is right again"); n != 1 {
			t.Errorf("a file as it was is told of %d times: %s", n, told.String())
		}
		write("p.yaml", with("3/s"))
		expect("mended", 3, "")
		r.hup <- syscall.SIGHUP
		synctest.Wait()
		if len(applied) != 4 {
			t.Errorf("SIGHUP: applied %d times", len(applied))
		}
		if err := os.Remove("p.yaml"); err != nil {
			t.Fatal(err)
		}
		expect("gone", 4, "no such file")
	})
}

// With --log json, an error of the start is one line of JSON, too: of a file with two mistakes, of a flag, and of an
// address that is taken. The exit code is that of the text.
func TestErrorsOfTheStartAsJSON(t *testing.T) {
	t.Parallel()
	wrong := write(t, "paceline.yaml", "version: 1\nlisen: x\nupstreams: [{to: \"http://127.0.0.1:1\", limit: 5/s}]\n")
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, args := range [][]string{
		{"--config", wrong}, {"--to", "http://127.0.0.1:1", "--limit", "5"}, {"--config", "gone.yaml"}, {"--to", "http://127.0.0.1:1", "--nosuch"},
		{"--to", "http://127.0.0.1:1", "--limit", "5/s", "--listen", taken.Addr().String(), "--admin", "off", "--recent=false"},
	} {
		code, _, plain := command(append([]string{"proxy"}, args...)...)
		got, stdout, stderr := command(append([]string{"proxy", "--log", "json"}, args...)...)
		var line struct{ Level, Msg, Err string }
		if err := json.Unmarshal([]byte(stderr), &line); err != nil || strings.Count(stderr, "\n") != 1 || stdout != "" {
			t.Errorf("%q: %v, want one line of JSON:\n%s%s", args, err, stdout, stderr)
		}
		if got != code || code == 0 || line.Level != "ERROR" || "paceline: "+line.Err+"\n" != plain {
			t.Errorf("%q: exit %d and %+v, want %d and %q", args, got, line, code, plain)
		}
	}
}
