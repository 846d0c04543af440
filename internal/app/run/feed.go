package run

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/paceline-go/paceline/internal/app/journal"
	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/output"
	"github.com/paceline-go/paceline/internal/app/run/sending"
	"github.com/paceline-go/paceline/internal/app/run/tally"
	"github.com/paceline-go/paceline/internal/app/run/telling"
	"github.com/paceline-go/paceline/internal/text"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/pool"
)

// feeder hands the requests of the input to the Pools. One goroutine for each group calls it.
type feeder struct {
	*intake
	starts  *starts
	secrets *format.Secrets
	hosts   *hosts
	trials  *trials
	course  *course
	writer  *writer // of what is dead without being sent
	teller  *telling.Teller
	groups  pools
	polls   *polls
	gauge   *gauge
	several bool  // each group has a feeder of its own
	bytes   int64 // the size of the input, if it was checked
}

// all feeds all groups until the end of the input. Each group reads the input for itself if it
// can be read at several places.
func (f *feeder) all(ctx context.Context, name string, in io.Reader) {
	at, ok := in.(io.ReaderAt)
	if ok = ok && takesTurns(in); !ok && f.tally.Checked && len(f.groups) > 1 {
		in = &io.LimitedReader{R: in, N: f.bytes}
	}
	if !ok || len(f.groups) == 1 {
		f.feed(ctx, name, in, nil)
		return
	}
	from := int64(0)
	if s, ok := in.(io.Seeker); ok {
		from, _ = s.Seek(0, io.SeekCurrent)
	}
	f.several = true
	checked := func() io.Reader { return &io.LimitedReader{R: io.NewSectionReader(at, from, f.bytes), N: f.bytes} }
	var all sync.WaitGroup
	if f.store.IsOrdered() {
		all.Go(func() { f.order(name, checked()) })
	}
	for _, g := range f.groups {
		all.Go(func() { f.feed(ctx, name, checked(), g) })
	}
	all.Wait()
}

// order reads the ids of all requests, so that the results are shown in the order of the input although several
// feeders read it.
func (f *feeder) order(name string, in io.Reader) {
	reader := format.NewReader(f.c.Format, name, in, f.c.Input)
	reader.Meter = nil
	for f.course.isReading(false) {
		q, err := reader.Next()
		if _, invalid := errors.AsType[*format.InputError](err); invalid {
			continue
		}
		if err != nil {
			return
		}
		f.store.Read(format.HashOf(q.ID), q.Place(), !f.tally.HasEnded(q.ID))
	}
}

// feed reads the input and hands its requests to the Pools. If of is not nil, it hands over only
// the requests of that group.
func (f *feeder) feed(ctx context.Context, name string, in io.Reader, of *group) {
	reader := format.NewReader(f.c.Format, name, in, f.c.Input)
	reader.Meter = f.c.Meter
	t := f.tally
	if t.Checked {
		reader.Pass, reader.Ended = format.Checked, f.tally.HasEnded
	}
	each, _ := f.c.divides()
	each = each && f.c.Backlog != nil
	isFirst := of == nil || of.index == 0 // only the first of several feeders reports what is wrong
	if of != nil {
		reader.Passes = func(model string) bool { return f.groups.of(f.c.Meter, model) != of }
	}
	for f.course.isReading(of == nil) { // with several feeders the input is a file, not a terminal
		q, err := f.read(reader)
		if !f.course.isReading(false) {
			return
		}
		_, invalid := errors.AsType[*format.InputError](err)
		skip := invalid && f.c.SkipInvalid
		if (err == io.EOF || invalid && !skip) && isCut(in) { // perhaps within a line
			f.course.first(&f.course.input, fmt.Errorf("%w: %s has become shorter since it was checked", ErrInput, name))
			err = io.EOF
		}
		if err == io.EOF {
			f.course.set(func() { f.course.whole = true })
			return
		}
		switch {
		case invalid && f.c.Backlog != nil:
			f.broken(reader.Raw(), err)
		case err == nil && each && f.lacks(q):
			f.later(q)
		case err == nil && q.Passed, skip && !isFirst:
		case err != nil && !isFirst:
			return
		case skip && t.Checked: // Check has reported this line
			f.skipped(reader, err)
		case err != nil:
			t.Count(&t.Totals.Invalid, 1)
			if !skip {
				f.course.first(&f.course.input,
					fmt.Errorf("%w: %w; reading stops here, what was read before is finished", ErrInput, err))
				return
			}
			f.c.Notice(err.Error())
			f.skipped(reader, err)
		case !f.offer(ctx, q):
			return
		}
	}
}

// isCut reports whether an input ended before the end that its check found.
func isCut(in io.Reader) bool {
	checked, is := in.(*io.LimitedReader)
	if !is || checked.N == 0 {
		return false
	}
	_, err := io.ReadFull(checked.R, make([]byte, 1))
	return err == io.EOF
}

