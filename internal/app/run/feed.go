package run

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/dead"
	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/input"
	"github.com/paceline-go/paceline/internal/app/run/sending"
	"github.com/paceline-go/paceline/internal/app/run/tally"
	"github.com/paceline-go/paceline/internal/secret"
	"github.com/paceline-go/paceline/internal/text/humanize"
	"github.com/paceline-go/paceline/internal/text/sanitize"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/pool"
)

// maxListed is how many bad lines are listed.
const maxListed = 10

// slowReading is how long a check of the input may take before it says how far it is, and how long
// it is then silent.
const slowReading = 5 * time.Second

// reading says how far the check of a long input is.
type reading struct {
	r    *Run
	said time.Time // when it last said so, or began
	next int       // the line at which the clock is asked again
}

// at takes in how much was read.
func (g *reading) at(lines int, bytes int64) {
	const each = 1000
	if lines < g.next {
		return
	}
	g.next = lines + each
	if time.Since(g.said) < slowReading {
		return
	}
	g.said = time.Now()
	of := ""
	if info := g.r.c.InputInfo; info != nil && info.Mode().IsRegular() && info.Size() >= bytes {
		of = fmt.Sprintf(", %d %% of the file", 100*bytes/max(info.Size(), 1))
	}
	g.r.Say("reading the input, before anything is sent: %s lines, %.1f MB%s", humanize.Thousands(int64(lines)),
		float64(bytes)/1e6, of)
}

// Check reads the whole input once, without sending, and counts the requests. It passes the first
// ten wrong lines to Notice. If a line is wrong it fails with ErrInput, unless invalid lines are
// skipped.
func (r *Run) Check(name string, in io.Reader) error {
	if !r.store.IsPeeked() {
		if err := r.Peek(); err != nil {
			return err
		}
	}
	reader := format.NewReader(r.c.Format, name, in, r.c.Input)
	reader.Pass, reader.Ended = format.Checking, r.tally.HasEnded
	r.planning.again = takesTurns(in)
	began := time.Now()
	t := r.tally
	before, told := int64(0), reading{r: r, said: began}
	for {
		q, err := r.read(reader)
		lines, read := reader.Read()
		told.at(lines, read)
		size := read - before
		before = read
		if err == io.EOF {
			break
		}
		if _, invalid := errors.AsType[*format.InputError](err); invalid {
			if t.Totals.Invalid++; t.Totals.Invalid <= maxListed {
				r.c.Notice(err.Error())
			}
			continue
		}
		if broken, ok := errors.AsType[*input.Unreadable](err); ok {
			return fmt.Errorf("%w: %w; %w", ErrInput, broken, ErrUnsent)
		}
		if err != nil {
			return err
		}
		t.Totals.Input++
		tally.Add(&t.Uses[0].Remaining, q.Cost, 1)
		r.starts.add(q, r.c.lasts(q) > 0 && q.Created.IsZero())
		r.planning.add(r, q, size)
	}
	if more := t.Totals.Invalid - maxListed; more > 0 {
		r.c.Notice(fmt.Sprintf("and %d more", more))
	}
	t.Checked = true
	r.organizations = newOrganizations(&r.c, r.homes) // the first line names the host, and so the provider
	p := &r.planning.plan
	p.Lines, p.Bytes = reader.Read()
	p.ReadingSeconds = time.Since(began).Seconds()
	if r.c.Budget > 0 {
		if models := r.Plan(began).Unpriced; len(models) > 0 {
			return unpriced(models)
		}
	}
	if n := t.Totals.Invalid; n > 0 && !r.c.SkipInvalid {
		return fmt.Errorf("%w: %s: %d of %d lines; %w (--skip-invalid sends the others)", ErrInput, name, n,
			n+t.Totals.Input, ErrUnsent)
	}
	return r.tellModels()
}

// read returns the next request. It fails if an earlier line has the same id. It also fails if the
// request has changed since an earlier run ended it, or since the input was checked.
func (r *Run) read(from *format.Reader) (*format.Request, error) {
	q, err := from.Next()
	if err == nil {
		err = r.atHome(from, q)
	}
	if err != nil {
		return nil, err
	}
	q.ReadAt, q.Hash = time.Now(), format.HashOf(q.ID)
	var clash func(func(format.Hash) int) string
	if r.c.Next != nil {
		clash = func(line func(format.Hash) int) string { return r.chains.clashes(line, q) }
	}
	is := r.tally.Seen(q, from.Pass == format.Checked, clash)
	if is.IsRight(q.Place()) {
		return q, nil
	}
	reason := ""
	switch {
	case is.Clash != "": // before again: in a stream, chance decides whether the page or the line comes first
		reason = is.Clash
	case is.Line != 0 && is.Line != q.Place():
		reason = fmt.Sprintf("id %q is already on line %d, expected each id once", q.ID, is.Line)
		if q.Number != 0 {
			reason = fmt.Sprintf("id %q is already that of element %d, expected each id once", q.ID, is.Line)
		}
	case is.Other && is.Ended:
		reason = fmt.Sprintf("id %q is another request than %s, expected the same, or an id of its own", q.ID, r.store.Where(q.ID))
	default:
		reason = fmt.Sprintf("id %q is not what this line had when it was checked", q.ID)
	}
	return nil, &format.InputError{File: from.Name(), Line: q.Line, Column: q.Column, Reason: reason}
}

// atHome returns an error if the keys may not go to the host of a request. They may go to
// Config.KeyHosts, or else to the host of the first request. Check and the feeder call it, never at
// the same time.
func (r *Run) atHome(from *format.Reader, q *format.Request) error {
	if q.URL == nil || !r.c.hasSecrets() {
		return nil // the request has ended in an earlier run, or there are no keys
	}
	if len(r.homes) == 0 {
		r.homes = secret.Places{secret.PlaceOf(q.URL)}
	}
	if r.homes.Have(q.URL) {
		return nil
	}
	return &format.InputError{File: from.Name(), Line: q.Line, Column: q.URLAt, Reason: notHome(q.URL, r.homes)}
}

