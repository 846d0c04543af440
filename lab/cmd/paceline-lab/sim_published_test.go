package main

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/internal/testkit/race"
)

// formSeeds is how many seeds the published claims are run with. What is printed of one has the same form as that of two.
func formSeeds() string { return need.Fewer("1", "2") }

func TestSimPublished(t *testing.T) {
	race.Without(t)
	for args, want := range map[string]string{"--seeds 0": "--seeds 0 is not from 1", "-o xml": `--output "xml"`} {
		if code, _, errs := simulate(t.Context(), "", append([]string{"published"}, strings.Fields(args)...)...); code != cli.ExitUsage || !strings.Contains(errs, want) {
			t.Errorf("%s: exit %d: %s", args, code, errs)
		}
	}
	out := printedOnce(t, "sim", "published", "--seeds", formSeeds(), "-o", "json")
	var p struct {
		Seeds     int
		Documents []struct {
			Name   string
			Claims []struct{ Claim, Setup, Rerun, Verdict, Why string }
		}
		Runs []struct {
			Clients string
			Clear   *struct{ P50 float64 } `json:"clear_s"`
		}
	}
	if err := json.Unmarshal([]byte(out), &p); err != nil || strconv.Itoa(p.Seeds) != formSeeds() || len(p.Documents) != 5 {
		t.Fatalf("%v, %d documents of %d seeds", err, len(p.Documents), p.Seeds)
	}
	if last := p.Runs[len(p.Runs)-1]; last.Clients != "1 × 1" || last.Clear == nil || last.Clear.P50 < 314 || last.Clear.P50 > 316 {
		t.Errorf("4,500 requests are cleared by %s in %+v s, want 315", last.Clients, last.Clear)
	}
}
