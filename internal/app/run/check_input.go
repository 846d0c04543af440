package run

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/input"
	"github.com/paceline-go/paceline/internal/app/run/output"
	"github.com/paceline-go/paceline/internal/app/run/tally"
	"github.com/paceline-go/paceline/internal/secret"
	"github.com/paceline-go/paceline/internal/text"
	"github.com/paceline-go/paceline/limit"
)

// maxListed is how many bad lines are listed.
const maxListed = 10

// slowReading is how long a check of the input may take before it says how far it is, and how long
// it is then silent.
const slowReading = 5 * time.Second

// reading says how far the check of a long input is.
type reading struct {
	c    *Config
	say  func(string, ...any)
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
	if info := g.c.InputInfo; info != nil && info.Mode().IsRegular() && info.Size() >= bytes {
		of = fmt.Sprintf(", %d %% of the file", 100*bytes/max(info.Size(), 1))
	}
	g.say("reading the input, before anything is sent: %s lines, %.1f MB%s", text.Thousands(int64(lines)),
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
	t := r.tally
	reader.Pass, reader.Ended, reader.Meter = format.Checking, t.HasEnded, r.c.Meter
	r.planning.again = takesTurns(in)
	began := time.Now()
	before, told, wrong := int64(0), reading{c: &r.c, say: r.Say, said: began}, wrongLines{c: &r.c}
	shown := r.c.shownColumns()
	for {
		q, err := r.intake.read(reader)
		lines, read := reader.Read()
		told.at(lines, read)
		size := read - before
		before = read
		if err == io.EOF {
			break
		}
		if _, invalid := errors.AsType[*format.InputError](err); invalid {
			t.Totals.Invalid++
			wrong.add(err)
			continue
		}
		if broken, ok := errors.AsType[*input.Unreadable](err); ok {
			return fmt.Errorf("%w: %w; %w", ErrInput, broken, ErrUnsent)
		}
		if err != nil {
			return err
		}
		t.Totals.Input++
		shown.see(q)
		tally.Add(&t.Uses[0].Remaining, q.Cost, 1)
		r.starts.Add(q.ID, q.Line, (r.c.Decay > 0 || r.c.lasts(q) > 0) && q.Created.IsZero())
		r.planning.add(q, size)
	}
	wrong.end(name)
	if err := shown.err(name); err != nil {
		return err
	}
	t.Checked = true
	r.organizations = newOrganizations(r, r.intake.homes) // the first line names the host, and so the provider
	r.planning.apart = r.c.prices.usual(r.intake.homes) != ""
	t.Resources = map[string]limit.Cost{}
	for name, cost := range r.planning.resources {
		t.Resources[name] = *cost
	}
	p := &r.planning.plan
	p.Lines, p.Bytes = reader.Read()
	p.ReadingSeconds = time.Since(began).Seconds()
	if r.c.Budget > 0 {
		if models := r.Plan(began).Unpriced; len(models) > 0 {
			return unpriced(models)
		}
	}
	if n := t.Totals.Invalid; n > 0 && !r.c.SkipInvalid {
		way := ""
		if t.Totals.Input > 0 {
			way = " (--skip-invalid sends the others)"
		}
		return fmt.Errorf("%w: %s: %d of %d lines; %w%s", ErrInput, name, n, n+t.Totals.Input, ErrUnsent, way)
	}
	if err := r.isOfInput(name); err != nil {
		return err
	}
	return r.planning.tellModels(r.Teller)
}

// shownColumns are the columns of rows that --select reads. A row of JSON may lack one; if all do, it is misspelt.
type shownColumns struct {
	missing []string        // the columns that no row has had
	first   *format.Request // the first of the input
}

func (c *Config) shownColumns() (s shownColumns) {
	if c.Shape != nil && c.Input.First == 0 { // of the first rows all may lack one
		s.missing = c.Shape.RowColumns()
	}
	return s
}

// see takes in the row of a request.
func (s *shownColumns) see(q *format.Request) {
	s.missing = slices.DeleteFunc(s.missing, q.Shows)
	if s.first == nil {
		s.first = q
	}
}

func (s *shownColumns) err(input string) error {
	if s.first == nil || len(s.missing) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s: %w; %w", ErrInput, input, s.first.Hidden(s.missing[0]), ErrUnsent)
}

// changed is the error about a request whose id has ended with other content. dead says that it is a dead letter.
type changed struct {
	*format.InputError
	id   string
	dead bool
}

func (e *changed) Unwrap() error { return e.InputError }

// wrongLines lists the wrong lines of the input. Those from the first changed one on wait for its end: a changed flag
// changes all lines, and one message is then enough.
type wrongLines struct {
	c       *Config
	first   []error // of both kinds, in the order of the input
	changed int     // the requests that have changed since their results
	others  int
	dead    bool // one that has changed is a dead letter
}

func (w *wrongLines) add(err error) {
	other, is := errors.AsType[*changed](err)
	n := &w.others
	if is {
		n, w.dead = &w.changed, w.dead || other.dead
	}
	switch *n++; {
	case *n > maxListed:
	case !is && len(w.first) == 0:
		w.c.Notice(err.Error())
	default:
		w.first = append(w.first, err)
	}
}

func (w *wrongLines) end(name string) {
	var first *changed
	for _, err := range w.first {
		if other, is := errors.AsType[*changed](err); is && w.changed > maxListed {
			first = cmp.Or(first, other)
			continue
		}
		w.c.Notice(err.Error())
	}
	if w.others > maxListed {
		w.c.Notice(fmt.Sprintf("and %d more", w.others-maxListed))
	}
	if first == nil {
		return
	}
	again := ""
	if w.dead {
		again = "; --retry-dead sends the dead letters among them as they are now"
	}
	w.c.Notice(fmt.Sprintf("%s: %d lines are other requests than their ids have in %s: %s. The first is %q on line "+
		"%d. For other requests, such as to another model, expected another --out%s", name, w.changed,
		w.c.files.Named(), hasChanged, first.id, first.Line, again))
}

// hasChanged says what a digest tells of a changed request.
const hasChanged = "the method, the URL, a header or the body has changed"

// isOfInput compares the results of earlier runs with the input. Results that it lacks may be of the same requests by
// other ids. Those requests would be sent twice.
func (r *Run) isOfInput(name string) error {
	there, absent := r.tally.Listed()
	n := r.planning.plan.Requests
	if r.c.Append || r.c.Out == "-" || absent == 0 || n == 0 || r.c.Input.First > 0 && there > 0 {
		return nil
	}
	out := r.c.files.Named()
	if there == 0 && r.tally.Totals.Invalid == 0 {
		return fmt.Errorf("%w: none of the %s in %s is of %s, so all %s would be sent; %w "+
			"(if the ids have changed, by --id or since rows moved: expected the ids of the run before; "+
			"if it is another input: expected another --out, or --append)",
			ErrConfig, text.Count(absent, "request", "requests"), out, name,
			text.Count(n, "request", "requests"), ErrUnsent)
	}
	r.Say("%s of %s in %s %s: ids change with --id, and without it if a row moves or is edited. "+
		"If the input has them by other ids, they are sent again: --dry-run shows the ids, and --append says that all is well",
		text.Thousands(int64(absent)), text.Count(there+absent, "request", "requests"), out,
		map[bool]string{true: "is not in " + name, false: "are not in " + name}[absent == 1])
	return nil
}

// Each passes the requests of the input to each, and sends nothing: a backlog keeps them. Of an input that can be
// read twice, Check comes first. Otherwise a wrong line ends it, unless invalid lines are skipped.
func (r *Run) Each(name string, in io.Reader, each func(*format.Request) error) error {
	reader := format.NewReader(r.c.Format, name, in, r.c.Input)
	reader.Meter, reader.Roughly = r.c.Meter, true
	if r.tally.Checked {
		reader.Pass = format.Checked
	}
	for {
		q, err := r.intake.read(reader)
		_, invalid := errors.AsType[*format.InputError](err)
		switch {
		case err == io.EOF:
			return nil
		case invalid && r.c.SkipInvalid:
			if !r.tally.Checked {
				r.c.Notice(err.Error())
			}
			continue
		case err != nil:
			return fmt.Errorf("%w: %w", ErrInput, err)
		}
		if err := each(q); err != nil {
			return err
		}
	}
}

// Home returns the server of the first request that Check or Each has read; nil: none, or no key is used.
func (r *Run) Home() *secret.Place {
	if len(r.intake.homes) == 0 {
		return nil
	}
	return &r.intake.homes[0]
}

// Stored returns a request as a backlog keeps it.
func (r *Run) Stored(q *format.Request, c format.Storing) (json.RawMessage, error) {
	return r.secrets.Stored(q, c)
}

// intake takes in the requests of the input, and refuses those that cannot be sent with the others.
type intake struct {
	c      *Config
	tally  *tally.Tally
	store  *output.Store
	chains *chains
	prices *charging
	homes  secret.Places // the servers of the keys, known once the first line is read
	first  *secret.Place // the server of the first request, with keys or without; nil: not read yet
	// credential is that of the first request, without the keys of the run; empty: none that is known.
	credential string
}

// read returns the next request. It fails if an earlier line has the same id. It also fails if the
// request has changed since an earlier run ended it, or since the input was checked.
func (k *intake) read(from *format.Reader) (*format.Request, error) {
	q, err := from.Next()
	if err == nil && (k.c.secret || k.c.Base != nil) {
		err = k.atHome(from, q)
	}
	if err != nil {
		return nil, err
	}
	if k.first == nil && q.URL != nil {
		at := secret.PlaceOf(q.URL)
		k.first = &at
		k.credential = k.c.credentialOf(q)
	}
	if k.prices.some || q.URL != nil && k.prices.of(q.URL.Host) != nil {
		k.prices.charge(q)
		if reason := k.c.fits(q); reason != "" {
			return nil, &format.InputError{File: from.Name(), Line: q.Line, Column: q.Column, Reason: reason}
		}
	}
	q.ReadAt, q.Hash = time.Now(), format.HashOf(q.ID)
	if k.c.Backlog != nil { // it has each id once, and may hand out a request again
		q.ID, _, _ = k.c.Backlog.Latest()
		q.Hash = format.HashOf(q.ID)
		return q, nil
	}
	var clash func(func(format.Hash) int) string
	if k.c.Next != nil {
		clash = func(line func(format.Hash) int) string { return k.chains.clashes(line, q) }
	}
	is := k.tally.Seen(q, from.Pass == format.Checked, clash)
	if is.Right {
		if from.Pass == format.Checking {
			k.tally.Keep(is)
		}
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
		e := &changed{id: q.ID, dead: is.Dead}
		again := ""
		if e.dead {
			again = "; --retry-dead sends it as it is now"
		}
		reason = fmt.Sprintf("id %q is another request than %s: %s; expected the same request, another "+
			"--out, or an id of its own%s",
			q.ID, k.store.Where(q.ID), hasChanged, again)
		e.InputError = &format.InputError{File: from.Name(), Line: q.Line, Column: q.Column, Reason: reason}
		return nil, e
	default:
		reason = fmt.Sprintf("id %q is not what this line had when it was checked", q.ID)
	}
	return nil, &format.InputError{File: from.Name(), Line: q.Line, Column: q.Column, Reason: reason}
}

// atHome returns an error if the keys may not go to the host of a request. They may go to
// Config.KeyHosts, or else to the host of the first request. So it is with a Base, which sends all
// requests to its own servers. Check and the feeder call it, never at the same time.
func (k *intake) atHome(from *format.Reader, q *format.Request) error {
	if q.URL == nil {
		return nil // the request has ended in an earlier run
	}
	if len(k.homes) == 0 {
		k.homes = secret.Places{secret.PlaceOf(q.URL)}
	}
	if k.homes.Have(q.URL) {
		return nil
	}
	reason := notHome(q.URL, k.homes)
	if k.c.Base != nil {
		reason = fmt.Sprintf("%v is another server than %v of the first request, and all of them go to one upstream",
			secret.PlaceOf(q.URL), k.homes)
	}
	return &format.InputError{File: from.Name(), Line: q.Line, Column: q.URLAt, Reason: reason}
}

func notHome(u *url.URL, homes secret.Places) string {
	return fmt.Sprintf("a key is not sent to %v, only to %v: --key-host names more", secret.PlaceOf(u), homes)
}
