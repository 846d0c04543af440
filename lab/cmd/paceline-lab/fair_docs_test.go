package main

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/lab/sim/compare"
)

// TestFairPage: docs/fair.md says what its commands say. Each command in a block
// of sh is run, for a short time where it takes real time; a table shows the figures of those between it and the
// table before, and pictures are what they draw.
func TestFairPage(t *testing.T) {
	race.Without(t)
	if !*update {
		need.WholeOnly(t, "its commands simulate 300 fleets")
	}
	t.Chdir("../../..") // where the page's commands are run
	const file = "docs/fair.md"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	p := fairPage{T: t}
	got := p.checked(string(text))
	if p.cells < 110 || p.charts < 2 {
		t.Errorf("%d figures and %d pictures were checked, want 110 and 2 at least", p.cells, p.charts)
	}
	p.keep(file, string(text), got)
}

// keep sees that a file says what it should, and with -update writes it.
func (p *fairPage) keep(file, text, got string) {
	switch {
	case got == text:
	case !*update:
		p.Errorf("%s is not what its commands say; go test ./lab/cmd/paceline-lab -run FairPage -update writes it:\n%s", file, firstChange(text, got))
	default:
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			p.Fatal(err)
		}
	}
}

func firstChange(want, got string) string {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return "- " + a[i] + "\n+ " + b[i]
		}
	}
	return ""
}

// fairPage checks a page.
type fairPage struct {
	*testing.T
	rows          []figureRow // of the commands since the last table
	filled        []string    // columns of the table that have a figure
	yaml          string      // the fleet that it shows
	cells, charts int
}

// figureRow is what a command says of a strategy in a scenario, by the names that figures have in the head of a table.
type figureRow struct {
	strategy, scenario string
	figures            map[string]string
}

// checked runs the commands, and returns the page with what they say.
func (p *fairPage) checked(page string) string {
	lines := strings.Split(page, "\n")
	fenced, head := "", []string(nil)
	scenario := ""
	for i, line := range lines {
		switch {
		case strings.HasPrefix(line, "```"):
			if fenced == "" {
				fenced = strings.TrimPrefix(line, "```") + "."
			} else {
				fenced = ""
			}
		case fenced == "sh.":
			p.command(line)
		case fenced == "yaml.":
			p.yaml += line + "\n"
		case fenced != "" || !strings.HasPrefix(line, "|"):
			if head != nil {
				p.columns(head)
				head, scenario, p.rows, p.filled = nil, "", nil, nil
			}
		case head == nil:
			head = cells(line)
		case strings.HasPrefix(line, "|---"):
		default:
			lines[i] = p.row(head, line, &scenario)
		}
	}
	return strings.Join(lines, "\n")
}

// columns finds those of which no command says anything.
func (p *fairPage) columns(head []string) {
	for _, name := range head {
		if slices.Contains(figureNames, name) && !slices.Contains(p.filled, name) {
			p.Errorf("no run has a %q", name)
		}
	}
}

func cells(line string) []string {
	all := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
	for i := range all {
		all[i] = strings.TrimSpace(all[i])
	}
	return all
}

// called are the names of what a page calls otherwise.
var called = map[string]string{
	"fairshare.Fair": "fair", "the gem's best": best, "exponential backoff": "exponential-backoff",
	"token bucket, 10 at once": "cold-10", "the same, starts over 60 s": "spread-60s",
	"5,000 each hour, 10": "fixed-10", "5,000 each hour, 50": "fixed-50",
}

// named is what is called so, or the name itself.
func named(cell string) string {
	name := strings.Trim(cell, "`* ")
	if other, ok := called[name]; ok {
		return other
	}
	return name
}

