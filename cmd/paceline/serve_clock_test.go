package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/internal/testkit/pages"
)

// fetched asks a test server, and returns the status and text of the answer.
func fetched(t *testing.T, url string) (status int, text string) {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, strings.TrimSpace(string(b))
}

// TestServeClock: each kind of server counts by the virtual clock of --clock.
func TestServeClock(t *testing.T) {
	for _, c := range []struct {
		args, path string
		refused    int
		per        string
	}{
		{"gcra --limit 1 --window 1h --capacity 1 --level 1", "/", 429, "3600"},
		{"exchange --limit 1 --window 1h --nonces=false", "/api/request?api_key=key1", 429, "3600.001"},
		{"slack --preset slack:tier1", "/", 429, "60.001"},
	} {
		url, end := startServe(t, append(strings.Fields(c.args), "--clock", "1")...)
		url = strings.TrimSuffix(strings.TrimSuffix(url, "/"), "/api/request")
		for i, want := range []int{200, c.refused, 0, 200, c.refused} {
			if want == 0 {
				if status, now := fetched(t, fmt.Sprintf("%s/clock/sleep?client=a&seconds=%s", url, c.per)); status != 200 || now != c.per {
					t.Errorf("%s: %d %s", c.args, status, now)
				}
			} else if status, text := fetched(t, url+c.path); status != want {
				t.Errorf("%s: request %d: %d %s, want %d", c.args, i, status, text, want)
			}
		}
		end()
	}
}

func TestServeClockBadFlags(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"gcra --clock -1":                    "--clock -1: want 1 to 1000 clients",
		"exchange --clock 1001":              "--clock 1001: want 1 to 1000 clients",
		"github --clock -1":                  "--clock -1: want 1 to 1000 clients",
		"gcra --clock 1 --scale 2":           "--scale does not go with --clock",
		"github --clock 1 --scale 2":         "--scale does not go with --clock",
		"exchange --clock 1 --latency 1ms":   "--latency does not go with --clock",
		"gcra --clock 1 --latency-after 1ms": "--latency-after does not go with --clock",
		"openai --clock 1":                   "unknown flag: --clock",
	} {
		var says strings.Builder
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // what starts all the same ends at once
		code := execute(ctx, append([]string{"serve"}, strings.Fields(args)...), strings.NewReader(""), io.Discard, &says)
		if code != cli.ExitUsage || !strings.Contains(says.String(), want) {
			t.Errorf("%s: %d, %s, want %s", args, code, &says, want)
		}
	}
}

// TestServeClockClients runs the clients of the page, in each language. They do the same
// arithmetic, so they get the same figures.
func TestServeClockClients(t *testing.T) {
	need.NotShort(t, "clients in three languages for twenty virtual minutes; TestServeClock has the clock")
	end, says := "1200", "1270 requests, 0.79 % refused\n"
	if need.Long() { // the day of the page
		end, says = "86400", "108137 requests, 0.13 % refused\n"
	}
	text, err := os.ReadFile(top + "/docs/test-your-client.md")
	if err != nil {
		t.Fatal(err)
	}
	programs := map[string]string{"python": "python3", "ruby": "ruby"}
	n := 0
	for _, b := range pages.Read("test-your-client.md", string(text)).Blocks {
		program := programs[b.Language]
		if program == "" {
			continue
		}
		n++
		t.Run(b.Language, func(t *testing.T) {
			need.Program(t, program)
			url, stop := startServe(t, "gcra", "--clock", "10")
			file := filepath.Join(t.TempDir(), "client")
			if err := os.WriteFile(file, []byte(b.Text), 0o600); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), patient)
			defer cancel()
			out, err := exec.CommandContext(ctx, program, file, strings.Trim(url, "htp:/"), end).CombinedOutput()
			if err != nil || string(out) != says {
				t.Errorf("%v, %s, want %s", err, out, says)
			}
			stop()
		})
	}
	if n != len(programs) {
		t.Errorf("%d clients are on the page, want %d", n, len(programs))
	}
}
