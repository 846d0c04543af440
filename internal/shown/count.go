package shown

import (
	"fmt"
	"strings"
)

// Count is so many of something, in words for one of it and for more.
func Count(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprint(n, " ", more)
}

// Some names the first few of many, and says how many more there are.
func Some(names []string, few int) string {
	if more := len(names) - few; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), more)
	}
	return strings.Join(names, ", ")
}