// row writes the figures of a row. A row of a strategy alone is of the scenario before. A column may be of a figure,
// or of a strategy.
func (p *fairPage) row(head []string, line string, scenario *string) string {
	got := cells(line)
	if len(got) != len(head) {
		p.Errorf("%d cells under a head of %d: %s", len(got), len(head), line)
		return line
	}
	strategy, before := "", *scenario
	*scenario = ""
	for _, cell := range got {
		for _, r := range p.rows {
			if r.scenario == named(cell) {
				*scenario = r.scenario
			}
			if r.strategy == named(cell) {
				strategy = r.strategy
			}
		}
	}
	if *scenario == "" && strategy != "" {
		*scenario = before
	}
	for i, name := range head {
		column := strategy
		isStrategy := slices.ContainsFunc(p.rows, func(r figureRow) bool { return r.strategy == named(name) })
		if isStrategy {
			column = named(name)
		} else if !slices.Contains(figureNames, name) {
			continue
		}
		var of []figureRow
		for _, r := range p.rows {
			if (column == "" || r.strategy == column) && (*scenario == "" || r.scenario == *scenario) {
				of = append(of, r)
			}
		}
		if len(of) != 1 {
			p.Errorf("%d runs of the commands above are of %q in this row: %s", len(of), name, line)
			return line
		}
		if _, ok := of[0].figures[name]; ok || isStrategy {
			p.filled = append(p.filled, name)
		}
		got[i] = p.cell(of[0], name, isStrategy, strings.Contains(name, "**"))
	}
	return strings.ReplaceAll("| "+strings.Join(got, " | ")+" |", "|  |", "| |")
}

// cell writes one figure of a run, or, under the name of its strategy, the three that matter most.
func (p *fairPage) cell(r figureRow, name string, isStrategy, bold bool) string {
	figure, ok := r.figures[name]
	if isStrategy {
		figure, ok = r.figures["refused %"]+" %, "+r.figures["CV of shares %"]+" %, "+r.figures["longest sleep s"]+" s", true
		p.cells += 2
	}
	if !ok {
		return "–"
	}
	p.cells++
	if bold {
		return "**" + figure + "**"
	}
	return figure
}

// figureNames are those that tables may have in their heads.
var figureNames = []string{"refused %", "CV of shares %", "longest sleep s", "unused %", "cleared in s",
	"furthest group off its share %", "CV of processes when steady %", "refused when steady %",
	"CV of shares in a window %", "unused of a window %", "refused per client and window", "CV of shares when steady %", "share of ours", "refused of ours %"}

var atWork = regexp.MustCompile(`^paceline(-lab)? `)

// command runs a line of a block.
func (p *fairPage) command(line string) {
	line, _, _ = strings.Cut(line, " #")
	m := atWork.FindStringSubmatch(line)
	if m == nil || strings.HasSuffix(strings.TrimSpace(line), "&") { // a server that is started for the others is started here
		return
	}
	args := strings.Fields(line)[1:]
	if m[1] == "" {
		p.program(args)
		return
	}
	has := func(name string) int { return slices.Index(args, name) }
	run := p.brief
	if has("throttle") == 1 {
		run = p.figures
	}
	if i := has("--chart") + 1; i > 0 && strings.HasPrefix(args[i], "docs/img/") {
		p.picture(args, i, run)
	} else {
		run(args)
	}
}

// program runs the program paceline, quickly.
func (p *fairPage) program(args []string) {
	if args[0] == "run" {
		p.put(args, "requests.jsonl", `{"id":"1","url":"http://127.0.0.1:9/"}`+"\n")
		args = append(args, "--dry-run")
	}
	if out, err := exec.CommandContext(p.Context(), paceline(p.T), args...).CombinedOutput(); err != nil {
		p.Errorf("paceline %v: %v: %s", args, err, out)
	}
}

func (p *fairPage) run(args []string) []byte { return []byte(printedOnce(p.T, args...)) }

