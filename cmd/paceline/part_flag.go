package main

import (
	"strconv"

	"github.com/spf13/pflag"

	"github.com/paceline-go/paceline/internal/text/rate"
)

const (
	useUsage = "the part of each limit that is used, " + rate.PartForms + ", also of what the server says is left; " +
		"the rest is for others who use the same keys (default: all)"
	rampUsage = "how long the load takes to rise to all of it, at the start, after a rest, and after a refusal " +
		"for a load that rose too quickly (default: at once)"
)

// partValue is a flag for a part of a whole.
type partValue float64

func partVar(p *pflag.FlagSet, to *float64, name, usage string) {
	p.Var((*partValue)(to), name, usage)
}

func (v *partValue) String() string {
	if *v == 0 {
		return ""
	}
	return strconv.FormatFloat(float64(*v)*100, 'g', -1, 64) + "%"
}

func (v *partValue) Set(s string) error {
	f, err := rate.ParsePart(s)
	*v = partValue(f)
	return err
}

func (*partValue) Type() string { return "PART" }
