package text

import (
	"cmp"
	"slices"
	"strings"
)

// Suggest returns the names that a user may have meant by name, the likeliest first. They begin with
// name, or differ from it by a slip or two.
func Suggest(name string, names []string) []string {
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
	if len(all) > 0 && all[0].off == 0 { // only capitals differ, so this name is the right one
		all = all[:1]
	}
	var out []string
	for _, g := range all[:min(len(all), most)] {
		out = append(out, g.name)
	}
	return out
}

// distance is the number of letters that separate two words. A letter may be changed, left out,
// added, or swapped with its neighbour.
func distance(a, b string) int {
	before, row, next := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next[0] = i + 1
		for j := range len(b) {
			change := row[j]
			if a[i] != b[j] {
				change++
			}
			next[j+1] = min(change, row[j+1]+1, next[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row, next = row, next, before
	}
	return row[len(b)]
}

// DidYouMean returns "; did you mean a or b?" for the end of an error, or "" if there are no names.
func DidYouMean(name string, names []string) string {
	if found := Suggest(name, names); len(found) > 0 {
		return "; did you mean " + strings.Join(found, " or ") + "?"
	}
	return ""
}