// picture draws one, and compares it with the file's.
func (p *fairPage) picture(args []string, at int, run func([]string)) {
	file := args[at]
	args[at] = filepath.Join(p.TempDir(), filepath.Base(file))
	run(args)
	drawn, err := os.ReadFile(args[at])
	if err != nil {
		p.Fatal(err)
	}
	p.charts++
	if *update {
		if err := os.WriteFile(file, drawn, 0o644); err != nil {
			p.Fatal(err)
		}
	}
	if there, err := os.ReadFile(file); exactHere && (err != nil || !bytes.Equal(there, drawn)) {
		p.Errorf("%v: %s is not what %v draws; -update writes it", err, file, args)
	}
}

// exactHere: the pages are made on amd64; others round sums of products otherwise.
const exactHere = runtime.GOARCH == "amd64"

// figures runs a comparison, and keeps what it says.
func (p *fairPage) figures(args []string) {
	text := p.run(append(args, "-o", "json"))
	if !exactHere {
		p.Skip("the pages are made on amd64: others round sums of products otherwise")
	}
	var r struct {
		Strategies []compare.Row
		Strategy   string
		Rows       []struct {
			Scenario string
			Figures  []struct {
				Name string
				compare.Spread
			}
		}
	}
	if err := json.Unmarshal(text, &r); err != nil {
		p.Fatalf("%v: %v", args, err)
	}
	for _, s := range r.Strategies {
		row := figureRow{s.Name, s.Scenario, map[string]string{"refused %": spread(s.RetryPercent), "CV of shares %": spread(s.CV),
			"longest sleep s": spread(s.MaxSleep), "unused %": spread(s.Unused)}}
		if s.WindowCV != nil {
			row.figures["CV of shares %"] = spread(*s.WindowCV)
		}
		if s.Clear != nil {
			row.figures["cleared in s"] = spread(*s.Clear)
		}
		p.rows = append(p.rows, row)
	}
	for _, s := range r.Rows {
		row := figureRow{r.Strategy, s.Scenario, map[string]string{}}
		for _, f := range s.Figures {
			row.figures[f.Name] = spread(f.Spread)
		}
		p.rows = append(p.rows, row)
	}
}

// spread writes median and worst.
func spread(s compare.Spread) string {
	number := func(v *float64) string {
		switch {
		case v == nil:
			return "never"
		case *v == 0:
			return "0"
		case *v < 0.995: // to two places
			return strconv.FormatFloat(max(*v, 0.01), 'f', 2, 64)
		case *v < 19.95:
			return strconv.FormatFloat(*v, 'f', 1, 64)
		}
		return strconv.FormatFloat(math.Round(*v), 'f', 0, 64)
	}
	return number(s.Median) + " / " + number(s.Worst)
}

// replace puts another word in the place of one of args.
func replace(args []string, name, with string) {
	if i := slices.Index(args, name); i >= 0 {
		args[i] = with
	}
}

// put writes a file that a command names.
func (p *fairPage) put(args []string, name, text string) { replace(args, name, write(p.T, name, text)) }

// brief runs a command that has no figures on the page, quickly.
func (p *fairPage) brief(args []string) {
	switch {
	case slices.Contains(args, "lab/sim/scenario/testdata/company.yaml"):
		p.company(args)
		return
	case args[0] == "sim":
		p.put(args, "fleet.yaml", p.yaml)
		replace(args, "fleet.html", filepath.Join(p.TempDir(), "fleet.html"))
	}
	p.run(args)
}

// company holds what the page says of nine that give way to a greedy one.
func (p *fairPage) company(args []string) {
	var r struct {
		Groups []struct {
			Strategy string
			Share    float64 `json:"mean_share_steady"`
		}
	}
	if err := json.Unmarshal(p.run(append(args, "-o", "json")), &r); err != nil || len(r.Groups) != 2 {
		p.Fatalf("%v: %d groups", err, len(r.Groups))
	}
	if g := r.Groups[0]; g.Strategy != "fair" || !(g.Share > 0.01 && g.Share < 0.25) {
		p.Errorf("%s has %v of its share beside a greedy one; the page says a fifth or less", g.Strategy, g.Share)
	}
}
