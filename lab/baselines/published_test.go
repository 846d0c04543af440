package baselines

import (
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/lab/strategy"
)

// page is what the checked page is made from, or of fewer seeds.
var page = sync.OnceValues(func() (*Page, error) {
	seeds := need.Fewer(4, 20)
	if *update {
		seeds = 20
	}
	return Run(context.Background(), seeds)
})

var update = flag.Bool("update", false, "write docs/published.md anew")

// TestPage: docs/published.md is what the reruns say.
func TestPage(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the page is made on amd64: others round sums of products otherwise")
	}
	if !*update {
		need.WholeOnly(t, "the page is of 20 seeds")
	}
	p, err := page()
	if err != nil {
		t.Fatal(err)
	}
	const name = "../../docs/published.md"
	if *update {
		if err := os.WriteFile(name, []byte(p.markdown()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	want, got := strings.Split(string(file), "\n"), strings.Split(p.markdown(), "\n")
	for i := range max(len(want), len(got)) {
		a, b := at(want, i), at(got, i)
		if a != b {
			t.Fatalf("docs/published.md is not what the reruns say; go test ./lab/baselines -run TestPage -update writes it:\n- %s\n+ %s", a, b)
		}
		if cells := strings.Count(strings.ReplaceAll(b, `\|`, ""), "|"); strings.Contains(b, "**") && cells != 6 {
			t.Errorf("%d bars in %.100s", cells, b)
		}
	}
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return ""
}

// Each why was written for a verdict. Where a rerun comes to another one, somebody has to read both again.
func TestVerdictsAreThoseThatTheWhysExplain(t *testing.T) {
	need.WholeOnly(t, "the verdicts are of 20 seeds")
	p, err := page()
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"an exchange client", "the gem's README", "the demo before it", "a gate for language models", "rolling counters for trading"}
	if len(p.Documents) != len(names) {
		t.Fatalf("%d documents", len(p.Documents))
	}
	all := map[string]bool{}
	for i, d := range p.Documents {
		if d.Name != names[i] || len(d.Claims) < 8 {
			t.Errorf("document %d is %q with %d claims, want %q", i, d.Name, len(d.Claims), names[i])
		}
		seen := map[string]bool{}
		for _, c := range d.Claims {
			if c.Verdict != c.written {
				t.Errorf("%s: %q is %s now (%s), and its why was written for %s: %s", d.Name, c.Claim, c.Verdict, c.Rerun, c.written, c.Why)
			}
			if c.Claim == "" || c.Setup == "" || c.Rerun == "" || c.Why == "" || seen[c.Claim] {
				t.Errorf("%s: a claim lacks something, or is there twice: %+v", d.Name, c)
			}
			if strings.Contains(c.Rerun, "NaN") || strings.Contains(c.Rerun, "Inf") || strings.Contains(c.Rerun, "%!") {
				t.Errorf("%s: %q: %s", d.Name, c.Claim, c.Rerun)
			}
			seen[c.Claim] = true
			all[c.Claim] = true
		}
		for _, table := range d.Tables {
			for _, row := range table.Rows {
				if len(row) != len(table.Heading) {
					t.Errorf("%s: %d cells under %d headings: %v", table.Title, len(row), len(table.Heading), row)
				}
			}
		}
	}
	if len(claimRows()) < 70 {
		t.Errorf("claims.md has %d claims", len(claimRows()))
	}
	for _, c := range claimRows() {
		if !all[c.Claim] {
			t.Errorf("claims.md: no rerun is of %q", c.Claim)
		}
	}
}

// The figures that were found wrong once: ten clients took 75 s for what one was said to take 315 s for, the hours until a bucket is
// empty were compared with that, and a ban that nobody published stood for what the limiters do.
func TestFiguresThatWereWrongOnce(t *testing.T) {
	p, err := page()
	if err != nil {
		t.Fatal(err)
	}
	cleared := map[string]*GemValue{}
	for _, r := range p.Runs {
		if r.Clear != nil {
			if r.Clients != "1 × 1" {
				t.Errorf("%s: cleared by %s clients", r.Strategy, r.Clients)
			}
			cleared[r.Strategy] = r.Clear
		}
	}
	for _, name := range []string{backoffName, remainingName} {
		if c := cleared[name]; c == nil || c.P5 < 314 || c.P95 > 317 || !near(c.P50, *c.Published, 0.05) {
			t.Errorf("%s: clears in %+v", name, c)
		}
	}
	if h, err := emptied(proportionalName, 100); err != nil || h < 6.5 || h > 7.7 {
		t.Errorf("%v: empty after %.2f h, published nearly 7", err, h)
	}
	cells := map[string][]string{}
	for _, row := range p.Documents[0].Tables[0].Rows {
		cells[row[0]] = row
	}
	for name, want := range map[string][]float64{ // published; without a ban, refused; with one, banned
		"the original: a gap and a ring": {74, 84.9, 0, 84.9, 0},
		"the ring alone":                 {85, 91.3, 2.8, 2.8, 100},
	} {
		for i, w := range want {
			if v, err := strconv.ParseFloat(cells[name][i+1], 64); err != nil || math.Abs(v-w) > 0.25 {
				t.Errorf("%s: %v, want %v", name, cells[name], want)
				break
			}
		}
	}
	// On the path with a tail the limiter as described goes on, refused now and then, unless a ban ends it.
	if row := cells["adaptive, as described"]; !strings.HasPrefix(row[6], "91.") || !strings.HasPrefix(row[7], "2.") || row[9] != "100" {
		t.Errorf("on the path with a tail: %v", row)
	}
}

// stays are laws of ours by which a slow client stays slow. Auto, which knows no quota, does not use what remains where no limit and no
// reset is stated.
var stays = map[string]bool{"auto": true}

// What is slow comes down beside what is fast, by every law of ours: in ten minutes they are within a tenth of each other, in forty both
// within a quarter of their fair 12 s. Fair is above that at first, while it fills its reserve. The demo whose author wished for it has
// neither.
func TestASlowClientComesDown(t *testing.T) {
	for _, s := range strategy.All() {
		if s.Baseline {
			continue
		}
		came := 0
		for seed := range uint64(3) {
			slow, fast, err := beside(s, seed+1, 10*time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			later, alike, err := beside(s, seed+1, 40*time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			if near(slow, fast, 0.1) && near(later, 12, 0.25) && near(alike, 12, 0.25) {
				came++
			} else if !stays[s.Name] {
				t.Errorf("%s, seed %d: from 20 and 4 s to %.1f and %.1f s in ten minutes, and %.1f and %.1f s in forty; want within a tenth, and 9 to 15", s.Name, seed+1, slow, fast, later, alike)
			}
		}
		if stays[s.Name] && came == 3 {
			t.Errorf("%s brings a slow client down now: it need not be excepted", s.Name)
		}
	}
}

func TestJudge(t *testing.T) {
	for want, holds := range map[Verdict][]bool{Confirmed: {true, true}, InPart: {false, true, true}, Refuted: {false, false}} {
		if got := judge(holds...); got != want {
			t.Errorf("%v is %s, want %s", holds, got, want)
		}
	}
	q := quantiles([]float64{3, 1, 2})
	for x, want := range map[float64]bool{0.9: false, 1: true, 2: true, 2.1: false} {
		if q.has(x) != want {
			t.Errorf("%v within %v: %v", x, q, !want)
		}
	}
}

// A claim is found by a beginning that no other has.
func TestClaimIsFoundByItsBeginning(t *testing.T) {
	for start, ok := range map[string]bool{"the gap is redundant": true, "the gap": true, "the": false, "no claim begins so": false} {
		func() {
			defer func() {
				if got := recover() == nil; got != ok {
					t.Errorf("%q: found is %v", start, got)
				}
			}()
			claim(start, Refuted, 1.0, 2.0)
		}()
	}
}

// markdown is the page as docs/published.md has it.
func (p *Page) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, `# Published systems: claims and reruns

Five documents describe how a client should keep to a rate limit. This page has each claim of theirs, with its figure. Beside it are
our rerun in the same set-up, a verdict, and the reason for the verdict. %s.

The reruns are in virtual time, with 20 seeds, and take seconds. A test writes this page
(`+"`go test ./lab/baselines -run TestPage -update`"+`), and checks it.

`, p.summary())
	for i := range p.Documents {
		d := &p.Documents[i]
		fmt.Fprintf(&b, "## %s\n\n%s\n\n| claim | set-up | rerun | verdict | why |\n|---|---|---|---|---|\n",
			capital(d.Name), d.About)
		for _, c := range d.Claims {
			markdownRow(&b, []string{c.Claim, c.Setup, c.Rerun, "**" + string(c.Verdict) + "**", c.Why})
		}
		for _, t := range d.Tables {
			fmt.Fprintf(&b, "\n%s:\n\n", t.Title)
			markdownRow(&b, t.Heading)
			b.WriteString(strings.Repeat("|---", len(t.Heading)) + "|\n")
			for _, row := range t.Rows {
				markdownRow(&b, row)
			}
		}
		b.WriteByte('\n')
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

func markdownRow(b *strings.Builder, cells []string) {
	for _, c := range cells {
		b.WriteString("| " + strings.ReplaceAll(c, "|", `\|`) + " ")
	}
	b.WriteString("|\n")
}
