package scenario

import (
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/paceline-go/paceline/internal/strategy"
	"github.com/paceline-go/paceline/sim/fleet"
	"github.com/paceline-go/paceline/throttle"
)

// field is a key of a mapping and what to do with its value.
type field[T any] struct {
	key string
	set func(d *decoder, n *yaml.Node, to *T)
}

var scenarioFields = []field[fleet.Scenario]{
	{"version", func(d *decoder, n *yaml.Node, _ *fleet.Scenario) {
		if n.Value != strconv.Itoa(Version) || n.Kind != yaml.ScalarNode {
			d.refuse(n, "version: %s is not %d, the only one there is", show(n), Version)
		}
	}},
	{"name", func(d *decoder, n *yaml.Node, s *fleet.Scenario) { s.Name = d.text(n, "name") }},
	{"duration", func(d *decoder, n *yaml.Node, s *fleet.Scenario) { s.Duration = d.duration(n, "duration") }},
	{"seed", func(d *decoder, n *yaml.Node, s *fleet.Scenario) {
		v, err := strconv.ParseUint(n.Value, 10, 64)
		if n.Kind != yaml.ScalarNode || err != nil {
			d.refuse(n, "seed: %s is not a whole number of 0 or more", show(n))
		}
		s.Seed = v
	}},
	{"sample", func(d *decoder, n *yaml.Node, s *fleet.Scenario) { s.Sample = d.duration(n, "sample") }},
	{"server", func(d *decoder, n *yaml.Node, s *fleet.Scenario) { mapping(d, n, "server", serverFields, &s.Server) }},
	{"groups", func(d *decoder, n *yaml.Node, s *fleet.Scenario) {
		sequence(d, n, "groups", groupFields, &s.Groups)
	}},
}

var serverFields = []field[fleet.Quota]{
	{"kind", func(d *decoder, n *yaml.Node, q *fleet.Quota) { d.named(n, "kind", &q.Kind) }},
	{"quota", func(d *decoder, n *yaml.Node, q *fleet.Quota) { q.Limit, q.Window = d.rate(n, "quota") }},
	{"capacity", func(d *decoder, n *yaml.Node, q *fleet.Quota) { q.Capacity = int64(d.count(n, "capacity")) }},
	{"level", func(d *decoder, n *yaml.Node, q *fleet.Quota) {
		switch {
		case n.Kind == yaml.ScalarNode && n.Value == "full":
			q.Full = true
		case n.Kind == yaml.ScalarNode && n.Value == "0":
		default:
			q.Level = int64(d.count(n, "level (which may be full, too, or 0)"))
		}
	}},
	{"tick", func(d *decoder, n *yaml.Node, q *fleet.Quota) { q.Tick = d.duration(n, "tick") }},
	{"service", func(d *decoder, n *yaml.Node, q *fleet.Quota) { q.Service = d.law(n, "service") }},
	{"silent", func(d *decoder, n *yaml.Node, q *fleet.Quota) { q.Silent = d.yes(n, "silent") }},
	{"headers", func(d *decoder, n *yaml.Node, q *fleet.Quota) { mapping(d, n, "headers", headerFields, &q.Headers) }},
	{"unit", func(d *decoder, n *yaml.Node, q *fleet.Quota) { q.Unit = d.unit(n, "unit") }},
	{"into", func(d *decoder, n *yaml.Node, q *fleet.Quota) { q.Into = d.duration(n, "into") }},
	{"changes", func(d *decoder, n *yaml.Node, q *fleet.Quota) { sequence(d, n, "changes", changeFields, &q.Changes) }},
}

var headerFields = []field[fleet.Headers]{
	{"reset", func(d *decoder, n *yaml.Node, h *fleet.Headers) { d.named(n, "reset", &h.Reset) }},
	{"retry_after", func(d *decoder, n *yaml.Node, h *fleet.Headers) { d.named(n, "retry_after", &h.RetryAfter) }},
	{"skew", func(d *decoder, n *yaml.Node, h *fleet.Headers) { h.Skew = d.duration(n, "skew") }},
	{"stale", func(d *decoder, n *yaml.Node, h *fleet.Headers) { h.Stale = d.duration(n, "stale") }},
	{"replicas", func(d *decoder, n *yaml.Node, h *fleet.Headers) { h.Replicas = d.count(n, "replicas") }},
	{"factor", func(d *decoder, n *yaml.Node, h *fleet.Headers) { h.Factor = d.number(n, "factor") }},
	{"noise", func(d *decoder, n *yaml.Node, h *fleet.Headers) { h.Noise = d.number(n, "noise") }},
	{"rounded", func(d *decoder, n *yaml.Node, h *fleet.Headers) { h.Rounded = int64(d.count(n, "rounded")) }},
}

var changeFields = []field[fleet.Change]{
	{"at", func(d *decoder, n *yaml.Node, c *fleet.Change) { c.At = d.duration(n, "at") }},
	{"factor", func(d *decoder, n *yaml.Node, c *fleet.Change) { c.Factor = d.number(n, "factor") }},
}

