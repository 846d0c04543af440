package baselines

import (
	_ "embed"
	"fmt"
	"strings"
	"sync"
)

//go:embed claims.md
var claimsText string

// claimRows are the rows of claims.md, with the formats of reruns in place of reruns.
var claimRows = sync.OnceValue(func() (all []Claim) {
	for line := range strings.Lines(claimsText) {
		cells := strings.Split(strings.Trim(line, "| \n"), " | ")
		if line[0] == '|' && len(cells) == 5 && cells[0] != "claim" {
			for i := range cells {
				cells[i] = strings.ReplaceAll(cells[i], `\|`, "|")
			}
			all = append(all, Claim{
				Claim: cells[0], Setup: cells[1], Rerun: cells[2], written: Verdict(cells[3]), Why: cells[4]})
		}
	}
	return all
})

// claim returns the claim of claims.md that begins with start, with the figures and the verdict of
// its rerun.
func claim(start string, verdict Verdict, figures ...any) Claim {
	var found []Claim
	for _, c := range claimRows() {
		if strings.HasPrefix(c.Claim, start) {
			found = append(found, c)
		}
	}
	if len(found) != 1 {
		panic(fmt.Sprintf("baselines: %d claims begin with %q, expected one", len(found), start))
	}
	c := found[0]
	c.Rerun, c.Verdict = fmt.Sprintf(c.Rerun, figures...), verdict
	return c
}
