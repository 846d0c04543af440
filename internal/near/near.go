// Package near finds the names that somebody may have meant who wrote another, for errors. It is arithmetic on text.
package near

import (
	"cmp"
	"slices"
	"strings"
)

// Names returns the names that somebody may have meant, the likeliest first: those that begin so, and those that a slip or two away.
func Names(name string, names []string) []string {
	const most = 5
	type guess struct {
		name string
		off  int
	}
	var all []guess
	low := strings.ToLower(name)
	slips := min(2, len(low)/3)
	for _, n := range names {
		off := distance(low, strings.ToLower(n))
		if low != "" && strings.HasPrefix(strings.ToLower(n), low) {
			off = min(off, 1)
		}
		if off <= max(slips, 1) && off < len(low) {
			all = append(all, guess{n, off})
		}
	}
	slices.SortStableFunc(all, func(a, b guess) int { return cmp.Or(a.off-b.off, strings.Compare(a.name, b.name)) })
	if len(all) > 0 && all[0].off == 0 { // it is that, in other letters
		all = all[:1]
	}
	var out []string
	for _, g := range all[:min(len(all), most)] {
		out = append(out, g.name)
	}
	return out
}

// distance is how many letters must be changed, left out or added to make one of the other.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := before
			if a[i] != b[j] {
				change++
			}
			before = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// Or is "; did you mean a or b?", or nothing.
func Or(name string, names []string) string {
	if found := Names(name, names); len(found) > 0 {
		return "; did you mean " + strings.Join(found, " or ") + "?"
	}
	return ""
}
