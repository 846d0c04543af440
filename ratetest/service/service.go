package service

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/ratetest/internal/host"
	"github.com/paceline-go/paceline/ratetest/latency"
)

// Config describes a Server. Only Provider has no default.
type Config struct {
	// Provider is the provider whose limits and answers the server has: a name from All.
	Provider string
	// Preset is a set of that provider's limits: one of its Presets. If empty, the first one.
	Preset string
	// Limits changes limits of the preset with the same Name. It replaces Limit, Window, Burst and
	// Rule where they are not zero.
	Limits []provider.Policy
	// Scale is the speed of the server's clock relative to the real one. If zero, 1. At most 1000.
	// All times in answers are by the server's clock.
	Scale float64
	// VirtualClients is the number of clients of a virtual clock, by which the server counts. Then
	// Scale, Before and After are not set. If zero, the clock is real. See ratetest.Exchange. The
	// virtual clock starts at 1970-01-01 00:00 UTC.
	VirtualClients int
	// Before and After are the latencies of each request on its way to the check and back, by the
	// server's clock. If zero, none.
	Before, After latency.Law
	// Seed is for the latencies.
	Seed uint64
	// LogTo, if not nil, gets lines of JSON: see Line. A slow writer delays answers, not checks.
	// The server does not close LogTo.
	LogTo io.Writer
}

// Server is a server with the limits of a provider. Each limit has the kind of window that the
// provider documents. It applies to each key, address, model or route, as documented. Answers have
// the provider's header fields, status codes and error bodies. The content is made up, and any
// method of any path is accepted. Some providers have endpoints that answer in the form of their
// APIs. These ask for a key, and a request without one counts in no limit.
//
// Keys are read from the usual header fields: Authorization, X-Api-Key and the providers' own. A
// request without a key counts by its address. A route is a key, a method and a path, unless the
// provider documents another meaning. A request costs 1, except on the few paths for which the
// provider documents a cost. Tokens are estimated: one per four bytes of body, and the output that
// the request allows.
//
// A Server is an http.Handler that also runs in memory and in a synctest bubble. Start gives it a
// socket. Safe for concurrent use.
type Server struct {
	host.Host // Start, StartListener, URL, Close, Shutdown

	config Config
	row    *tableRow
	set    string
	limits []provider.Policy
	ban    *banRule
	clock  *host.Clock
	log    host.Journal
	work   *host.Requests

	mu      sync.Mutex // guards the fields below, and is never held across a wait or a write
	rng     *rand.Rand
	n       uint64
	keys    map[string]string // key to its name in the log
	gauges  map[gaugeID]*gauge
	outlaws map[string]*outlaw
	judge   *judge
	dropped int
	peak    int
}

// Info describes a provider for a Server.
type Info struct {
	Name, About string
	// Presets are the provider's sets of limits, the default first.
	Presets []string
	// Assumed explains the parts of the limits that the provider does not document. If empty,
	// everything is documented.
	Assumed string
}

