package transport

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/pool/backoff"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/tokens"
)

// Never as Target.After: requests go there only where all targets before it are shut.
const Never time.Duration = math.MaxInt64

// Target is one of several servers behind one name: see Config.Targets. Only Name and Host have no
// default.
type Target struct {
	// Name distinguishes targets. Logs, errors and Partition.Target show it.
	Name string
	// Host replaces the host of a request, as Partition.Host has it: with a port, unless that is the
	// scheme's default. Several Targets may have one Host. Each counts by itself.
	Host string
	// Apply changes a request further for this Target: the scheme and path of its URL, its header. r is
	// a clone that only the Base sees, with Host and the model's name at this Target. model is that
	// name; empty: unknown. Several goroutines may call Apply at once. If nil, nothing else changes.
	Apply func(r *http.Request, model string)

	// Limit is Config.Limit for this Target, and Preset and PerSecond are those of Config. If Limit is
	// nil and Preset is empty, those of Config hold here, too.
	Limit     func(p Partition) limit.Limiter
	Preset    string
	PerSecond bool
	// Provider and Counting are those of Config for this Target. If nil or zero, those of Config, or by
	// the Host.
	Provider provider.Dialect
	Counting tokens.Counting

	// Models has the names of models at this Target, by the names in requests. The body, or the path,
	// then has that name. A model that is not here keeps its name. If Models is not nil, even if it is
	// empty, only requests of a known model go to this Target. The model of a body that is longer than
	// Config.MaxBody, or compressed, is not known. If nil, requests go as they are.
	Models map[string]string
	// After makes a Target spare: a request goes there only from its arrival and that time on. It goes
	// at once where all Targets with a smaller After are shut to it: the host is down, the keys are out,
	// or a limit or pause has no room before the end of its longest wait (see Config.MaxWait). With
	// Never, it goes then alone. A request that exceeds the limits of the Targets before waits for that
	// long, and so do all behind it. If zero, the Target is the equal of all others with zero.
	After time.Duration
}

// target is a Target and what follows from it.
type target struct {
	Target
	in        int // its place in Transport.targets
	limits    func(p Partition) limit.Limiter
	preset    provider.Preset   // the zero Preset: that of the Transport
	publisher provider.Provider // of the preset
}

// path is a way that requests may take: a Target, and an account of Keys.
type path struct {
	target  *target  // nil: there are no Targets
	account *account // nil: the request's own credential
}

// mostTargets is the most Targets of a Transport.
const mostTargets = 64

// takeWays takes the Targets and Keys, and finds what requests cost besides tokens and money.
func (t *Transport) takeWays() error {
	if err := t.takeTargets(t.config.Targets); err != nil {
		return err
	}
	ways := &choice{}
	if err := ways.takeKeys(t.config.Keys, &t.config); err != nil {
		return err
	}
	if len(t.targets) > 0 {
		t.policy.Dialect = nil // a server's dialect is that of its target
	}
	switch k := t.runs(t.main()); {
	case t.preset.Name != "":
		t.charges = t.chargesWith(t.publisher)
	case k != nil:
		t.charges = t.chargesWith(k.row)
	case len(t.targets) > 0:
		t.charges = t.chargesWith(provider.Provider{})
	}
	if err := ways.takePaths(t); err != nil {
		return err
	}
	t.choice.Store(ways)
	return nil
}

// takeTargets checks the Targets.
func (t *Transport) takeTargets(all []Target) error {
	if len(all) > mostTargets {
		return fmt.Errorf("transport: %d Targets, want %d at most", len(all), mostTargets)
	}
	for i, g := range all {
		if slices.ContainsFunc(t.targets, func(o *target) bool { return o.Name == g.Name }) {
			return fmt.Errorf("transport: Targets[%d]: another has the Name %q, too", i, g.Name)
		}
		switch {
		case g.Name == "":
			return fmt.Errorf("transport: Targets[%d] has no Name", i)
		case g.Host == "":
			return fmt.Errorf("transport: Targets[%d]: %q has no Host", i, g.Name)
		case g.After < 0:
			return fmt.Errorf("transport: Targets[%d]: After %v is negative", i, g.After)
		}
		c := Config{Preset: g.Preset, PerSecond: g.PerSecond, Limit: g.Limit}
		preset, publisher, err := c.preset()
		if err != nil {
			return fmt.Errorf("transport: Targets[%d]: %w", i, err)
		}
		g.Host = strings.ToLower(g.Host)
		t.targets = append(t.targets, &target{Target: g, in: i, limits: c.Limit, preset: preset, publisher: publisher})
	}
	if t.config.Affinity.Hold < 0 {
		return fmt.Errorf("transport: Affinity: Hold %v is negative", t.config.Affinity.Hold)
	}
	if len(all) > 0 && t.config.Organization != nil {
		return errors.New("transport: Targets and Organization are set: keys of several servers have no owner in common")
	}
	return nil
}

