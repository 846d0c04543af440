package scenario

import (
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/paceline-go/paceline/fairshare"
	"github.com/paceline-go/paceline/internal/app/yamlfile"
	"github.com/paceline-go/paceline/lab/sim/fleet"
	"github.com/paceline-go/paceline/lab/strategy"
	"github.com/paceline-go/paceline/limit"
)

type field[T any] = yamlfile.Field[*decoder, T]

var scenarioFields = []field[fleet.Scenario]{
	yamlfile.Key("version", "of this format", yamlfile.Form{"const": Version},
		func(d *decoder, n *yaml.Node, _ *fleet.Scenario) {
			if n.Value != strconv.Itoa(Version) || n.Kind != yaml.ScalarNode {
				d.Refuse(n, "version: %s is not %d, the only one there is", yamlfile.Show(n), Version)
			}
		}),
	yamlfile.Key("name", "what it is called in reports", yamlfile.AText,
		func(d *decoder, n *yaml.Node, s *fleet.Scenario) { s.Name = d.Text(n, "name") }),
	yamlfile.Key("duration", "how long the clients run, in virtual time", yamlfile.ASpan,
		func(d *decoder, n *yaml.Node, s *fleet.Scenario) { s.Duration = d.Duration(n, "duration") }),
	yamlfile.Key("seed", "of everything that is drawn; the same seed gives the same run (default 0)",
		yamlfile.Form{"type": "integer", "minimum": 0}, func(d *decoder, n *yaml.Node, s *fleet.Scenario) {
			v, err := strconv.ParseUint(n.Value, 10, 64)
			if n.Kind != yaml.ScalarNode || err != nil {
				d.Refuse(n, "seed: %s is not a whole number of 0 or more", yamlfile.Show(n))
			}
			s.Seed = v
		}),
	yamlfile.Key("sample", "time between two values of the series for charts", yamlfile.ASpan,
		func(d *decoder, n *yaml.Node, s *fleet.Scenario) { s.Sample = d.Duration(n, "sample") }),
	yamlfile.Key("server", "the quota that all share", yamlfile.Object(serverFields),
		func(d *decoder, n *yaml.Node, s *fleet.Scenario) {
			yamlfile.Mapping(d, n, "server", serverFields, &s.Server)
		}),
	yamlfile.Key("store", "what processes of the strategy share do that by", yamlfile.Object(storeFields),
		func(d *decoder, n *yaml.Node, s *fleet.Scenario) {
			yamlfile.Mapping(d, n, "store", storeFields, &s.Store)
		}),
	yamlfile.Key("groups", "clients that are alike", yamlfile.ListOf(yamlfile.Object(groupFields, groupMust...)),
		func(d *decoder, n *yaml.Node, s *fleet.Scenario) {
			yamlfile.Sequence(d, n, "groups", groupFields, &s.Groups)
		}),
}

