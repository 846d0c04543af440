package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/paceline-go/paceline/internal/app/auth"
	"github.com/paceline-go/paceline/internal/app/journal"
	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/output"
	"github.com/paceline-go/paceline/internal/app/run/sending"
	"github.com/paceline-go/paceline/internal/app/run/tally"
	"github.com/paceline-go/paceline/internal/app/run/telling"
	"github.com/paceline-go/paceline/internal/secret"
	"github.com/paceline-go/paceline/internal/send/outgoing"
	"github.com/paceline-go/paceline/internal/text"
	"github.com/paceline-go/paceline/pool"
)

// Errors of New, Check, Open and Send, beside those of the system.
var (
	// ErrConfig says that the flags or the environment cannot be used as they are.
	ErrConfig = output.ErrConfig
	// ErrInput says that the input is wrong. If the error is an ErrUnsent, too, nothing was sent.
	ErrInput  = errors.New("invalid input")
	ErrUnsent = errors.New("nothing was sent")
	// ErrOutput says that results, dead letters or the journal could not be written. Another run
	// resumes.
	ErrOutput = errors.New("cannot write")
	// ErrHost says that a host has never answered, and that its name or its certificate is wrong.
	// Nothing is lost.
	ErrHost = errors.New("a host is not there")
	// ErrEnough says that Config.Until has passed, or that the Budget is spent, with requests left.
	// Another run resumes.
	ErrEnough = errors.New("no more is sent")
	// ErrOutage says that nothing arrived at a host for Config.MaxOutage. Another run resumes.
	ErrOutage = pool.ErrOutage
)

// Run sends the requests of one input. Call Check, Open, Send and Close in this order. Drain and
// Progress may be called at any time after Open.
type Run struct {
	c          Config
	epoch      time.Time     // the zero of the Pool's clock
	keep       time.Duration // how far back the journal goes
	noted      journal.Note
	others     bool         // what other runs sent a moment ago still counts
	unselected atomic.Int64 // answers from which Config.Shape could not make a whole row
	selected   selected

	// Each of these has its own lock, and none is held while another is taken.
	*telling.Teller
	course        *course
	store         *output.Store
	tally         *tally.Tally
	secrets       *format.Secrets
	planning      planning
	intake        intake
	starts        starts
	chains        chains
	organizations *organizations
	lessons       lessons
	trials        *trials
	hosts         *hosts
	denials       denials
	purse         purse
	polls         *polls       // nil: each request is asked once
	tokens        *auth.Keeper // nil: requests carry no tokens
	sender        *sending.Sender
	judge         judge
	writer        *writer
	ceilings      ceilings

	// Open makes these.
	groups  pools // one for each part of the input that has limits of its own
	flights *flights
	gauge   *gauge
	knobs   knobs
}

// New checks the configuration.
func New(c Config) (*Run, error) {
	c.defaults()
	wrong := c.contradiction()
	if wrong == nil {
		if err := c.files.Check(); err != nil {
			return nil, noStart{err}
		}
		if c.Meter != nil {
			c.Limits = c.Meter.Drawn(c.Limits)
		}
		if c.proxies, wrong = outgoing.FromEnvironment(); wrong == nil {
			wrong = c.unusable()
		}
	}
	if wrong != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, wrong)
	}
	r := &Run{
		c:     c,
		store: output.New(c.files),
		tally: tally.New(c.RetryDead, tally.NewFigures(c.Keys, c.Limits, c.Gap, c.nonces)),
	}
	r.tally.Elsewhere = c.Backlog != nil || c.Every > 0
	r.assemble()
	notice := r.c.Notice
	r.c.Notice = func(s string) {
		s, _ = r.secrets.HideIn(s)
		notice(s)
	}
	return r, nil
}

