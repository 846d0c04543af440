package cli

import (
	"fmt"
	"strconv"
)

// Level is a flag for what a quota holds at the start: a whole number, or full. The zero Level is an
// empty quota.
type Level int64

const full Level = -1

// Set implements pflag.Value.
func (l *Level) Set(s string) error {
	if s == "full" {
		*l = full
		return nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 {
		return fmt.Errorf("expected a whole number, or full")
	}
	*l = Level(n)
	return nil
}

// String implements pflag.Value.
func (l *Level) String() string {
	if *l == full {
		return "full"
	}
	return strconv.FormatInt(int64(*l), 10)
}

// Type implements pflag.Value.
func (*Level) Type() string { return "N" }

// Of returns the level of a quota that holds so much. ok is false if it holds less.
func (l Level) Of(holds int64) (level int64, ok bool) {
	if l == full {
		return holds, true
	}
	return int64(l), int64(l) <= holds
}
