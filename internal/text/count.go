package text

import (
	"fmt"
	"strings"
)

// ByUser is why a key rests that its user has paused. Programs compare it, to end that pause.
const ByUser = "by its user"

// Count returns a number with its noun: one for 1, more for any other number.
func Count(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprint(n, " ", more)
}

// Some lists the first few names, and says how many more there are.
func Some(names []string, few int) string {
	if more := len(names) - few; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), more)
	}
	return strings.Join(names, ", ")
}
