package pages

import (
	"fmt"
	"testing"

	"github.com/spf13/cobra"
)

const page = "# A page\n" +
	"<!-- go: var x int -->\n" +
	"Type `paceline-lab sim a.yaml` or `go run ./lab/cmd/paceline-lab proof`, and not `paceline run x`.\n" +
	"```sh long\n" +
	"echo '1 2' | paceline-lab sim \\\n" +
	"  - --seed \"$SEED\"\n" +
	"```\n" +
	"<!-- prints: done -->\n" +
	"```go\n" +
	"paceline-lab.Nothing\n" +
	"```\n"

func TestRead(t *testing.T) {
	p := Read("a.md", page)
	if len(p.Blocks) != 2 || len(p.Prelude) != 1 || p.Prelude[0] != "var x int" {
		t.Fatalf("%+v", p)
	}
	b := p.Blocks[0]
	if b.Language != "sh" || b.Word != "long" || b.Line != 5 || fmt.Sprint(b.Prints) != "[done]" || !b.Lab() {
		t.Errorf("%+v", b)
	}
	if other := (&Block{Text: "paceline run x # beside paceline-labels\n"}); other.Lab() {
		t.Errorf("%+v is taken for one of the laboratory", other)
	}
}

func TestCommands(t *testing.T) {
	of := func(program string) (all []string) {
		for _, line := range shown(page) {
			for _, args := range commands(program, line) {
				all = append(all, fmt.Sprint(args))
			}
		}
		return all
	}
	if got, want := fmt.Sprint(of("paceline-lab")), "[[sim a.yaml] [proof] [sim - --seed X]]"; got != want {
		t.Errorf("paceline-lab is run with %s, want %s", got, want)
	}
	if got, want := fmt.Sprint(of("paceline")), "[[run x]]"; got != want {
		t.Errorf("paceline is run with %s, want %s", got, want)
	}
}

func TestParse(t *testing.T) {
	for args, wrong := range map[string]bool{
		"sim --seed 3": false, "sim --seed": false, "sim --seed x": true, "sim --nix 3": true, "moved x": true,
	} {
		root, sim := &cobra.Command{Use: "p"}, &cobra.Command{Use: "sim", Run: func(*cobra.Command, []string) {}}
		sim.Flags().Int("seed", 0, "")
		root.AddCommand(sim, &cobra.Command{Use: "moved", Hidden: true, DisableFlagParsing: true, Run: sim.Run})
		words := commands("p", "p "+args)[0]
		if err := parse(root, words); (err != nil) != wrong {
			t.Errorf("%s: %v", args, err)
		}
	}
}
