package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/cli/clitest"
	"github.com/paceline-go/paceline/internal/app/screen"
	"github.com/paceline-go/paceline/internal/testkit/race"
)

// The prices of each provider, and the other tables, fit and agree with the JSON.
func TestModelsTable(t *testing.T) {
	_, text, _ := command("models")
	_, object, _ := command("models", "-o", "json")
	clitest.Fits(t, text)
	var all []map[string]any
	if err := json.Unmarshal([]byte(object), &all); err != nil {
		t.Fatal(err)
	}
	for i, block := range strings.Split(strings.TrimSpace(text), "\n\n") {
		lines := strings.Split(block, "\n")
		var rows [][]string
		for _, line := range lines[1:] {
			if f := strings.Fields(line); len(f) > 5 && (f[0] == "–" || f[0][0] >= '0' && f[0][0] <= '9') {
				rows = append(rows, f)
			}
		}
		models := all[i]["models"].([]any)
		if len(rows) != len(models) {
			t.Errorf("%v: %d rows, %d models", all[i]["provider"], len(rows), len(models))
			continue
		}
		for k, row := range rows {
			m := models[k].(map[string]any)
			for n, name := range []string{"usd_per_million_input", "usd_per_million_output", "usd_per_million_cached_input", "context_tokens", "max_output_tokens"} {
				want := "–"
				if v, ok := m[name].(float64); ok && v != 0 {
					want = strconv.FormatFloat(v, 'f', -1, 64)
				}
				if row[n] != want {
					t.Errorf("%v, %s: %s, want %s", m, name, row[n], want)
				}
			}
		}
	}
}

func TestTextFits(t *testing.T) {
	race.Without(t)
	t.Parallel()
	proxy := filepath.Join(t.TempDir(), "proxy.yaml")
	if code, _, stderr := command("proxy", "--init", proxy); code != cli.ExitOK {
		t.Fatal(stderr)
	}
	for _, c := range []string{"proxy check " + proxy, "explain --providers"} {
		_, text, _ := command(strings.Fields(c)...)
		if text == "" {
			t.Errorf("%s prints nothing", c)
		}
		clitest.Fits(t, text)
	}
	saved := write(t, "saved.txt", "HTTP/1.1 429 Too Many Requests\nX-RateLimit-Remaining: 0\n\n")
	for _, c := range []string{"explain --provider github ", "explain --provider etherscan ", "explain "} {
		_, text, _ := command(strings.Fields(c + saved)...)
		clitest.Fits(t, text)
	}
	var all []struct{ Name string }
	_, object, _ := command("explain", "--providers", "-o", "json")
	if err := json.Unmarshal([]byte(object), &all); err != nil || len(all) < 30 {
		t.Fatal(err, len(all))
	}
	for _, p := range all {
		_, text, _ := command("explain", "--provider", p.Name)
		for line := range strings.SplitSeq(text, "\n") {
			if n := screen.Width(line); n > screen.TableWidth && strings.Contains(strings.TrimSpace(line[min(30, len(line)):]), " ") {
				t.Error(fmt.Sprint(p.Name, ": ", n, " columns: ", line))
			}
		}
	}
}
