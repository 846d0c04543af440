package scenario

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/paceline-go/paceline/internal/strategy"
	"github.com/paceline-go/paceline/latency"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/sim/fleet"
	"github.com/paceline-go/paceline/throttle"
)

type decoder struct {
	file string
	open func(string) (io.ReadCloser, error)
	errs []*Error
	last int // line of the file
}

// refuse notes what is wrong at a node, once however often the node is referred to.
func (d *decoder) refuse(n *yaml.Node, format string, a ...any) {
	e := &Error{File: d.file, Problem: fmt.Sprintf(format, a...)}
	if n != nil {
		e.Line = min(n.Line, d.last) // what is missing at the end is on the line after it, for the parser
	}
	if !slices.ContainsFunc(d.errs, func(was *Error) bool { return *was == *e }) {
		d.errs = append(d.errs, e)
	}
}

// scenario reads the file's mapping, and what must be in it.
func (d *decoder) scenario(root *yaml.Node, s *fleet.Scenario) {
	mapping(d, root, "", scenarioFields, s)
	for _, key := range []string{"version", "duration", "groups"} {
		if member(root, key) == nil {
			d.refuse(root, "%s is missing", key)
		}
	}
	server := member(root, "server")
	if level := s.Server.Level; server != nil && level == 0 && !s.Server.Full && s.Server.Kind != fleet.Bucket && s.Server.Kind != fleet.GCRA {
		if at := member(server, "level"); at != nil && at.Value == "0" {
			d.refuse(at, "level: 0 of a %v server: want 1 or more, or full", s.Server.Kind)
		}
	}
	groups := member(root, "groups")
	if groups == nil || groups.Kind != yaml.SequenceNode {
		return
	}
	for _, n := range groups.Content {
		if n = resolved(n); n.Kind == yaml.MappingNode && member(n, "strategy") == nil {
			d.refuse(n, "strategy is missing: want one of %s", list(strategies()))
		}
	}
}

func strategies() (names []string) {
	for _, s := range strategy.All() {
		names = append(names, s.Name)
	}
	return names
}

// mapping reads one, each key once.
func mapping[T any](d *decoder, n *yaml.Node, what string, fields []field[T], to *T) {
	n = resolved(n)
	if n.Kind != yaml.MappingNode {
		d.refuse(n, "%s: %s is no mapping: want %s", what, show(n), list(keys(fields)))
		return
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], resolved(n.Content[i+1])
		if line, twice := seen[key.Value]; twice {
			d.refuse(key, "%s is there already, in line %d", show(key), line)
			continue
		}
		seen[key.Value] = key.Line
		known := false
		for _, f := range fields {
			if known = key.Kind == yaml.ScalarNode && f.key == key.Value; known {
				f.set(d, value, to)
				break
			}
		}
		if !known {
			in := ""
			if what != "" {
				in = " in " + what
			}
			d.refuse(key, "%s is not known%s: want %s", show(key), in, list(keys(fields)))
		}
	}
}

// sequence reads a list of mappings.
func sequence[T any](d *decoder, n *yaml.Node, what string, fields []field[T], to *[]T) {
	if n.Kind != yaml.SequenceNode {
		d.refuse(n, "%s: %s is no list: want items that begin with \"- \"", what, show(n))
		return
	}
	for _, item := range n.Content {
		var v T
		mapping(d, item, what, fields, &v)
		*to = append(*to, v)
	}
}

// resolved follows a reference to an anchor.
func resolved(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

func (d *decoder) text(n *yaml.Node, what string) string {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		d.refuse(n, "%s: %s is no text", what, show(n))
		return ""
	}
	return n.Value
}

// named reads what has names, which its error lists.
func (d *decoder) named(n *yaml.Node, what string, to interface{ UnmarshalText([]byte) error }) {
	if n.Kind != yaml.ScalarNode {
		d.refuse(n, "%s: %s is no name", what, show(n))
		return
	}
	if err := to.UnmarshalText([]byte(n.Value)); err != nil {
		d.refuse(n, "%s: %s", what, strings.TrimPrefix(err.Error(), "throttle: "))
	}
}

