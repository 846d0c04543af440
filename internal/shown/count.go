package shown

import "fmt"

// Count is so many of something, in words for one of it and for more.
func Count(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprint(n, " ", more)
}