var serverFields = []field[fleet.Quota]{
	yamlfile.Key("kind", "how it counts (default bucket)", oneOf[fleet.QuotaKind](),
		func(d *decoder, n *yaml.Node, q *fleet.Quota) { d.Named(n, "kind", &q.Kind) }),
	yamlfile.Key("quota", "what it lets through (default 4500/h)", yamlfile.ARate,
		func(d *decoder, n *yaml.Node, q *fleet.Quota) { q.Limit, q.Window = d.Rate(n, "quota") }),
	yamlfile.Key("capacity", "the most that a bucket holds (default: what quota has in a window)", yamlfile.ACount,
		func(d *decoder, n *yaml.Node, q *fleet.Quota) { q.Capacity = int64(d.Count(n, "capacity")) }),
	yamlfile.Key("level", "how much would pass at once when the first request arrives (default: none of a bucket, all "+
		"of the others)", yamlfile.Form{"anyOf": []yamlfile.Form{{"const": "full"}, {"type": "integer", "minimum": 0}}},
		func(d *decoder, n *yaml.Node, q *fleet.Quota) {
			switch {
			case n.Kind == yaml.ScalarNode && n.Value == "full":
				q.Full = true
			case n.Kind == yaml.ScalarNode && n.Value == "0":
			default:
				q.Level = int64(d.Count(n, "level (which may be full, too, or 0)"))
			}
		}),
	yamlfile.Key("tick", "the unit of its clock (default 1ms)", yamlfile.ASpan,
		func(d *decoder, n *yaml.Node, q *fleet.Quota) { q.Tick = d.Duration(n, "tick") }),
	yamlfile.Key("service", "how long it works on a request: a law of latency (default: no time)", aLaw,
		func(d *decoder, n *yaml.Node, q *fleet.Quota) { q.Service = d.law(n, "service") }),
	yamlfile.Key("silent", "answers say nothing of what is left or when there is more (default false)", yamlfile.ASwitch,
		func(d *decoder, n *yaml.Node, q *fleet.Quota) { q.Silent = d.Yes(n, "silent") }),
	yamlfile.Key("headers", "what answers say beside whether they are refusals", yamlfile.Object(headerFields),
		func(d *decoder, n *yaml.Node, q *fleet.Quota) {
			yamlfile.Mapping(d, n, "headers", headerFields, &q.Headers)
		}),
	yamlfile.Key("unit", "what is counted (default requests)", yamlfile.Form{"enum": namesOf[limit.Unit]("unit ")},
		func(d *decoder, n *yaml.Node, q *fleet.Quota) { q.Unit = d.unit(n, "unit") }),
	yamlfile.Key("into", "how much of the first window is over when the first request arrives", yamlfile.ASpan,
		func(d *decoder, n *yaml.Node, q *fleet.Quota) { q.Into = d.Duration(n, "into") }),
	yamlfile.Key("changes", "of the quota, in the order of time, which no client is told of",
		yamlfile.ListOf(yamlfile.Object(changeFields)), func(d *decoder, n *yaml.Node, q *fleet.Quota) {
			yamlfile.Sequence(d, n, "changes", changeFields, &q.Changes)
		}),
}

var storeFields = []field[fleet.Store]{
	yamlfile.Key("link", "latency to the store and back, each way (default: none)", aLaw,
		func(d *decoder, n *yaml.Node, s *fleet.Store) { s.Link = d.law(n, "link") }),
	yamlfile.Key("work", "how long it takes to put what a turn makes: a law of latency (default: no time)", aLaw,
		func(d *decoder, n *yaml.Node, s *fleet.Store) { s.Work = d.law(n, "work") }),
	yamlfile.Key("fallback", "what processes do while they cannot reach it (default wait)",
		yamlfile.Form{"enum": fallbacks}, func(d *decoder, n *yaml.Node, s *fleet.Store) {
			s.Split = d.OneOf(n, "fallback", fallbacks) == "split"
		}),
	yamlfile.Key("outages", "when it cannot be reached", yamlfile.ListOf(yamlfile.Object(outageFields)),
		func(d *decoder, n *yaml.Node, s *fleet.Store) {
			yamlfile.Sequence(d, n, "outages", outageFields, &s.Outages)
		}),
}

var fallbacks = []string{"wait", "split"}

var outageFields = []field[fleet.Outage]{
	yamlfile.Key("at", "when it begins, from the start of the run", yamlfile.ASpan,
		func(d *decoder, n *yaml.Node, o *fleet.Outage) { o.At = d.Duration(n, "at") }),
	yamlfile.Key("lasts", "for how long", yamlfile.ASpan,
		func(d *decoder, n *yaml.Node, o *fleet.Outage) { o.Lasts = d.Duration(n, "lasts") }),
	yamlfile.Key("group", "whose processes are cut off (default: all)", yamlfile.AText,
		func(d *decoder, n *yaml.Node, o *fleet.Outage) { o.Group = d.Text(n, "group") }),
	yamlfile.Key("processes", "how many of the group are cut off (default: all)", yamlfile.ACount,
		func(d *decoder, n *yaml.Node, o *fleet.Outage) { o.Processes = d.Count(n, "processes") }),
}