// assemble makes the parts of the run, each with those that it needs.
func (r *Run) assemble() {
	c := &r.c
	r.Teller = telling.New(func(s string) { c.Notice(s) }, c.keyless, c.HoldUnanswered)
	r.course = newCourse(r.Drain)
	r.hosts = newHosts(r.Teller, r.course)
	r.purse = purse{c, r.tally, r.course, c.budget()}
	r.denials.c, r.denials.teller, r.denials.course = c, r.Teller, r.course
	r.lessons.c, r.lessons.teller = c, r.Teller
	r.organizations = newOrganizations(c, c.KeyHosts)
	r.secrets = c.secrets()
	r.trials = newTrials(r.Teller, r.secrets, c.SameErrors, r.tally.Served)
	r.sender = sending.New(c.sending(r.secrets, r.store.Files))
	r.tokens = c.newTokens(r.secrets, r.Teller, r.course)
	r.polls = newPolls(c)
	r.writer = &writer{c: c, polls: r.polls, secrets: r.secrets, sender: r.sender, store: r.store, tally: r.tally, course: r.course,
		trials: r.trials, ceiling: &r.ceilings}
	r.writer.roomFor(c.inFlight.Most)
	j := &r.judge
	j.c, j.policy, j.secrets, j.sender, j.tokens = c, c.newPolicy(), r.secrets, r.sender, r.tokens
	j.tally, j.hosts, j.denials, j.teller, j.course = r.tally, r.hosts, &r.denials, r.Teller, r.course
	r.starts.c, r.starts.tally, r.starts.store, r.starts.course = c, r.tally, r.store, r.course
	r.chains.c, r.chains.tally, r.chains.judge, r.chains.teller = c, r.tally, j, r.Teller
	r.planning = planning{c: c, tally: r.tally, secrets: r.secrets, sender: r.sender, models: c.ofBacklog()}
	r.intake = intake{c: c, prices: c.prices, tally: r.tally, store: r.store, chains: &r.chains, homes: c.KeyHosts}
}

// Open opens the files, reads the results of earlier runs, and prepares the Pools. It sends
// nothing.
func (r *Run) Open() error {
	r.epoch = time.Now()
	r.tally.Pace.Begin(r.epoch, r.c.each())
	if err := r.open(); err != nil {
		r.store.Undo()
		r.endNote()
		return noStart{err}
	}
	if s, isNews := r.starts.open(r.store.History.Starts, r.epoch); isNews && r.store.Journal != nil {
		if err := r.store.Journal.Start(s); err != nil {
			r.store.Close()
			return noStart{err}
		}
	}
	r.purse.budget.Spent = sending.Money(r.store.History.Spent)
	if r.tally.Checked { // counted here, so that a run that ends at once has these figures, too
		r.tally.Skipped()
	}
	if !r.tally.Resumes() {
		r.tellWeak()
	}
	if open := r.store.History.Doubts; len(open) > 0 { // a second Ctrl-C, too, leaves some that may have been served
		r.TellOpen(open, r.store.Journal.Path())
	}
	r.tellLost()
	r.organizations.assign(r.store.History.Whose)
	if err := r.newPools(); err != nil {
		r.store.Close()
		return err
	}
	r.tellOthers()
	if r.polls != nil {
		r.polls.checked = r.tally.Checked
		r.tally.Polls()
	}
	r.course.ahead(len(r.groups)*r.c.Queue, len(r.groups)*r.flights.most())
	return nil
}

// tellWeak names the keys that results may show. Those of servers on this machine are of tests.
func (r *Run) tellWeak() {
	isLocal := len(r.intake.homes) > 0 && !slices.ContainsFunc(r.intake.homes,
		func(p secret.Place) bool { return !p.IsLoopback() })
	if weak := r.secrets.Weak(); len(weak) > 0 && !isLocal {
		r.Say("if an answer repeats the value of %s, the results show it: a key so short or so simple cannot be told "+
			"from other text", strings.Join(weak, " or "))
	}
}

