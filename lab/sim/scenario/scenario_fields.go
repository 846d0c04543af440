package scenario

import (
	"errors"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/paceline-go/paceline/fairshare"
	"github.com/paceline-go/paceline/internal/app/yamlfile"
	"github.com/paceline-go/paceline/lab/sim/fleet"
	"github.com/paceline-go/paceline/lab/strategy"
	"github.com/paceline-go/paceline/lab/strategy/formula"
	"github.com/paceline-go/paceline/limit"
)

// Kinds of values.
var (
	text, yes, count, number, span = yamlfile.Text, yamlfile.Yes, yamlfile.Count, yamlfile.Number, yamlfile.Span

	law       = yamlfile.Value(aLaw, (*decoder).law)
	perSecond = yamlfile.Value(yamlfile.ARate, (*decoder).perSecond)
	aQuota    = yamlfile.Part(yamlfile.ARate, true, (*decoder).quota)
	aLevel    = yamlfile.Part(form{"anyOf": []form{{"const": "full"}, atLeast0}}, true, (*decoder).level)
	aDemand   = yamlfile.Part(form{"anyOf": []form{oneOf[fleet.DemandKind](), yamlfile.Object(demandFields)}}, false,
		(*decoder).demand)
	aUnit     = yamlfile.Value(form{"enum": namesOf[limit.Unit]("unit ")}, (*decoder).unit)
	aCounting = yamlfile.Value(form{"enum": namesOf[fairshare.Kind]("kind ")}, (*decoder).counting)
	// A formula is text, though one such as 0 looks like a number.
	formulaText = yamlfile.Value(yamlfile.AText, (*decoder).formula)
	aFallback   = yamlfile.Value(form{"enum": fallbacks}, (*decoder).splits)
	key         = yamlfile.Key
)

type form = yamlfile.Form

var atLeast0 = form{"type": "integer", "minimum": 0}

// named is the kind of a value that has a name.
func named[T interface {
	~uint8
	String() string
}, P interface {
	*T
	UnmarshalText([]byte) error
}]() yamlfile.Kind {
	return yamlfile.Part(oneOf[T, P](), false,
		func(d *decoder, n *yaml.Node, key string, to *T) { d.Named(n, key, P(to)) })
}

var scenarioFields = []yamlfile.Field{
	key("version", yamlfile.Version(Version), "of this format"),
	key("name", text, "what it is called in reports"),
	key("duration", span.Must(""), "how long the clients run, in virtual time"),
	key("seed", yamlfile.Value(atLeast0, (*decoder).seed),
		"of everything that is drawn; the same seed gives the same run (default 0)"),
	key("sample", span, "time between two values of the series for charts"),
	key("server", yamlfile.Struct(serverFields), "the quota that all share"),
	key("store", yamlfile.Struct(storeFields), "what processes of the strategy share do that by"),
	key("expect", yamlfile.Part(yamlfile.ListOf(form{"type": "string", "pattern": fleet.ExpectForm}), false,
		(*decoder).expect), "bounds on what the run comes to, such as limited < 3 %; one that is missed is exit code 1"),
	key("groups", yamlfile.Structs(groupFields).Must(""), "clients that are alike"),
}

var serverFields = []yamlfile.Field{
	key("kind", named[fleet.QuotaKind](), "how it counts (default bucket)"),
	key("quota", aQuota, "what it lets through (default 4500/h)"),
	key("capacity", count, "the most that a bucket holds (default: what quota has in a window)"),
	key("level", aLevel, "how much would pass at once when the first request arrives (default: none of a bucket, all "+
		"of the others)"),
	key("tick", span, "the unit of its clock (default 1ms)"),
	key("service", law, "how long it works on a request: a law of latency (default: no time)"),
	key("silent", yes, "answers say nothing of what is left or when there is more (default false)"),
	key("headers", yamlfile.Struct(headerFields), "what answers say beside whether they are refusals"),
	key("unit", aUnit, "what is counted (default requests)"),
	key("into", span, "how much of the first window is over when the first request arrives"),
	key("changes", yamlfile.Structs(changeFields), "of the quota, in the order of time, which no client is told of"),
}