var headerFields = []field[fleet.Headers]{
	yamlfile.Key("reset", "how answers tell how long it is until there is more (default none)", oneOf[fleet.Precision](),
		func(d *decoder, n *yaml.Node, h *fleet.Headers) { d.Named(n, "reset", &h.Reset) }),
	yamlfile.Key("retry_after", "how a refusal tells how long to wait (default none)", oneOf[fleet.Precision](),
		func(d *decoder, n *yaml.Node, h *fleet.Headers) { d.Named(n, "retry_after", &h.RetryAfter) }),
	yamlfile.Key("skew", "by how much clocks of clients may be wrong", yamlfile.ASpan,
		func(d *decoder, n *yaml.Node, h *fleet.Headers) { h.Skew = d.Duration(n, "skew") }),
	yamlfile.Key("stale", "how old what is told may be", yamlfile.ASpan,
		func(d *decoder, n *yaml.Node, h *fleet.Headers) { h.Stale = d.Duration(n, "stale") }),
	yamlfile.Key("replicas", "of that age, which answer in turn (default 1)", yamlfile.ACount,
		func(d *decoder, n *yaml.Node, h *fleet.Headers) { h.Replicas = d.Count(n, "replicas") }),
	yamlfile.Key("factor", "by what the remaining that is told is multiplied (default 1)", yamlfile.ANumber,
		func(d *decoder, n *yaml.Node, h *fleet.Headers) { h.Factor = d.Number(n, "factor") }),
	yamlfile.Key("noise", "standard deviation of an error of what remains", yamlfile.ANumber,
		func(d *decoder, n *yaml.Node, h *fleet.Headers) { h.Noise = d.Number(n, "noise") }),
	yamlfile.Key("rounded", "what remains is told in whole multiples of it (default 1)", yamlfile.ACount,
		func(d *decoder, n *yaml.Node, h *fleet.Headers) { h.Rounded = int64(d.Count(n, "rounded")) }),
}

var changeFields = []field[fleet.Change]{
	yamlfile.Key("at", "when, from the start of the run", yamlfile.ASpan,
		func(d *decoder, n *yaml.Node, c *fleet.Change) { c.At = d.Duration(n, "at") }),
	yamlfile.Key("factor", "by what the quota is multiplied from then on", yamlfile.ANumber,
		func(d *decoder, n *yaml.Node, c *fleet.Change) { c.Factor = d.Number(n, "factor") }),
}