// takePaths lists the ways of requests: each Target, with each account that may go there.
func (c *choice) takePaths(t *Transport) error {
	targets := t.targets
	if len(targets) == 0 {
		targets = []*target{nil}
	}
	for _, g := range targets {
		before := len(c.paths)
		for _, a := range c.accounts {
			if g == nil || a.target == "" || a.target == g.Name {
				c.paths = append(c.paths, path{g, a})
			}
		}
		if len(c.paths) == before {
			c.paths = append(c.paths, path{g, nil})
			c.keyless = true
		}
	}
	for _, k := range c.keys {
		if k.Target != "" && t.target(k.Target) == nil {
			return fmt.Errorf("transport: the Target of the key %q is %q, and there is none of that name", k.Name, k.Target)
		}
	}
	return nil
}

// target returns a Target by its name; nil: there is none.
func (t *Transport) target(name string) *target {
	for _, g := range t.targets {
		if g.Name == name {
			return g
		}
	}
	return nil
}

// main returns the first Target, whose provider says what requests cost besides tokens and money.
func (t *Transport) main() (p Partition) {
	if len(t.targets) > 0 {
		p.Target, p.Host = t.targets[0].Name, t.targets[0].Host
	}
	return p
}

// takes reports whether requests of a model, by its name in requests, may go to the Target.
func (g *target) takes(model string) bool { return g == nil || g.Models == nil || model != "" }

// renames returns the name of a model at the Target.
func (g *target) renames(model string) string {
	if name, ok := g.Models[model]; ok {
		return name
	}
	return model
}

// on returns a partition of a request as the Target has it.
func (g *target) on(t *Transport, p Partition) Partition {
	p.Target, p.Host = g.Name, g.Host
	if p.Model != "" {
		p.Model = provider.SharedModel(t.vendor(p), g.renames(p.Model))
	}
	return p
}

// after returns the After of ways of a leaf; nil: all are open.
func afterOf(ways []*way) (all []time.Duration) {
	for i, w := range ways {
		if w.target == nil || w.target.After == 0 {
			continue
		}
		if all == nil {
			all = make([]time.Duration, len(ways))
		}
		all[i] = w.target.After
	}
	return all
}

// nextProbe is the longest time between two probes of a host that is down, where other targets carry
// its load meanwhile. With the way there and back, the host is found within two seconds of its return.
const nextProbe = 1800 * time.Millisecond

// on returns what the requests of a way count in, all fields.
func (w *way) on(l *leaf) Partition {
	if w.target == nil {
		return l.partition
	}
	return w.whole
}

// slowAt reports whether no limit is configured for a partition: begin slowly after a pause.
func (t *Transport) slowAt(p Partition) bool {
	if g := t.target(p.Target); g != nil {
		return t.config.Limiter == nil && t.limitsAt(&t.config, p) == nil
	}
	return t.slow
}

// probes returns the time between two probes of a host. Each counts in its limits, since the server may
// count it. So beside other targets the second one goes much later than the first, which is for accidents.
func (t *Transport) probes() (p backoff.Policy) {
	if len(t.targets) > 1 {
		p.Max, p.Factor, p.Jitter = nextProbe, 8, 0.1
	}
	return p
}

// targeted is what a request is at the Targets.
type targeted struct {
	model  string // as its body or its path names it; empty: unknown
	inPath bool   // the path names it
	raw    []byte // the body, if it was read
	at     []atTarget
	costs  []limit.Cost // by Target, if they differ: see target_differs.go
	barred uint64       // targets where its price is unknown, and a limit counts money
	failed uint64       // targets where an attempt of it failed or was refused
	moves  bool         // the next attempt leaves those out
	heads  uint64       // targets that have answered a HEAD for it

	session uint64 // by Config.Affinity; 0: none
}

// aim finds the model of a request, for its Targets.
func (c *call) aim(p *Partition) error {
	if c.model = tokens.ModelOf(c.req.URL); c.model != "" {
		c.inPath = true
	}
	if err := c.readModel(); err != nil {
		return err
	}
	p.Model = c.model
	c.attend()
	return nil
}

// readModel reads the body, if a Target needs its model, or sessions need it.
func (c *call) readModel() error {
	t, r := c.t, c.req
	if c.body == nil || c.body == http.NoBody || r.ContentLength > t.config.MaxBody ||
		r.Header.Get("Content-Encoding") != "" || !t.keeps() &&
		(c.inPath || !slices.ContainsFunc(t.targets, func(g *target) bool { return g.Models != nil })) {
		return nil
	}
	raw, err := c.read(t.config.MaxBody)
	if err != nil {
		return fmt.Errorf("transport: the body of the request: %w", err)
	}
	if c.raw = raw; !c.inPath {
		c.model, _ = tokens.ModelIn(raw)
	}
	return nil
}