var storeFields = []yamlfile.Field{
	key("link", law, "latency to the store and back, each way (default: none)"),
	key("work", law, "how long it takes to put what a turn makes: a law of latency (default: no time)"),
	key("fallback", aFallback.In("Split"), "what processes do while they cannot reach it (default wait)"),
	key("outages", yamlfile.Structs(outageFields), "when it cannot be reached"),
}

var fallbacks = []string{"wait", "split"}

var outageFields = []yamlfile.Field{
	key("at", span, "when it begins, from the start of the run"),
	key("lasts", span, "for how long"),
	key("group", text, "whose processes are cut off (default: all)"),
	key("processes", count, "how many of the group are cut off (default: all)"),
}

var headerFields = []yamlfile.Field{
	key("reset", named[fleet.Precision](), "how answers tell how long it is until there is more (default none)"),
	key("retry_after", named[fleet.Precision](), "how a refusal tells how long to wait (default none)"),
	key("skew", span, "by how much clocks of clients may be wrong"),
	key("stale", span, "how old what is told may be"),
	key("replicas", count, "of that age, which answer in turn (default 1)"),
	key("factor", number, "by what the remaining that is told is multiplied (default 1)"),
	key("noise", number, "standard deviation of an error of what remains"),
	key("rounded", count, "what remains is told in whole multiples of it (default 1)"),
}

var changeFields = []yamlfile.Field{
	key("at", span, "when, from the start of the run"),
	key("factor", number, "by what the quota is multiplied from then on"),
}

var groupFields = []yamlfile.Field{
	key("name", text, "what it is called in reports"),
	key("strategy", yamlfile.Value(aStrategy(), (*decoder).strategy).Must(": want one of "+yamlfile.List(strategies())),
		"by what its clients decide when to send: a name, or a law as formulas"),
	key("params", yamlfile.Struct(paramFields), "constants of the strategy"),
	key("processes", count, "which know nothing of each other (default 1)"),
	key("threads", count, "of a process, which share what it knows (default 1)"),
	key("link", law, "latency to the server and back, each way: a law such as uniform:20ms-40ms (default: none)"),
	key("work", span, "how long a thread is busy between an answer and its next request"),
	key("demand", aDemand, "when there is something to send (default always)"),
	key("costs", yamlfile.Struct(costFields), "what a request takes of the quota (default 1)"),
	key("join", span, "when its processes start"),
	key("spread", span, "within how long after that they do, each at random"),
	key("stagger", span, "within how long after its process a thread starts"),
	key("leave", yamlfile.Value(yamlfile.ASpan, (*decoder).leave), "when they are gone (default: they stay)"),
}

// lawFields are the formulas of a strategy of one's own.
var lawFields = []yamlfile.Field{
	key("on_limited", formulaText.Must(""), "the sleep after a refusal, such as: sleep*1.2 + min_sleep"),
	key("on_ok", formulaText.In("OnOK").Must(""),
		"the sleep after an answer that serves, such as: sleep -= sleep*remaining/limit"),
}

var demandFields = []yamlfile.Field{
	key("kind", named[fleet.DemandKind](), "always, on-off or light"),
	key("on", span, "how long there is something to send, of on-off"),
	key("off", span, "how long there is nothing, of on-off"),
	key("rate", perSecond.In("PerSecond"), "how many requests come to each client, of light"),
	key("total", count, "how many requests the group has to do in all (default: no end)"),
}

var costFields = []yamlfile.Field{
	key("mean", number, "what a request costs on average (default 1)"),
	key("exponential", yes, "costs are drawn, and not all alike (default false)"),
}