// unit reads the name of a component of a limit.Cost.
func (d *decoder) unit(n *yaml.Node, what string) limit.Unit {
	return called[limit.Unit](d, n, what, "unit ")
}

// counting reads the name of a way in which servers count.
func (d *decoder) counting(n *yaml.Node, what string) throttle.Kind {
	return called[throttle.Kind](d, n, what, "kind ")
}

// called reads a value by what its String returns, which begins with none from the first one on that there is not.
func called[T interface {
	~uint8
	String() string
}](d *decoder, n *yaml.Node, what, none string) T {
	var names []string
	for v := T(0); !strings.HasPrefix(v.String(), none); v++ {
		if n.Kind == yaml.ScalarNode && n.Value == v.String() {
			return v
		}
		names = append(names, v.String())
	}
	d.refuse(n, "%s: %s is none of %s", what, show(n), list(names))
	return 0
}

// duration reads one that is not negative.
func (d *decoder) duration(n *yaml.Node, what string) time.Duration {
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
		d.refuse(n, "%s: %s is no time: want one such as 500ms, 30s, 1h30m or 2d", what, show(n))
		return 0
	case v < 0:
		d.refuse(n, "%s: %s is not 0 or more", what, show(n))
		return 0
	}
	return v
}

// count reads a whole number of 1 or more.
func (d *decoder) count(n *yaml.Node, what string) int {
	v, err := strconv.ParseInt(n.Value, 10, 64)
	if n.Kind != yaml.ScalarNode || err != nil || v < 1 {
		d.refuse(n, "%s: %s is not a whole number of 1 or more", what, show(n))
		return 0
	}
	return int(min(v, math.MaxInt))
}

func (d *decoder) number(n *yaml.Node, what string) float64 {
	v, err := strconv.ParseFloat(n.Value, 64)
	if n.Kind != yaml.ScalarNode || err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		d.refuse(n, "%s: %s is no number", what, show(n))
		return 0
	}
	return v
}

func (d *decoder) yes(n *yaml.Node, what string) bool {
	if n.Kind != yaml.ScalarNode || n.Value != "true" && n.Value != "false" {
		d.refuse(n, "%s: %s is neither true nor false", what, show(n))
	}
	return n.Value == "true"
}

func (d *decoder) law(n *yaml.Node, what string) latency.Law {
	if n.Kind != yaml.ScalarNode {
		d.refuse(n, "%s: %s is no latency law; accepted: %s", what, show(n), latency.Forms)
		return latency.Law{}
	}
	l, err := latency.ParseOpen(n.Value, d.open)
	if err != nil {
		d.refuse(n, "%s: %s", what, strings.TrimPrefix(err.Error(), "latency: "))
	}
	return l
}

const rateForms = "20/s, 500/m, 4500/h, 100000/d or 300/10s"

// rate reads N/U.
func (d *decoder) rate(n *yaml.Node, what string) (count int64, per time.Duration) {
	number, unit, _ := strings.Cut(n.Value, "/")
	count, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
	unit = strings.TrimSpace(unit)
	if unit != "" && (unit[0] < '0' || unit[0] > '9') && unit[0] != '.' {
		unit = "1" + unit
	}
	if unit == "1d" {
		unit = "24h"
	}
	per, errPer := time.ParseDuration(unit)
	if n.Kind != yaml.ScalarNode || err != nil || errPer != nil || count < 1 || per <= 0 {
		d.refuse(n, "%s: %s is no rate: want one such as %s", what, show(n), rateForms)
		return 0, 0
	}
	return count, per
}

func (d *decoder) perSecond(n *yaml.Node, what string) float64 {
	count, per := d.rate(n, what)
	if count == 0 {
		return 0
	}
	return float64(count) / per.Seconds()
}

// show says what a node is.
func show(n *yaml.Node) string {
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

func keys[T any](fields []field[T]) (names []string) {
	for _, f := range fields {
		names = append(names, f.key)
	}
	return names
}

func list(names []string) string { return strings.Join(names, ", ") }