// affords reports whether the request may go by a way, as far as its price is concerned.
func (c *call) affords(w *way) bool { return w.target == nil || c.barred>>w.target.in&1 == 0 }

// reroute lets the next attempt go by some ways alone, and reports whether there is one. It leaves out
// ways that are shut, and keys that have denied the request.
func (c *call) reroute(goes func(w *way) bool) bool {
	l := c.leaf
	var only []*way
	var ways [][]*paceline.Limit
	for k := range l.ways() {
		w := l.by(k)
		if goes(w) && c.isOpen(w) {
			only = append(only, w)
			ways = append(ways, l.limits(w))
		}
	}
	if len(only) == 0 {
		return false
	}
	c.retire()
	config := c.t.lanes(l)
	config.Quiet = true // it is for this call alone, and others log the same waits
	config.After, config.Classes = afterOf(only), classesOf(only)
	c.only, c.lane = only, c.t.group.Lane(config, ways...)
	l.aside(c.lane)
	return true
}

// judgeTarget notes where an attempt failed, or was refused. The next attempt leaves that Target out
// while another is open. It goes at once.
func (c *call) judgeTarget(s *sent, last bool) {
	v := &s.verdict
	if v.Result == limit.Accepted {
		c.settles(s.way.target)
		return
	}
	again := v.Again
	if !again && !last && c.getBody != nil && c.ctx.Err() == nil {
		again = v.Result == limit.Limited || v.Answer().Denied && s.key == nil // it was not processed
	}
	if !again {
		return
	}
	c.failed |= 1 << s.way.target.in
	if !c.reroute(c.untried) {
		c.failed = 1 << s.way.target.in // it failed everywhere: the next attempt goes where it may go soonest
		return
	}
	c.moves = true
	v.Again, v.Why, s.wait = true, "", 0
}

// untried reports whether no attempt of the request has failed at the Target of a way, as far as is known.
func (c *call) untried(w *way) bool { return c.failed>>w.target.in&1 == 0 && !w.server.down.Load() }

// anywhere ends the preference for some Targets, since the request has no turn there. It reports whether
// there was one.
func (c *call) anywhere() bool {
	moved := c.moves && c.ctx.Err() == nil
	if moved {
		c.moves = false
		c.retire()
	}
	return moved
}

// within keeps a request to the ways where its price is known, if limits there count money.
func (c *call) within() error {
	for c.barred != 0 && c.lane == nil && !c.reroute(c.affords) {
		for k := range c.leaf.ways() {
			if w := c.leaf.by(k); c.affords(w) {
				if err := w.look(); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// aimed returns a request as its Target takes it: a clone.
func (c *call) aimed(g *target, r *http.Request) *http.Request {
	r = clean(r)
	r.URL.Host, r.Host = g.Host, ""
	name := g.renames(c.model)
	switch {
	case name == c.model:
	case c.inPath:
		renamePath(r.URL, c.model, name)
	case c.raw != nil && r.Body != nil:
		raw := tokens.Renamed(c.raw, name)
		r.Body.Close()
		r.ContentLength = int64(len(raw))
		r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(string(raw))), nil }
		r.Body, _ = r.GetBody()
	}
	if g.Apply != nil {
		g.Apply(r, name)
	}
	return r
}

// vendor returns the provider that says which models share limits at a Target.
func (t *Transport) vendor(p Partition) string {
	g := t.target(p.Target)
	if k := t.runs(p); k != nil {
		return k.row.Name
	}
	return cmp.Or(g.publisher.Name, t.publisher.Name, "anthropic")
}

// fits reports whether the published limits of a way are those of its model.
func (t *Transport) fits(w *way, p Partition) bool {
	preset := t.preset
	if w.target != nil {
		if p.Model = w.whole.Model; w.target.preset.Name != "" {
			preset = w.target.preset
		}
	}
	return p.Model == "" || preset.Fits(p.Model)
}

// dialectAt returns the configured dialect of a Target, or of all requests; nil: none.
func (t *Transport) dialectAt(target string) provider.Dialect {
	if g := t.target(target); g != nil && g.Provider != nil {
		return g.Provider
	}
	return t.config.Provider
}

// limitsAt returns the function for the limits of a partition; nil: there are none.
func (t *Transport) limitsAt(c *Config, p Partition) func(Partition) limit.Limiter {
	limits := c.Limit
	if g := t.target(p.Target); g != nil && g.limits != nil {
		limits = g.limits
	}
	if p.Scope == provider.IP {
		return limits
	}
	for _, a := range t.choice.Load().accounts {
		if a.limit != nil && a.owns(p) {
			return a.limit
		}
	}
	return limits
}