var groupFields = []field[fleet.Group]{
	{"name", func(d *decoder, n *yaml.Node, g *fleet.Group) { g.Name = d.text(n, "name") }},
	{"strategy", func(d *decoder, n *yaml.Node, g *fleet.Group) {
		name := n.Value // null is a strategy, whatever YAML thinks
		if name == "" || n.Kind != yaml.ScalarNode {
			name = d.text(n, "strategy")
		}
		if name == "" {
			return
		}
		s, err := strategy.Named(name)
		if err != nil {
			d.refuse(n, "%s", strings.TrimPrefix(err.Error(), "throttle: "))
		}
		g.Strategy = s
	}},
	{"params", func(d *decoder, n *yaml.Node, g *fleet.Group) { mapping(d, n, "params", paramFields, &g.Params) }},
	{"processes", func(d *decoder, n *yaml.Node, g *fleet.Group) { g.Processes = d.count(n, "processes") }},
	{"threads", func(d *decoder, n *yaml.Node, g *fleet.Group) { g.Threads = d.count(n, "threads") }},
	{"link", func(d *decoder, n *yaml.Node, g *fleet.Group) { g.Link = d.law(n, "link") }},
	{"work", func(d *decoder, n *yaml.Node, g *fleet.Group) { g.Work = d.duration(n, "work") }},
	{"demand", func(d *decoder, n *yaml.Node, g *fleet.Group) {
		if n.Kind == yaml.ScalarNode { // demand: always
			d.named(n, "demand", &g.Demand.Kind)
			return
		}
		mapping(d, n, "demand", demandFields, &g.Demand)
	}},
	{"costs", func(d *decoder, n *yaml.Node, g *fleet.Group) { mapping(d, n, "costs", costFields, &g.Costs) }},
	{"join", func(d *decoder, n *yaml.Node, g *fleet.Group) { g.Join = d.duration(n, "join") }},
	{"spread", func(d *decoder, n *yaml.Node, g *fleet.Group) { g.Spread = d.duration(n, "spread") }},
	{"stagger", func(d *decoder, n *yaml.Node, g *fleet.Group) { g.Stagger = d.duration(n, "stagger") }},
	{"leave", func(d *decoder, n *yaml.Node, g *fleet.Group) {
		if g.Leave = d.duration(n, "leave"); g.Leave == 0 {
			d.refuse(n, "leave: nobody leaves at 0: want an instant after join, or no leave")
		}
	}},
}

var demandFields = []field[fleet.Demand]{
	{"kind", func(d *decoder, n *yaml.Node, to *fleet.Demand) { d.named(n, "kind", &to.Kind) }},
	{"on", func(d *decoder, n *yaml.Node, to *fleet.Demand) { to.On = d.duration(n, "on") }},
	{"off", func(d *decoder, n *yaml.Node, to *fleet.Demand) { to.Off = d.duration(n, "off") }},
	{"rate", func(d *decoder, n *yaml.Node, to *fleet.Demand) { to.PerSecond = d.perSecond(n, "rate") }},
	{"total", func(d *decoder, n *yaml.Node, to *fleet.Demand) { to.Total = d.count(n, "total") }},
}

var costFields = []field[fleet.Costs]{
	{"mean", func(d *decoder, n *yaml.Node, c *fleet.Costs) { c.Mean = d.number(n, "mean") }},
	{"exponential", func(d *decoder, n *yaml.Node, c *fleet.Costs) { c.Exponential = d.yes(n, "exponential") }},
}

var paramFields = []field[throttle.Params]{
	{"rate", func(d *decoder, n *yaml.Node, p *throttle.Params) { p.Rate = d.perSecond(n, "rate") }},
	paramNumber("burst", func(p *throttle.Params) *float64 { return &p.Burst }),
	paramSpan("start", func(p *throttle.Params) *time.Duration { return &p.Start }),
	paramSpan("min_sleep", func(p *throttle.Params) *time.Duration { return &p.MinSleep }),
	paramNumber("multiplier", func(p *throttle.Params) *float64 { return &p.Multiplier }),
	paramNumber("jitter", func(p *throttle.Params) *float64 { return &p.Jitter }),
	paramNumber("divisor", func(p *throttle.Params) *float64 { return &p.Divisor }),
	{"sharing", func(d *decoder, n *yaml.Node, p *throttle.Params) { d.named(n, "sharing", &p.Sharing) }},
	paramNumber("increase", func(p *throttle.Params) *float64 { return &p.Increase }),
	paramNumber("decrease", func(p *throttle.Params) *float64 { return &p.Decrease }),
	{"min_rate", func(d *decoder, n *yaml.Node, p *throttle.Params) { p.MinRate = d.perSecond(n, "min_rate") }},
	paramNumber("scale", func(p *throttle.Params) *float64 { return &p.Scale }),
	paramNumber("smooth", func(p *throttle.Params) *float64 { return &p.Smooth }),
	paramNumber("weight", func(p *throttle.Params) *float64 { return &p.Weight }),
	{"kind", func(d *decoder, n *yaml.Node, p *throttle.Params) { p.Kind = d.counting(n, "kind") }},
	paramNumber("mean_cost", func(p *throttle.Params) *float64 { return &p.MeanCost }),
	paramNumber("sharers", func(p *throttle.Params) *float64 { return &p.Sharers }),
	paramSpan("window", func(p *throttle.Params) *time.Duration { return &p.Window }),
	paramSpan("max_wait", func(p *throttle.Params) *time.Duration { return &p.MaxWait }),
}

func paramSpan(key string, of func(*throttle.Params) *time.Duration) field[throttle.Params] {
	return field[throttle.Params]{key, func(d *decoder, n *yaml.Node, p *throttle.Params) { *of(p) = d.duration(n, key) }}
}

func paramNumber(key string, of func(*throttle.Params) *float64) field[throttle.Params] {
	return field[throttle.Params]{key, func(d *decoder, n *yaml.Node, p *throttle.Params) { *of(p) = d.number(n, key) }}
}