func notHome(u *url.URL, homes secret.Places) string {
	return fmt.Sprintf("a key is not sent to %v, only to %v: --key-host names more", secret.PlaceOf(u), homes)
}

// feed reads the input and hands its requests to the Pools. If of is not nil, it hands over only
// the requests of that group.
func (r *Run) feed(ctx context.Context, name string, in io.Reader, of *group) {
	reader := format.NewReader(r.c.Format, name, in, r.c.Input)
	t := r.tally
	if t.Checked {
		reader.Pass, reader.Ended = format.Checked, r.tally.HasEnded
	}
	isFirst := of == nil || of.index == 0 // only the first of several feeders reports what is wrong
	if of != nil {
		reader.Passes = func(model string) bool { return r.of(model) != of }
	}
	for r.course.isReading(of == nil) { // with several feeders the input is a file, not a terminal
		q, err := r.read(reader)
		if !r.course.isReading(false) {
			return
		}
		_, invalid := errors.AsType[*format.InputError](err)
		skip := invalid && r.c.SkipInvalid
		if (err == io.EOF || invalid && !skip) && isCut(in) { // perhaps within a line
			r.course.first(&r.course.input, fmt.Errorf("%w: %s has become shorter since it was checked", ErrInput, name))
			err = io.EOF
		}
		if err == io.EOF {
			r.course.set(func() { r.course.whole = true })
			return
		}
		switch {
		case err == nil && q.Passed, skip && !isFirst:
		case err != nil && !isFirst:
			return
		case skip && t.Checked: // Check has reported this line
			r.skipped(reader, err)
		case err != nil:
			t.Count(&t.Totals.Invalid, 1)
			if !skip {
				r.course.first(&r.course.input,
					fmt.Errorf("%w: %w; reading stops here, what was read before is finished", ErrInput, err))
				return
			}
			r.c.Notice(err.Error())
			r.skipped(reader, err)
		case !r.offer(ctx, q):
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
func (r *Run) appended(name string, in io.Reader, unread int64) {
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
		r.tally.Count(&r.tally.Totals.Appended, n)
		r.Say("%s appended to %s after it was checked, and left for another run",
			sanitize.Count(n, "line was", "lines were"), name)
	}
}

// offer hands a request to the Pool, or skips it if it ended in an earlier run. It returns false if
// the run is over.
func (r *Run) offer(ctx context.Context, q *format.Request) bool {
	anew := r.tally.Read(q)
	r.store.Read(q.Hash, anew)
	var stray error
	if !anew {
		r.store.Lost.Passed()
		if q, stray = r.resumed(q); q == nil || !r.tally.Turned(q) {
			return true
		}
	} else if r.c.Next != nil {
		q.Begin()
	}
	r.secrets.Conceal(q)
	g := r.of(q.Estimate.Model)
	j := &job{r: q, group: g, hop: sending.FirstHop(q), size: int64(len(q.Raw)+len(q.Body)) + 512}
	j.repeat = r.store.Lost.MayHave(q.ID, r.store.History)
	if r.noBudget(q) {
		return false
	}
	if !r.course.take(j.size) {
		return false
	}
	r.tally.Count(&r.tally.Totals.Offered, 1)
	r.hosts.note(j.hop.Host, named)
	if e, ok := errors.AsType[sending.Straying](stray); ok {
		j.class, j.reason = e.Class, e.Reason
		r.deadUnsent(j)
		return true
	}
	if r.c.HoldUnanswered && j.repeat {
		j.repeat = false
		j.class, j.reason = dead.Held, "sent by a run before, and never answered: held back (--unanswered hold)"
		r.deadUnsent(j)
		return true
	}
	if j.first, j.reason = r.trials.enter(q.Estimate.Model); j.reason != "" {
		j.class, j.reason = dead.NoModel,
			"not sent: "+strings.TrimSuffix(j.reason, ".")+", to another request of model "+q.Estimate.Model
		r.deadUnsent(j)
		return true
	}
	ttl, renewal := r.due(q)
	j.waited[0] = g.waits.Until(time.Now())
	err := g.pool.Submit(ctx,
		pool.Request{ID: q.ID, Cost: q.Cost, Free: q.Cost == limit.Cost{}, Priority: q.Priority, TTL: ttl, Renewal: renewal,
			Value: j})
	if err == nil {
		return true
	}
	r.tally.Count(&r.tally.Totals.Offered, -1)
	if !errors.Is(err, pool.ErrClosed) && ctx.Err() == nil {
		r.course.fail(err)
	}
	return false
}

// deadUnsent makes a request a dead letter without sending it.
func (r *Run) deadUnsent(j *job) {
	r.writer.ended([]pool.Ended{{State: pool.Dead, Request: pool.Request{ID: j.r.ID, Value: j},
		Submitted: r.groups[0].pool.Now(), Reason: j.reason}})
}

// skipped writes a line that is no request to the errors, if the format has a place for it. That is
// done once for all runs.
func (r *Run) skipped(from *format.Reader, why error) {
	l, ok := r.c.Format.(*format.LLM)
	if !ok {
		return
	}
	sum := sha256.Sum256(from.Raw())
	id := format.BatchID(sum[:])
	if !r.tally.SkipLine(id) {
		return
	}
	message, _ := r.secrets.HideIn(why.Error())
	if err := r.store.Dead.Append(l.SkippedLine(id, from.Raw(), message)); err != nil {
		r.course.fail(err)
	}
}