var groupFields = []field[fleet.Group]{
	yamlfile.Key("name", "what it is called in reports", yamlfile.AText,
		func(d *decoder, n *yaml.Node, g *fleet.Group) { g.Name = d.Text(n, "name") }),
	yamlfile.Key("strategy", "by what its clients decide when to send", aStrategy(),
		func(d *decoder, n *yaml.Node, g *fleet.Group) {
			name := n.Value // null is the name of a strategy, although YAML takes it for no value
			if name == "" || n.Kind != yaml.ScalarNode {
				name = d.Text(n, "strategy")
			}
			if name == "" {
				return
			}
			if name == fleet.Share().Name {
				g.Strategy = fleet.Share()
				return
			}
			s, err := strategy.Named(name)
			if err != nil {
				d.Refuse(n, "%s", strings.TrimPrefix(err.Error(), "fairshare: "))
			}
			g.Strategy = s
		}),
	yamlfile.Key("params", "constants of the strategy", yamlfile.Object(paramFields),
		func(d *decoder, n *yaml.Node, g *fleet.Group) {
			yamlfile.Mapping(d, n, "params", paramFields, &g.Params)
		}),
	yamlfile.Key("processes", "which know nothing of each other (default 1)", yamlfile.ACount,
		func(d *decoder, n *yaml.Node, g *fleet.Group) { g.Processes = d.Count(n, "processes") }),
	yamlfile.Key("threads", "of a process, which share what it knows (default 1)", yamlfile.ACount,
		func(d *decoder, n *yaml.Node, g *fleet.Group) { g.Threads = d.Count(n, "threads") }),
	yamlfile.Key("link", "latency to the server and back, each way: a law such as uniform:20ms-40ms (default: none)",
		aLaw, func(d *decoder, n *yaml.Node, g *fleet.Group) { g.Link = d.law(n, "link") }),
	yamlfile.Key("work", "how long a thread is busy between an answer and its next request", yamlfile.ASpan,
		func(d *decoder, n *yaml.Node, g *fleet.Group) { g.Work = d.Duration(n, "work") }),
	yamlfile.Key("demand", "when there is something to send (default always)",
		yamlfile.Form{"anyOf": []yamlfile.Form{oneOf[fleet.DemandKind](), yamlfile.Object(demandFields)}},
		func(d *decoder, n *yaml.Node, g *fleet.Group) {
			if n.Kind == yaml.ScalarNode { // as in "demand: always"
				d.Named(n, "demand", &g.Demand.Kind)
				return
			}
			yamlfile.Mapping(d, n, "demand", demandFields, &g.Demand)
		}),
	yamlfile.Key("costs", "what a request takes of the quota (default 1)", yamlfile.Object(costFields),
		func(d *decoder, n *yaml.Node, g *fleet.Group) { yamlfile.Mapping(d, n, "costs", costFields, &g.Costs) }),
	yamlfile.Key("join", "when its processes start", yamlfile.ASpan,
		func(d *decoder, n *yaml.Node, g *fleet.Group) { g.Join = d.Duration(n, "join") }),
	yamlfile.Key("spread", "within how long after that they do, each at random", yamlfile.ASpan,
		func(d *decoder, n *yaml.Node, g *fleet.Group) { g.Spread = d.Duration(n, "spread") }),
	yamlfile.Key("stagger", "within how long after its process a thread starts", yamlfile.ASpan,
		func(d *decoder, n *yaml.Node, g *fleet.Group) { g.Stagger = d.Duration(n, "stagger") }),
	yamlfile.Key("leave", "when they are gone (default: they stay)", yamlfile.ASpan,
		func(d *decoder, n *yaml.Node, g *fleet.Group) {
			if g.Leave = d.Duration(n, "leave"); g.Leave == 0 {
				d.Refuse(n, "leave: nobody leaves at 0: want an instant after join, or no leave")
			}
		}),
}

var demandFields = []field[fleet.Demand]{
	yamlfile.Key("kind", "always, on-off or light", oneOf[fleet.DemandKind](),
		func(d *decoder, n *yaml.Node, to *fleet.Demand) { d.Named(n, "kind", &to.Kind) }),
	yamlfile.Key("on", "how long there is something to send, of on-off", yamlfile.ASpan,
		func(d *decoder, n *yaml.Node, to *fleet.Demand) { to.On = d.Duration(n, "on") }),
	yamlfile.Key("off", "how long there is nothing, of on-off", yamlfile.ASpan,
		func(d *decoder, n *yaml.Node, to *fleet.Demand) { to.Off = d.Duration(n, "off") }),
	yamlfile.Key("rate", "how many requests come to each client, of light", yamlfile.ARate,
		func(d *decoder, n *yaml.Node, to *fleet.Demand) { to.PerSecond = d.perSecond(n, "rate") }),
	yamlfile.Key("total", "how many requests the group has to do in all (default: no end)", yamlfile.ACount,
		func(d *decoder, n *yaml.Node, to *fleet.Demand) { to.Total = d.Count(n, "total") }),
}

var costFields = []field[fleet.Costs]{
	yamlfile.Key("mean", "what a request costs on average (default 1)", yamlfile.ANumber,
		func(d *decoder, n *yaml.Node, c *fleet.Costs) { c.Mean = d.Number(n, "mean") }),
	yamlfile.Key("exponential", "costs are drawn, and not all alike (default false)", yamlfile.ASwitch,
		func(d *decoder, n *yaml.Node, c *fleet.Costs) { c.Exponential = d.Yes(n, "exponential") }),
}