// appended counts the lines that were added to the input after its check. Only checked lines are
// sent, so these are left for another run.
func (f *feeder) appended(name string, in io.Reader, unread int64) {
	if s, ok := in.(io.Seeker); ok {
		_, _ = s.Seek(unread, io.SeekCurrent)
	} else {
		_, _ = io.CopyN(io.Discard, in, unread)
	}
	n, blank := 0, true
	for rest := bufio.NewReader(in); ; {
		c, err := rest.ReadByte()
		if (err != nil || c == '\n') && !blank {
			n++
			blank = true
		}
		if err != nil {
			break
		}
		blank = blank && (c == '\n' || c == ' ' || c == '\t' || c == '\r')
	}
	if n > 0 {
		f.tally.Count(&f.tally.Totals.Appended, n)
		f.teller.Say("%s appended to %s after it was checked, and left for another run",
			text.Count(n, "line was", "lines were"), name)
	}
}

// offer hands a request to the Pool, or skips it if it ended in an earlier run. It returns false if
// the run is over.
func (f *feeder) offer(ctx context.Context, q *format.Request) bool {
	anew := f.tally.Read(q)
	if f.several {
		f.store.Await(q.Place())
	} else {
		f.store.Read(q.Hash, q.Place(), anew)
	}
	var stray error
	if !anew {
		f.store.Lost.Passed()
		if q, stray = f.chains.resumed(q); q == nil || !f.tally.Turned(q) {
			return true
		}
	} else if f.c.Next != nil {
		q.Begin()
	}
	return f.hand(ctx, q, stray)
}

// hand hands a request to the Pool. It returns false if the run is over.
func (f *feeder) hand(ctx context.Context, q *format.Request, stray error) bool {
	f.secrets.Conceal(q)
	g := f.groups.of(f.c.Meter, q.Estimate.Model)
	j := &job{r: q, group: g, hop: sending.FirstHop(q), size: int64(len(q.Raw)+len(q.Body)) + 512}
	earlier := 0
	if j.repeat = f.store.Lost.MayHave(q.ID, f.store.History); f.c.Backlog != nil {
		_, earlier, j.repeat = f.c.Backlog.Latest()
	}
	if f.noBudget(q) {
		return false
	}
	if !f.course.take(j.size) {
		return false
	}
	f.tally.Count(&f.tally.Totals.Offered, 1)
	f.hosts.note(j.hop.Host, named)
	if e, ok := errors.AsType[sending.Straying](stray); ok {
		j.class, j.reason = e.Class, e.Reason
		f.deadUnsent(j, 0)
		return true
	}
	if f.c.HoldUnanswered && j.repeat {
		j.repeat = false
		j.class, j.reason = format.DeadHeld, "sent by a run before, and never answered: held back (--unanswered hold)"
		f.deadUnsent(j, earlier)
		return true
	}
	if earlier >= f.c.Attempts {
		j.class, j.reason = format.DeadOutage, "its attempts ended with the processes that made them, and no answer is known"
		f.deadUnsent(j, earlier)
		return true
	}
	// The reader of a backlog is one for all models, so none of them may hold it up.
	spared := false
	if j.first, spared = f.trials.enter(j, f.c.Backlog == nil); spared {
		f.deadUnsent(j, earlier)
		return true
	}
	err := f.submit(ctx, j, earlier)
	if err == nil {
		return true
	}
	f.tally.Count(&f.tally.Totals.Offered, -1)
	if !errors.Is(err, pool.ErrClosed) && ctx.Err() == nil {
		f.course.fail(err)
	}
	return false
}

// submit hands a request to its Pool. A lesson on its cost may come after the request was read, and while it waits for
// room in the Pool. Then the Pool does not know of it yet, and the lesson is for those that it knows.
func (f *feeder) submit(ctx context.Context, j *job, earlier int) error {
	q, g := j.r, j.group
	has, lessons := q.Charge != nil, int64(0)
	if has {
		if lessons = f.prices.lessons(); lessons > 0 {
			f.prices.taught(q)
		}
	}
	ttl, renewal := f.starts.due(q)
	j.waited[0] = g.waits.Until(time.Now())
	err := g.pool.Submit(ctx,
		pool.Request{ID: turnOf(q), Cost: q.Cost, Free: q.Cost == limit.Cost{}, Priority: q.Priority, TTL: ttl, Renewal: renewal,
			Resource: q.Apart(), Attempts: earlier, Created: f.created(g, q), Value: j})
	if err == nil && f.trials.isOver(j) { // since it was let in
		f.trials.clear(pools{g})
	}
	if err == nil && has && f.prices.lessons() != lessons {
		f.prices.mend(pools{g}, 0)
	}
	return err
}

// created returns since when the value of a request falls, if it does.
func (f *feeder) created(g *group, q *format.Request) mono.Time {
	if f.c.Decay == 0 {
		return 0
	}
	return cmp.Or(mono.Of(g.r.epoch, f.starts.start(q)), 1) // 0 would be: from its submission
}