// All returns the providers, sorted by name.
func All() []Info {
	all := make([]Info, 0, len(table()))
	for _, r := range table() {
		s := Info{r.name, r.about, nil, r.assumed}
		for _, set := range r.sets() {
			s.Presets = append(s.Presets, set.name)
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b Info) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// gauge is the state of one limit for one client, address, model or route.
type gauge struct {
	who  string
	rule rule.Timed // nil: of concurrency
	open int64
	left int64 // at the last look
}

type gaugeID struct {
	policy int
	who    string
}

// mostGauges bounds the memory that strangers can use. Beyond it, all other strangers share one
// gauge for each limit.
const mostGauges = 20_000

// New returns a server that no request has reached. The error names the field and value.
func New(c Config) (*Server, error) {
	row, set, limits, err := c.policies()
	if err != nil {
		return nil, err
	}
	clock, err := host.NewClock(host.ClockConfig{Scale: c.Scale, Clients: c.VirtualClients,
		Latency: c.Before != latency.Law{} || c.After != latency.Law{}})
	if err != nil {
		return nil, fmt.Errorf("ratetest: Service: %w", err)
	}
	s := &Server{
		config: c, row: row, set: set, limits: limits, ban: banOf(row, limits), clock: clock,
		log: host.Journal{To: c.LogTo}, rng: rand.New(rand.NewPCG(c.Seed, 0)),
		keys: map[string]string{}, gauges: map[gaugeID]*gauge{}, outlaws: map[string]*outlaw{}, judge: newJudge(row, limits),
	}
	for i := range limits {
		if _, err := s.newGauge(i, ""); err != nil {
			return nil, fmt.Errorf("ratetest: Service: Limits: %q: %w", limits[i].Name, err)
		}
	}
	s.Host, s.work = host.New(s, clock, s.log.Flush)
	return s, nil
}

// policies returns the provider, and the limits that the server enforces.
func (c *Config) policies() (row *tableRow, name string, limits []provider.Policy, err error) {
	i := slices.IndexFunc(table(), func(r *tableRow) bool { return r.name == c.Provider })
	if i < 0 {
		return nil, "", nil, fmt.Errorf("ratetest: Service: no Provider %q", c.Provider)
	}
	row = table()[i]
	sets := row.sets()
	set := sets[0]
	if c.Preset != "" {
		if i = slices.IndexFunc(sets, func(s limitSet) bool { return s.name == c.Preset }); i < 0 {
			var names []string
			for _, s := range sets {
				names = append(names, s.name)
			}
			return nil, "", nil, fmt.Errorf("ratetest: Service: Preset %q: %s has %s", c.Preset, row.name,
				strings.Join(names, ", "))
		}
		set = sets[i]
	}
	limits = set.policies
	for _, with := range c.Limits {
		i := slices.IndexFunc(limits, func(p provider.Policy) bool { return p.Name == with.Name })
		if i < 0 {
			var names []string
			for _, p := range limits {
				names = append(names, strconv.Quote(p.Name))
			}
			return nil, "", nil, fmt.Errorf("ratetest: Service: Limits: no %q: %s has %s", with.Name, set.name,
				strings.Join(names, ", "))
		}
		p := &limits[i]
		if with.Limit != 0 {
			p.Limit, p.Burst = with.Limit, 0
		}
		if with.Window != 0 {
			p.Window = with.Window
		}
		if with.Burst != 0 {
			p.Burst = with.Burst
		}
		if with.Rule != "" {
			p.Rule = with.Rule
		}
	}
	return row, set.name, limits, nil
}

// Limits returns the limits that the server enforces. The caller owns them.
func (s *Server) Limits() []provider.Policy { return slices.Clone(s.limits) }

// now returns the time of the server's own clock.
func (s *Server) now() time.Time {
	return s.clock.Base().Add(s.clock.Elapsed())
}

// epoch returns the zero of the rules' instants: a midnight, UTC. So ticks and intervals match the
// clock.
func epoch(t time.Time) time.Time { return t.Truncate(day).UTC() }

// servedRule returns the rule for a policy, and its witness. Their instants count from epoch.
func servedRule(row *tableRow, p provider.Policy, epoch time.Time) (rule.Timed, func() (rule.Witness, error), error) {
	switch p.Rule {
	case provider.Rolling:
		c := rule.RollingConfig{Limit: p.Limit, Window: p.Window}
		r, err := rule.NewRolling(c)
		return r, c.Witness, err
	case provider.Calendar:
		phase := mono.Of(epoch, time.Unix(0, 0))
		if p.Window >= day {
			phase = phase.Add(row.midnight)
		}
		c := rule.CalendarConfig{Limit: p.Limit, Window: p.Window, Phase: phase, RefusedCount: row.refusedCount}
		r, err := rule.NewCalendar(c)
		return r, c.Witness, err
	case provider.Anchored:
		c := rule.AnchoredConfig{Limit: p.Limit, Window: p.Window}
		r, err := rule.NewAnchored(c)
		return r, c.Witness, err
	case provider.Bucket:
		c := rule.BucketConfig{Limit: p.Limit, Window: p.Window, Capacity: p.Burst}
		r, err := rule.NewBucket(c)
		return r, c.Witness, err
	}
	return nil, nil, fmt.Errorf("no rule %q", p.Rule)
}

// most returns the most units that a limit holds at once.
func most(p *provider.Policy) int64 {
	if p.Rule == provider.Bucket && p.Burst > 0 {
		return p.Burst
	}
	return p.Limit
}

func (s *Server) newGauge(policy int, who string) (*gauge, error) {
	p := s.limits[policy]
	if p.Limit < 1 || p.Limit > provider.MaxCount || p.Burst < 0 || p.Burst > provider.MaxCount {
		return nil, fmt.Errorf("limit %d or burst %d is not from 1 to %d", p.Limit, p.Burst, int64(provider.MaxCount))
	}
	g := &gauge{who: who, left: most(&p)}
	if p.Rule == provider.Concurrency {
		return g, nil
	}
	r, _, err := servedRule(s.row, p, epoch(s.clock.Base()))
	g.rule = r
	return g, err
}

// gauge returns the gauge of a policy for the client, address, model or route that a request counts
// in. The lock is held.
func (s *Server) gauge(policy int, who string) *gauge {
	id := gaugeID{policy, who}
	if g := s.gauges[id]; g != nil {
		return g
	}
	if len(s.gauges) >= mostGauges {
		id.who = everybody
		if g := s.gauges[id]; g != nil {
			return g
		}
	}
	g, err := s.newGauge(policy, id.who)
	if err != nil {
		panic(err) // New has made this gauge once without error
	}
	s.gauges[id] = g
	return g
}

const everybody = "everybody else"

// standing is the state of a limit for one request, after the decision.
type standing struct {
	provider.Policy
	Who        string
	Cost, Left int64
	// Whole is when the limit is unused again. Zero: a limit of concurrency, which depends on other
	// answers.
	Whole time.Time
	// Over reports that this limit refused the request. Ready is when it no longer does. The zero
	// Ready means never or unknown.
	Over  bool
	Ready time.Time
}

// Used returns the used part of the limit.
func (s *standing) Used() int64 { return most(&s.Policy) - s.Left }

// reply is an answer under construction.
type reply struct {
	*asked
	n      uint64
	preset string
	now    time.Time // by the server's clock
	limits []standing
	// by is the limit that refused, nil if none did. Of several, it is the limit with the longest
	// wait.
	by    *standing
	never bool          // the cost is more than the limit ever holds
	wait  time.Duration // until the request would pass if no other came; 0: unknown, or never
	until time.Time     // the end of the ban; zero: no ban
	// passed reports that the limits and bans let the request pass, so its endpoint answers.
	passed bool

	header http.Header
	status int
	body   any // a string is sent as it is
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.clock.Answers(w, r) {
		return
	}
	if !s.work.Enter() {
		host.Answer(w, http.StatusServiceUnavailable, host.Failure("the server is closing"))
		return
	}
	defer s.work.Leave()
	s.mu.Lock()
	before, after := s.config.Before.Draw(s.rng), s.config.After.Draw(s.rng)
	s.peak = max(s.peak, s.work.Underway())
	s.mu.Unlock()
	asked := s.read(r)
	if !s.work.Wait(s.clock.Real(before)) {
		s.mu.Lock()
		s.dropped++
		s.mu.Unlock()
		host.Answer(w, http.StatusServiceUnavailable, host.Failure("the server is closing"))
		return
	}
	a, open := s.check(asked)
	s.log.Flush() // Close returns the error
	defer s.log.Flush()
	s.work.Wait(s.clock.Real(after))
	defer s.answered(a, open)

	a.write(w)
}

// check decides about a request. It returns the answer, and the gauges of concurrency to release
// later.
func (s *Server) check(q *asked) (*reply, []*gauge) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	clock := s.now()
	now := mono.Of(epoch(s.clock.Base()), clock)
	a := &reply{asked: q, n: s.n, preset: s.set, now: clock, header: http.Header{}, status: http.StatusOK,
		body: map[string]any{"status": "OK"}}
	// A server with a clock of its own speed sends the time of that clock.
	a.header.Set("Date", clock.UTC().Format(http.TimeFormat))
	line := Line{Event: "request", At: clock.UnixNano(), N: s.n, Method: clipped(q.Method), Path: clipped(q.path()),
		Client: q.Client, Verdict: host.Accepted}

	var out *outlaw
	b := s.ban
	if b != nil {
		if out, line.Bannable = s.outlaw(b.who(q)); out.until > now {
			a.until = clock.Add(out.until.Sub(now))
			line.Verdict, line.Until = banned, a.until.UnixNano()
		}
	}
	if q.answer != nil && q.answer.stranger && a.until.IsZero() {
		line.Verdict, a.passed = unauthorized, true
		a.status, line.Status = q.answer.status, q.answer.status
		s.hear(&line)
		return a, nil
	}
	var open []*gauge
	if a.until.IsZero() {
		open = s.decide(a, now)
		if a.by != nil {
			line.Verdict, line.By, line.Wait = host.Limited, a.by.Name, int64(a.wait)
			if a.never {
				line.Verdict = host.TooLarge
			}
			s.banish(a, out, now)
			if !a.until.IsZero() {
				line.Until = a.until.UnixNano()
			}
		} else if out != nil {
			out.inARow = 0
		}
	}
	switch {
	case !a.until.IsZero() && (line.Verdict == banned || b.atOnce):
		a.status = http.StatusForbidden
	case a.by != nil:
		a.status = http.StatusTooManyRequests
		a.until = time.Time{} // the ban is for the next request
	default:
		if a.passed = true; q.answer != nil {
			a.status = q.answer.status
		}
	}
	s.row.speak(a)
	line.Status = a.status
	for i := range a.limits {
		l := &a.limits[i]
		if l.Cost == 0 {
			continue
		}
		c := Count{Policy: l.Name, Who: l.Who, Cost: l.Cost, Left: l.Left}
		if !l.Whole.IsZero() {
			c.Whole = int64(l.Whole.Sub(clock))
		}
		line.Counts = append(line.Counts, c)
	}
	s.hear(&line)
	return a, open
}

// hear passes a line to the judge and the log. The lock is held.
func (s *Server) hear(line *Line) {
	if err := s.judge.hear(line); err != nil {
		s.judge.wrong("line %d: %v", line.N, err)
	}
	if s.log.To != nil {
		s.log.Add(line)
	}
}

// decide asks all limits in which the request counts. The lock is held.
func (s *Server) decide(a *reply, now mono.Time) (open []*gauge) {
	var gauges []*gauge
	at := func(t mono.Time) time.Time { return a.now.Add(t.Sub(now)) }
	by := -1
	for i := range s.limits {
		p := s.limits[i]
		cost := int64(1)
		if s.row.cost != nil {
			cost = s.row.cost(a.asked, &p)
		}
		if cost == 0 {
			continue
		}
		g := s.gauge(i, s.who(a.asked, &p))
		l := standing{Policy: p, Who: g.who, Cost: max(cost, 0)}
		fits := cost < 0
		if fits {
		} else if g.rule == nil {
			l.Cost = 1
			fits = g.open < p.Limit
		} else if fits = g.rule.Fits(now, cost); !fits {
			if t, ok := g.rule.Ready(now, cost); ok {
				l.Ready = at(t)
			}
		}
		gauges, a.limits = append(gauges, g), append(a.limits, l)
		if fits {
			continue
		}
		a.limits[len(a.limits)-1].Over = true
		never := g.rule != nil && cost > most(&p)
		if by < 0 || !a.never && (never || l.Ready.After(a.limits[by].Ready)) {
			by, a.never = len(a.limits)-1, never
		}
	}
	for i, g := range gauges {
		l := &a.limits[i]
		if g.rule == nil {
			if by < 0 {
				g.open++
				open = append(open, g)
			}
			l.Left = l.Limit - g.open
			continue
		}
		if l.Cost > 0 {
			g.rule.Count(now, l.Cost, by < 0)
		}
		g.left = rule.Left(g.rule, now, most(&l.Policy), g.left)
		l.Left = g.left
		t, _ := g.rule.Ready(now, most(&l.Policy))
		l.Whole = at(t)
	}
	if by >= 0 {
		if a.by = &a.limits[by]; !a.by.Ready.IsZero() {
			a.wait = a.by.Ready.Sub(a.now)
		}
	}
	return open
}

// answered releases the gauges that a request held open.
func (s *Server) answered(a *reply, open []*gauge) {
	if len(open) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	line := Line{Event: "answered", At: s.now().UnixNano(), N: a.n}
	for _, l := range a.limits {
		if l.Rule == provider.Concurrency {
			line.Counts = append(line.Counts, Count{Policy: l.Name, Who: l.Who, Cost: 1})
		}
	}
	for _, g := range open {
		g.open--
	}
	s.hear(&line)
}

// Report sums up the requests so far.
func (s *Server) Report() Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.judge.sum()
	r.Provider = s.row.name
	r.Dropped, r.Peak = s.dropped, s.peak
	r.Elapsed = s.clock.Elapsed()
	return r
}

// errLine reports a line that no Server writes.
var errLine = errors.New("is no line of a Service")