var paramFields = []field[strategy.Params]{
	yamlfile.Key("rate", "what clients take for the refill of the quota (default: the server's)", yamlfile.ARate,
		func(d *decoder, n *yaml.Node, p *strategy.Params) { p.Rate = d.perSecond(n, "rate") }),
	paramNumber("burst", "what clients take for its capacity (default: the server's)",
		func(p *strategy.Params) *float64 { return &p.Burst }),
	paramSpan("start", "the sleep to begin with", func(p *strategy.Params) *time.Duration { return &p.Start }),
	paramSpan("min_sleep", "the least sleep, or that of a fixed backoff",
		func(p *strategy.Params) *time.Duration { return &p.MinSleep }),
	paramNumber("multiplier", "by what a limit multiplies the sleep",
		func(p *strategy.Params) *float64 { return &p.Multiplier }),
	paramNumber("jitter", "largest share of a sleep that is added to it (default 0.1; negative: none)",
		func(p *strategy.Params) *float64 { return &p.Jitter }),
	paramNumber("divisor", "of proportional decreases", func(p *strategy.Params) *float64 { return &p.Divisor }),
	yamlfile.Key("sharing", "how threads share their sleep (default racing)", oneOf[strategy.Sharing](),
		func(d *decoder, n *yaml.Node, p *strategy.Params) { d.Named(n, "sharing", &p.Sharing) }),
	paramNumber("increase", "by how many requests per second aimd's rate grows in a second",
		func(p *strategy.Params) *float64 { return &p.Increase }),
	paramNumber("decrease", "by what aimd and cubic multiply their rate at a limit",
		func(p *strategy.Params) *float64 { return &p.Decrease }),
	yamlfile.Key("min_rate", "the least rate of aimd and cubic", yamlfile.ARate,
		func(d *decoder, n *yaml.Node, p *strategy.Params) { p.MinRate = d.perSecond(n, "min_rate") }),
	paramNumber("scale", "cubic's constant (default 0.4)", func(p *strategy.Params) *float64 { return &p.Scale }),
	paramNumber("smooth", "weight of the newest half second in cubic's rate (default 0.8)",
		func(p *strategy.Params) *float64 { return &p.Smooth }),
	paramNumber("weight", "how many shares a process claims (default 1)",
		func(p *strategy.Params) *float64 { return &p.Weight }),
	yamlfile.Key("kind", "how the server counts, if clients know (default unknown)",
		yamlfile.Form{"enum": namesOf[fairshare.Kind]("kind ")},
		func(d *decoder, n *yaml.Node, p *strategy.Params) { p.Kind = d.counting(n, "kind") }),
	paramNumber("mean_cost", "what a request takes on average (default: of costs)",
		func(p *strategy.Params) *float64 { return &p.MeanCost }),
	paramNumber("sharers", "how many clients the quota is meant for (default: unknown)",
		func(p *strategy.Params) *float64 { return &p.Sharers }),
	paramSpan("window", "in what time the quota lets its burst pass (default: of the server)",
		func(p *strategy.Params) *time.Duration { return &p.Window }),
	paramSpan("max_wait", "the longest that a client waits, whatever the server says",
		func(p *strategy.Params) *time.Duration { return &p.MaxWait }),
}

func paramSpan(key, about string, of func(*strategy.Params) *time.Duration) field[strategy.Params] {
	return yamlfile.Key(key, about, yamlfile.ASpan,
		func(d *decoder, n *yaml.Node, p *strategy.Params) { *of(p) = d.Duration(n, key) })
}

func paramNumber(key, about string, of func(*strategy.Params) *float64) field[strategy.Params] {
	return yamlfile.Key(key, about, yamlfile.ANumber,
		func(d *decoder, n *yaml.Node, p *strategy.Params) { *of(p) = d.Number(n, key) })
}
