package sending

import "math"

// otherFiles is how many files a process has open beside its connections: results, journals, stores, the page.
const otherFiles = 64

// connections returns how many connections a process may have if it may open so many files; at least one.
func connections(files uint64) int {
	if files <= otherFiles {
		return 1
	}
	return int(min(files-otherFiles, math.MaxInt32))
}