var paramFields = []yamlfile.Field{
	key("rate", perSecond, "what clients take for the refill of the quota (default: the server's)"),
	key("burst", number, "what clients take for its capacity (default: the server's)"),
	key("start", span, "the sleep to begin with"),
	key("min_sleep", span, "the least sleep, or that of a fixed backoff"),
	key("multiplier", number, "by what a limit multiplies the sleep"),
	key("jitter", number, "largest share of a sleep that is added to it (default 0.1; negative: none)"),
	key("divisor", number, "of proportional decreases"),
	key("sharing", named[strategy.Sharing](), "how threads share their sleep (default racing)"),
	key("increase", number, "by how many requests per second aimd's rate grows in a second"),
	key("decrease", number, "by what aimd and cubic multiply their rate at a limit"),
	key("min_rate", perSecond, "the least rate of aimd and cubic"),
	key("scale", number, "cubic's constant (default 0.4)"),
	key("smooth", number, "weight of the newest half second in cubic's rate (default 0.8)"),
	key("weight", number, "how many shares a process claims (default 1)"),
	key("kind", aCounting, "how the server counts, if clients know (default unknown)"),
	key("mean_cost", number, "what a request takes on average (default: of costs)"),
	key("sharers", number, "how many clients the quota is meant for (default: unknown)"),
	key("window", span, "in what time the quota lets its burst pass (default: of the server)"),
	key("max_wait", span, "the longest that a client waits, whatever the server says"),
}

func (d *decoder) seed(n *yaml.Node, what string) uint64 {
	v, err := strconv.ParseUint(n.Value, 10, 64)
	if n.Kind != yaml.ScalarNode || err != nil {
		d.Refuse(n, "%s: %s is not a whole number of 0 or more", what, yamlfile.Show(n))
	}
	return v
}

func (d *decoder) quota(n *yaml.Node, what string, q *fleet.Quota) {
	q.Limit, q.Window = d.Rate(n, what)
}

func (d *decoder) level(n *yaml.Node, what string, q *fleet.Quota) {
	switch {
	case n.Kind == yaml.ScalarNode && n.Value == "full":
		q.Full = true
	case n.Kind == yaml.ScalarNode && n.Value == "0":
	default:
		q.Level = int64(d.Count(n, what+" (which may be full, too, or 0)"))
	}
}

func (d *decoder) splits(n *yaml.Node, what string) bool {
	return d.OneOf(n, what, fallbacks) == "split"
}

func (d *decoder) strategy(n *yaml.Node, what string) strategy.Strategy {
	if n.Kind == yaml.MappingNode {
		var law struct{ OnLimited, OnOK *formula.Formula }
		yamlfile.Mapping(d, n, what, lawFields, &law)
		return formula.Strategy(law.OnLimited, law.OnOK) // it does not run if one of them was refused
	}
	name := n.Value // null is the name of a strategy, although YAML takes it for no value
	if name == "" || n.Kind != yaml.ScalarNode {
		name = d.Text(n, what)
	}
	switch name {
	case "":
		return strategy.Strategy{}
	case fleet.Share().Name:
		return fleet.Share()
	}
	s, err := strategy.Named(name)
	if err != nil {
		d.Refuse(n, "%v", err)
	}
	return s
}

func (d *decoder) expect(n *yaml.Node, what string, to *[]fleet.Expectation) {
	for item := range yamlfile.Items(d, n, what) {
		e, err := fleet.ParseExpectation(d.Text(item, what))
		if err != nil && item.Kind == yaml.ScalarNode && item.Tag != "!!null" {
			d.Refuse(item, "%s: %v", what, err)
		}
		*to = append(*to, e)
	}
}

// formula reads a law. A mistake in a text of one line is shown at its column.
func (d *decoder) formula(n *yaml.Node, what string) *formula.Formula {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		d.Refuse(n, "%s: %s is no formula: want one such as sleep*1.2", what, yamlfile.Show(n))
		return nil
	}
	f, err := formula.Compile(n.Value)
	mistake, ok := errors.AsType[*formula.Error](err)
	if !ok {
		return f
	}
	at := *n
	if n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) == 0 && !strings.Contains(n.Value, "\n") {
		at.Column += utf8.RuneCountInString(n.Value[:mistake.At])
		if n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0 {
			at.Column++
		}
	}
	d.Refuse(&at, "%s: %s", what, mistake.Problem)
	return nil
}

func (d *decoder) demand(n *yaml.Node, what string, to *fleet.Demand) {
	if n.Kind == yaml.ScalarNode { // as in "demand: always"
		d.Named(n, what, &to.Kind)
		return
	}
	yamlfile.Mapping(d, n, what, demandFields, to)
}

func (d *decoder) leave(n *yaml.Node, what string) time.Duration {
	at := d.Duration(n, what)
	if at == 0 {
		d.Refuse(n, "%s: nobody leaves at 0: want an instant after join, or no leave", what)
	}
	return at
}
