package yamlfile

import (
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/paceline-go/paceline/internal/text"
	"github.com/paceline-go/paceline/internal/text/rate"
)

// Kinds of values that many files have.
var (
	Text   = Value(AText, (*Reader).Text)
	Count  = Value(ACount, (*Reader).Count)
	Number = Value(ANumber, (*Reader).Number)
	Yes    = Value(ASwitch, (*Reader).Yes)
	Span   = Value(ASpan, (*Reader).Duration)
	// Itself is a text that is kept as a node, with its place.
	Itself = Value(AText, func(_ *Reader, n *yaml.Node, _ string) *yaml.Node { return n })
)

// Choice is the kind of one of several names.
func Choice(names ...string) Kind {
	return Value(Form{"enum": names},
		func(r *Reader, n *yaml.Node, key string) string { return r.OneOf(n, key, names) })
}

// Version is the kind of the number of a format, which is this one.
func Version(only int) Kind {
	return Kind{As: Form{"const": only}, whole: true, must: true, missing: ": add version: " + strconv.Itoa(only),
		Read: func(d Collector, n *yaml.Node, key string, _ reflect.Value) {
			if n.Value != strconv.Itoa(only) || n.Kind != yaml.ScalarNode {
				d.Refuse(n, "%s: %s is not %d, the only one there is", key, Show(n), only)
			}
		}}
}

// Show returns what a node is, for errors.
func Show(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Tag == "!!null":
		return "nothing"
	}
	const most = 60
	if len(n.Value) > most {
		return strconv.Quote(n.Value[:most]) + "…"
	}
	return strconv.Quote(n.Value)
}

// Text reads a text.
func (r *Reader) Text(n *yaml.Node, what string) string {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		r.Refuse(n, "%s: %s is no text", what, Show(n))
		return ""
	}
	return n.Value
}

// Named reads one of several names; its error lists them.
func (r *Reader) Named(n *yaml.Node, what string, to interface{ UnmarshalText([]byte) error }) {
	if n.Kind != yaml.ScalarNode {
		r.Refuse(n, "%s: %s is no name", what, Show(n))
		return
	}
	if err := to.UnmarshalText([]byte(n.Value)); err != nil {
		r.Refuse(n, "%s: %s", what, strings.TrimPrefix(err.Error(), "fairshare: "))
	}
}

// OneOf reads one of the names.
func (r *Reader) OneOf(n *yaml.Node, what string, names []string) string {
	for _, name := range names {
		if n.Kind == yaml.ScalarNode && n.Value == name {
			return name
		}
	}
	r.Refuse(n, "%s: %s is none of %s%s", what, Show(n), List(names), text.DidYouMean(n.Value, names))
	return ""
}

// Duration reads a duration that is not negative.
func (r *Reader) Duration(n *yaml.Node, what string) time.Duration {
	v, err := time.ParseDuration(n.Value)
	if days, ok := strings.CutSuffix(n.Value, "d"); err != nil && ok {
		var f float64
		if f, err = strconv.ParseFloat(days, 64); err == nil && math.Abs(f) < 36500 {
			v = time.Duration(f * 24 * float64(time.Hour))
		} else {
			v = -1
		}
	}
	switch {
	case n.Kind != yaml.ScalarNode || err != nil:
		r.Refuse(n, "%s: %s is no time: want one such as 500ms, 30s, 1h30m or 2d", what, Show(n))
		return 0
	case v < 0:
		r.Refuse(n, "%s: %s is not 0 or more", what, Show(n))
		return 0
	}
	return v
}

// Count reads a whole number of 1 or more.
func (r *Reader) Count(n *yaml.Node, what string) int {
	v, err := strconv.ParseInt(n.Value, 10, 64)
	if n.Kind != yaml.ScalarNode || err != nil || v < 1 {
		r.Refuse(n, "%s: %s is not a whole number of 1 or more", what, Show(n))
		return 0
	}
	return int(min(v, math.MaxInt))
}

// Number reads a number that is finite.
func (r *Reader) Number(n *yaml.Node, what string) float64 {
	v, err := strconv.ParseFloat(n.Value, 64)
	if n.Kind != yaml.ScalarNode || err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		r.Refuse(n, "%s: %s is no number, want one such as 0.5 or 2", what, Show(n))
		return 0
	}
	return v
}

// Yes reads true or false.
func (r *Reader) Yes(n *yaml.Node, what string) bool {
	if n.Kind != yaml.ScalarNode || n.Value != "true" && n.Value != "false" {
		r.Refuse(n, "%s: %s is neither true nor false", what, Show(n))
	}
	return n.Value == "true"
}

// Rate reads N/U, so many per unit of time.
func (r *Reader) Rate(n *yaml.Node, what string) (count int64, per time.Duration) {
	v, err := rate.Parse(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil {
		r.Refuse(n, "%s: %s is no rate: want one such as %s", what, Show(n), rate.Forms)
		return 0, 0
	}
	return v.N, v.Per
}
