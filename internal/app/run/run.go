package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
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
	epoch      time.Time    // the zero of the Pool's clock
	unselected atomic.Int64 // answers from which Config.Shape could not make a whole row
	selected   selected

	// Each of these has its own lock, and none is held while another is taken.
	*telling.Teller
	course        *course
	earlier       earlier
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
	flights *sending.Flights
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
	r.organizations = newOrganizations(r, c.KeyHosts)
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
	r.earlier = earlier{c: c, store: r.store, tally: r.tally, intake: &r.intake, teller: r.Teller}
}

// Open opens the files, reads the results of earlier runs, and prepares the Pools. It sends
// nothing.
func (r *Run) Open() error {
	r.epoch = time.Now()
	r.earlier.epoch = r.epoch
	r.tally.Pace.Begin(r.epoch, r.c.each())
	if err := r.open(); err != nil {
		r.store.Undo()
		r.earlier.endNote()
		return noStart{err}
	}
	if s, isNews := r.starts.Open(r.store.History.Starts, r.epoch); isNews && r.store.Journal != nil {
		if err := r.store.Journal.Start(s); err != nil {
			r.store.Close()
			return noStart{err}
		}
	}
	r.purse.budget.Spent = sending.Money(r.store.History.Spent)
	if r.tally.Checked { // counted here, so that a run that ends at once has these figures, too
		r.tally.Skipped()
		r.earlier.tellDone()
	}
	if h := r.store.History; len(h.Doubts) > 0 { // a second Ctrl-C, too, leaves some that may have been served
		r.TellDoubts(h.Doubts, h.Failed, r.store.Journal.Path())
	}
	r.earlier.tellLost()
	r.chains.tellSingle()
	r.organizations.assign(r.store.History.Whose)
	if err := r.newPools(); err != nil {
		r.store.Close()
		return err
	}
	if !r.tally.Resumes() {
		r.tellWeak()
	}
	r.earlier.tellOthers(r.groups)
	if r.polls != nil {
		r.polls.checked = r.tally.Checked
		r.tally.Polls()
	}
	r.course.ahead(len(r.groups)*r.c.Queue, len(r.groups)*r.flights.Most())
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
	r.sender.Withdraw()
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
		t.AtOnce = t.Ceiling > 0 && r.gauge.ofLimits(0, false) <= 100
		t.Keys = r.tally.Figures.Totals(r.groups.allowed(r.tally.Uses, r.tally.First, d), d)
	}
	t.Found, t.OutOfUse = r.groups.found(), r.groups.outOfUse()
	r.purse.totals(&t)
	t.Failed, t.Latency = r.tally.Failed.All(), r.tally.Figures.All()
	r.TellPartly(t.Partly)
	r.TellCut(t.Length)
	if rows := r.selected.rows.Load(); rows < fewRows {
		r.tellNulls(rows)
	}
	if n := r.judge.unpaged.Load(); n > 0 && n < fewRows && !r.judge.paged.Load() {
		r.judge.tellUnpaged(int(n))
	}
	r.TellUnselected(t.SelectFailed, r.c.Success != nil)
	err = errors.Join(err, lost, r.store.Close())
	r.earlier.endNote()
	return t, err
}

// Outside writes answers that came another way, such as by batches of the provider. It judges them and writes their
// results as the run does those of its own sends. A run with the same files goes on from there. Not safe for
// concurrent use.
type Outside struct {
	r     *Run
	group *group
	at    time.Time            // of the results that come now
	ended map[format.Hash]bool // since it was opened
}

// Outside opens the files of a run, in place of Open. If the input was checked, the results of earlier runs were
// read then.
func (r *Run) Outside() (*Outside, error) {
	r.epoch = time.Now()
	r.earlier.epoch = r.epoch
	r.tally.Pace.Begin(r.epoch, r.c.each())
	r.earlier.keep = r.c.remembers()
	if err := r.store.Open(r.takeIn, r.Say); err != nil {
		r.store.Undo()
		return nil, err
	}
	return &Outside{r: r, group: &group{r: r}, ended: map[format.Hash]bool{}}, nil
}

// Begin comes before the results of a batch. It dates the journal. Without that a later run would take the journal to
// have lost the sends of these results, and all windows to be full.
func (o *Outside) Begin() error {
	o.at = time.Now()
	j, _, err := journal.Open(o.r.earlier.besideOut(), o.at)
	if err != nil {
		return err
	}
	return j.Close()
}

// Has reports whether a request has a result or a dead letter.
func (o *Outside) Has(id string) bool {
	return o.ended[format.HashOf(id)] || o.r.tally.HasEnded(id) || o.r.tally.IsAgain(id)
}

// Sanitized returns a text without the values of keys.
func (o *Outside) Sanitized(text string) string {
	text, _ = o.r.secrets.HideIn(text)
	return text
}

// Verdict is what an answer proves. If it is neither done nor dead, another attempt may be served.
type Verdict struct {
	Done, Dead bool
	Cut        bool // at the bound of its output
}

// Take judges the answer to a request, and writes its result if that is the end of the request. The answer was paid,
// so what Config.Success refuses is dead at once: another attempt is up to the user.
func (o *Outside) Take(q *format.Request, status int, header http.Header, body []byte) (Verdict, error) {
	at := attempt{r: o.r, a: pool.Attempt{Number: 1}, j: &job{r: q, group: o.group, key: o.r.c.Keys[0].Name,
		hop: sending.FirstHop(q), res: sending.Response{Status: status, Header: header, Body: body, Written: true,
			Began: o.at, Ended: o.at}}}
	at.ans = o.r.judge.answer(at.j)
	v := Verdict{Done: endsWell(&at.ans), Dead: at.ans.Invalid && !at.ans.Denied || at.j.unlike, Cut: at.j.cut}
	if !v.Done && !v.Dead || o.Has(q.ID) {
		return v, nil
	}
	at.shape()
	at.class()
	end := pool.Ended{State: pool.Done, Request: pool.Request{ID: q.ID, Value: at.j}, Attempts: 1, Reason: at.ans.Reason}
	if v.Dead {
		end.State = pool.Dead
	}
	if !o.r.writer.endedNow(end) {
		return v, fmt.Errorf("%w: %w", ErrOutput, o.r.course.failure)
	}
	o.ended[format.HashOf(q.ID)] = true
	return v, nil
}

// Sync makes what Take has written durable.
func (o *Outside) Sync() error { return o.r.store.SyncAll() }

// Close closes the files. It returns of how many answers Config.Shape could not make a whole row.
func (o *Outside) Close() (unselected int, err error) {
	unselected = int(o.r.unselected.Load())
	o.r.TellUnselected(unselected, o.r.c.Success != nil)
	if because := o.r.DeadBecause(); because != "" {
		o.r.c.Notice(because)
	}
	return unselected, errors.Join(o.Sync(), o.r.store.Close())
}