// Send reads the input and sends its requests. It returns nil if every request that was read has
// ended or was drained. Its errors are:
//
//   - ErrInput: the input could not be read to its end. The requests before that place have ended.
//   - pool.ErrExhausted: every key is out of use, or is denied everything.
//   - ErrOutput, ErrHost, ErrEnough, ErrOutage, or the error of ctx.
func (r *Run) Send(ctx context.Context, name string, in io.Reader) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan struct{})
	var beside sync.WaitGroup
	beside.Go(func() { r.store.Syncer(done, r.course.fail) })
	r.ceilings.note(r.gauge.sustained())
	beside.Go(func() { r.watch(done) })
	if !r.c.Until.IsZero() {
		if r.c.isOver() {
			r.course.ends(r.c.over())
		}
		beside.Go(func() { r.course.until(&r.c, done) })
	}
	all := in
	var known *io.LimitedReader
	if r.tally.Checked {
		known = &io.LimitedReader{R: in, N: r.planning.plan.Bytes}
		if len(r.groups) == 1 {
			in = known
		}
	}
	// When the Pool stops, the feeder may be stuck in a read that cannot be ended. Then it is left
	// behind, and changes nothing any more.
	f := &feeder{intake: &r.intake, starts: &r.starts, secrets: r.secrets, hosts: r.hosts, trials: r.trials, course: r.course,
		writer: r.writer, teller: r.Teller, polls: r.polls, gauge: r.gauge, groups: r.groups, bytes: r.planning.plan.Bytes}
	r.course.feeding = true
	go func() {
		if r.polls != nil {
			f.poll(ctx, name, in)
		} else {
			f.all(ctx, name, in)
		}
		r.course.set(func() { r.course.feeding = false })
		for _, g := range r.groups {
			g.pool.Close()
		}
	}()
	err := r.groups.run(ctx)
	r.store.Stop()
	r.trials.stop()
	if r.tokens != nil {
		r.tokens.Close()
	}
	r.groups.tellMisfits()
	r.trials.tellUnsent()
	close(done)
	beside.Wait()
	if waiting, err := r.store.EndView(); err != nil {
		r.course.fail(err)
	} else if waiting > 0 {
		r.Say("%s in %s for one before them that has not ended", text.Count(waiting, "result waits", "results wait"),
			r.c.Out)
	}
	if gone := r.course.left(); gone && known != nil && r.c.Input.First == 0 {
		f.appended(name, all, known.N)
	}
	switch c := r.course; {
	case c.failure != nil:
		return fmt.Errorf("%w: %w", ErrOutput, c.failure)
	case c.wrong != nil:
		return c.wrong
	case c.enough != nil && !r.tally.Finished(c.whole && r.groups.waiting() == 0):
		return c.enough
	case r.c.keyless && errors.Is(err, pool.ErrExhausted):
		return exhausted("the server refuses for good: " + r.groups[0].pool.Keys()[0].Reason)
	case err != nil:
		return err
	default:
		return c.input
	}
}

// Drain stops the sending. Send returns when the requests in flight have their answers.
func (r *Run) Drain() {
	r.course.stop()
	r.store.Stop()
	if r.tokens != nil {
		r.tokens.Stop()
	}
	r.trials.stop()
	r.groups.drain()
}

// Close reads the results and the dead letters back, compares them with the input, and closes the
// files.
func (r *Run) Close() (t tally.Totals, err error) {
	defer r.sender.Close()
	r.course.stop()
	r.tally.Mu.Lock()
	defer r.tally.Mu.Unlock()
	err = r.store.ReadBack(r.tally.GoesAgain, r.tally.Back)
	var lost error
	t, lost = r.tally.Close(r.groups.waiting())
	t.SelectFailed = int(r.unselected.Load())
	r.polls.totals(&t)
	d := r.tally.Final.Sub(r.tally.First)
	if t.Seconds = d.Seconds(); t.Seconds > 0.001 {
		t.Rate = float64(t.Done) / t.Seconds
		t.Ceiling, t.Sustained = r.gauge.ceiling(d, false), r.gauge.ceiling(0, false)
		t.Percent, t.OfLimit = r.gauge.percent(d, false), r.gauge.ofLimits(d, false)
		t.Keys = r.tally.Figures.Totals(r.groups.allowed(r.tally.First, d), d)
	}
	t.Found, t.OutOfUse = r.groups.found(), r.outOfUse()
	r.purse.totals(&t)
	t.Failed, t.Latency = r.tally.Failed.All(), r.tally.Figures.All()
	r.TellPartly(t.Partly)
	r.TellCut(t.Length)
	if rows := r.selected.rows.Load(); rows < fewRows {
		r.tellNulls(rows)
	}
	r.TellUnselected(t.SelectFailed, r.c.Success != nil)
	err = errors.Join(err, lost, r.store.Close())
	r.endNote()
	return t, err
}