// noBudget ends the reading if there is a budget and the price of a request is not known. The
// budget could not be kept then.
func (f *feeder) noBudget(q *format.Request) bool {
	if f.c.Meter == nil || f.c.Budget == 0 || q.Estimate.Model == "" {
		return false
	}
	if _, known := f.c.pricesOf(q.Estimate.Model); known {
		return false
	}
	f.course.first(&f.course.input, unpriced([]string{q.Estimate.Model}))
	return true
}

// deadUnsent makes a request a dead letter without sending it. Other processes may have made attempts at it.
func (f *feeder) deadUnsent(j *job, attempts int) {
	f.writer.ended([]pool.Ended{{State: pool.Dead, Request: pool.Request{ID: j.r.ID, Value: j}, Attempts: attempts,
		Submitted: f.groups[0].pool.Now(), Reason: j.reason}})
}

// later leaves a request of a backlog to the run after this one, which has limits for its model.
func (f *feeder) later(q *format.Request) {
	model := q.Estimate.Model
	if len(f.c.Models) < MostModels && model != "" && len(model) <= LongestModel {
		f.c.Backlog.Lacks(model)
		return
	}
	f.broken(q.Raw, fmt.Errorf("model %q has no limits of its own: of a backlog, %d models have, with names of at most %d bytes",
		model, MostModels, LongestModel))
}

// broken makes the request of a backlog a dead letter, whose line is no request that can be sent.
func (f *feeder) broken(line []byte, why error) {
	id, earlier, _ := f.c.Backlog.Latest()
	j := &job{r: &format.Request{ID: id, Cost: limit.One}, group: f.groups[0], class: format.DeadInvalid, reason: why.Error()}
	if json.Valid(line) {
		j.r.Raw = bytes.Clone(line)
	}
	f.tally.Read(j.r)
	f.tally.Count(&f.tally.Totals.Offered, 1)
	f.deadUnsent(j, earlier)
}

// skipped writes a line that is no request to the errors, if the format has a place for it. That is
// done once for all runs.
func (f *feeder) skipped(from *format.Reader, why error) {
	l, ok := f.c.Format.(*format.LLM)
	if !ok || !f.store.HasErrors() {
		return
	}
	sum := sha256.Sum256(from.Raw())
	id := format.BatchID(sum[:])
	if !f.tally.SkipLine(id) {
		return
	}
	message, _ := f.secrets.HideIn(why.Error())
	if err := f.store.Dead.Append(l.SkippedLine(id, from.Raw(), message)); err != nil {
		f.course.fail(err)
	}
}

// takesTurns reports whether several readers can read the input at once, each from its beginning.
func takesTurns(in io.Reader) bool {
	_, ok := in.(io.ReaderAt)
	s, seeks := in.(io.Seeker)
	if !ok || !seeks {
		return false
	}
	_, err := s.Seek(0, io.SeekCurrent) // a pipe has the methods of a file, but fails here
	return err == nil
}

// starts keeps when the durations of the input's lines begin. If an input cannot be read twice, the duration of a
// line begins when the line is read. The journal keeps that time.
type starts struct {
	journal.Starts
	c      *Config
	tally  *tally.Tally
	store  *output.Store
	course *course
}

// lasts returns the duration within which a request must be sent; 0: there is none.
func (c *Config) lasts(q *format.Request) time.Duration {
	if !q.At.IsZero() {
		return 0
	}
	return cmp.Or(q.TTL, c.TTL)
}

// due returns how long a request may still wait (0: for ever; negative: it has expired). renewal is
// how long each of its retries may wait (negative: no longer).
func (s *starts) due(q *format.Request) (ttl, renewal time.Duration) {
	d := s.c.lasts(q)
	switch {
	case !q.At.IsZero():
		return expiring(q.At), -1
	case d == 0:
		return 0, 0
	}
	ttl = expiring(s.start(q).Add(d))
	// If another run sends a request again, that is a retry, too.
	if s.c.Renew && (ttl < 0 || s.tally.IsAgain(q.ID)) {
		ttl = d
	}
	return ttl, d
}

// expiring returns the time until an instant: never 0.
func expiring(at time.Time) time.Duration {
	return cmp.Or(time.Until(at), -1)
}

// start is when the duration of a request begins.
func (s *starts) start(q *format.Request) time.Time {
	if !q.Created.IsZero() {
		return q.Created
	}
	if at, ok := s.store.History.Reads[q.ID]; ok {
		return time.Unix(0, at)
	}
	if at, ok := s.At(q.Line); ok {
		return at
	}
	if s.store.Journal != nil {
		if err := s.store.Journal.Read(q.ID, q.ReadAt); err != nil {
			s.course.fail(err)
		}
	}
	return q.ReadAt
}
