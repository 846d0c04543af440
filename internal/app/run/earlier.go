package run

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/paceline-go/paceline/internal/app/journal"
	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/output"
	"github.com/paceline-go/paceline/internal/app/run/tally"
	"github.com/paceline-go/paceline/internal/app/run/telling"
	"github.com/paceline-go/paceline/internal/secret"
	"github.com/paceline-go/paceline/internal/text"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// noStart says that nothing is sent, since a file cannot be written or read, or is the wrong one.
// It is an ErrOutput and an ErrUnsent.
type noStart struct{ err error }

func (e noStart) Error() string   { return fmt.Sprintf("%v; %v", e.err, ErrUnsent) }
func (e noStart) Unwrap() []error { return []error{ErrOutput, e.err, ErrUnsent} }

// Peek reads which requests ended in earlier runs, without changing anything. It is for a Plan
// before Open.
func (r *Run) Peek() error {
	err := r.store.Peek(func(e format.Entry) {
		r.takeIn(e)
		r.planning.learn(e)
	})
	if err != nil {
		return noStart{err}
	}
	return nil
}

// earlier is what was sent before this run: by earlier runs with its files, and by other programs of the user.
type earlier struct {
	c      *Config
	store  *output.Store
	tally  *tally.Tally
	intake *intake
	teller *telling.Teller

	epoch  time.Time
	keep   time.Duration // how far back the journal goes
	noted  journal.Note
	others bool // what others sent a moment ago still counts
}

// open opens the files and reads the output of earlier runs.
func (r *Run) open() (err error) {
	of := &r.earlier
	if err := of.goesPast(); err != nil {
		return err
	}
	s := r.store
	if err := s.Open(r.takeIn, r.Say); err != nil {
		return err
	}
	s.History = &journal.History{}
	of.keep = r.c.remembers()
	if !s.Out.Regular() {
		of.note("")
		if of.noted.Journal != "" {
			s.Journal, _, err = journal.Open(of.journal(), r.epoch)
			of.join()
		}
		return err
	}
	s.Lost.Tails(s.Out, s.Dead)
	c := of.besideOut()
	if s.Journal, s.History, err = journal.Open(c, r.epoch); err == nil {
		of.note(c.Path)
		of.join()
		s.Book = journal.NewFindings(s.Journal, s.History, r.epoch, r.course.fail)
		s.Lost.Look(s.History)
	}
	if err == nil && s.History.Gone != "" && s.History.Last > 0 {
		r.Say("%s %s, though there are results: every window is taken to be full%s, and what was sent unanswered is sent "+
			"again unnamed",
			s.Journal.Path(), s.History.Gone, map[bool]string{true: " when they were written"}[r.c.TrustClock])
	}
	return err
}

// remembers is how far back sends matter.
func (c *Config) remembers() (d time.Duration) {
	for _, l := range c.Limits {
		d = max(d, l.Remembers())
	}
	if c.Auto != nil {
		d = max(d, time.Minute)
	}
	return d + d/1000 + journal.Late + time.Second
}

// besideOut describes the journal beside a file of results.
func (r *earlier) besideOut() journal.Config {
	c, s := r.journal(), r.store
	c.Path, c.SyncSends, c.Full = output.JournalOf(r.c.Out), r.c.SyncAlways, r.full()
	c.Forget = func(id string) bool {
		s.Lost.Knows(id)
		return r.tally.HasResult(id)
	}
	c.Before = func() error { return errors.Join(s.Out.Sync(1), s.Dead.Sync(1)) }
	return c
}

// full returns the most that may have been sent, if only the results exist. Without results that is
// nothing, and otherwise all that the limits allow. It counts as sent just now. If the clock is
// trusted, it counts as sent when the results were written.
func (r *earlier) full() []journal.Sent {
	last := r.store.LastWrite()
	if last.IsZero() {
		return nil
	}
	if last = last.Add(r.c.Timeout); !r.c.TrustClock || last.After(r.epoch) {
		last = r.epoch
	}
	s := journal.Sent{Counts: last.Add(journal.Late).UnixNano(), Result: limit.Unknown}
	for _, l := range r.c.Limits {
		s.Cost[l.Unit] = max(s.Cost[l.Unit], l.Most())
	}
	var all []journal.Sent
	for _, k := range r.c.Keys {
		s.Key = k.Name
		all = append(all, s)
	}
	return all
}

// takeIn takes in a result of an earlier run.
func (r *Run) takeIn(e format.Entry) {
	if r.polls != nil {
		r.polls.note(e)
		return
	}
	if r.c.Next != nil {
		r.chains.note(e)
	}
	r.tally.Note(e)
}

// tellDone reports that earlier runs have done a part of the input. A line with further pages to come is not done.
func (r *earlier) tellDone() {
	n, open := &r.tally.Totals, r.intake.chains.toGoOn()
	if done := n.SkippedDone - open; r.tally.Checked && done > 0 && n.NotEnded()+open > 0 {
		goes := "; going on"
		if open > 0 { // the next page of each may be a dead letter
			goes = ""
		}
		r.teller.Say("%s of %s done already (%s)%s", text.Thousands(int64(done)),
			text.Count(n.Input, "request is", "requests are"), strings.TrimSuffix(r.c.Out, output.RowsOf("")), goes)
	}
}

// tellLost reports that the journal has lost its end.
func (r *earlier) tellLost() {
	if !r.store.Lost.Found {
		return
	}
	what := "are named possible_repeat"
	if r.c.HoldUnanswered {
		what = "become dead letters (--unanswered hold)"
	}
	r.teller.Say("%s has lost its end, as after a power cut, and does not know all that was sent: up to %d requests behind "+
		"those that it knows %s", r.store.Journal.Path(), output.MostLost, what)
}

// journal describes a journal of what is sent, without a file of results.
func (r *earlier) journal() journal.Config {
	return journal.Config{Path: r.noted.Journal, Keep: r.keep, Timeout: r.c.Timeout, TrustClock: r.c.TrustClock,
		Clock: r.c.clock, Forget: func(string) bool { return true }}
}

// MayOpen returns the error with which Open would refuse, as far as that needs no file. It is for a Plan.
func (r *Run) MayOpen() error {
	if err := r.earlier.goesPast(); err != nil {
		return noStart{err}
	}
	return nil
}

// goesPast finds that paceline exec does not lead this run, whose server is on this machine.
func (r *earlier) goesPast() error {
	c, at := r.c, slices.Clone(r.intake.homes)
	if first := r.intake.first; first != nil && len(at) == 0 {
		at = append(at, *first)
	}
	i := slices.IndexFunc(at, secret.Place.IsLoopback)
	if !c.Led || c.Captured || i < 0 {
		return nil
	}
	why := fmt.Sprintf("%s is on this machine, so requests go past paceline exec", at[i])
	if len(c.Limits)+len(c.Resources) == 0 && c.Auto == nil && c.Share == nil {
		return fmt.Errorf("%s, and nothing limits them; expected paceline exec --capture, "+
			"which leads them, or paceline proxy and its address, or a --limit that counts for this run alone", why)
	}
	c.Led = false
	r.teller.Say("%s: they count by the limits of this run alone", why)
	return nil
}

// note tells later runs of this user which keys this run sends with. It sets noted, if that is of use.
func (r *earlier) note(journalPath string) {
	c := r.c
	if c.Recent == "" || c.Share != nil || c.Strangers != nil || len(c.Limits)+len(c.Resources) == 0 && c.Auto == nil {
		return // nothing that others sent counts here, or a store counts it
	}
	s := journal.Note{PID: os.Getpid(), Door: "run", Led: c.Led, Keys: map[string]string{}, Keep: r.keep,
		Follows: journalPath != "" && r.store.History.Gone == ""}
	for _, at := range r.intake.homes {
		s.Servers = append(s.Servers, at.String())
	}
	if first := r.intake.first; first != nil && len(s.Servers) == 0 {
		s.Servers = []string{first.String()}
	}
	if len(s.Servers) > 0 {
		if to, err := url.Parse(s.Servers[0]); err == nil {
			if via := c.proxies.For(to); via != nil {
				s.Through = via.Host
			}
		}
	}
	for _, k := range c.Keys {
		switch {
		case !c.keyless:
			s.Keys[journal.DigestOf(k.Secret)] = k.Name
		case r.intake.credential != "":
			s.Keys[journal.DigestOf(r.intake.credential)] = k.Name
			fallthrough // of another run, which knows the key of no request
		case len(s.Servers) > 0:
			s.Keys[journal.DigestOf(s.Servers[0])] = k.Name
		}
	}
	if len(s.Keys) == 0 {
		return
	}
	var err error
	if s.Journal = journalPath; journalPath != "" {
		s.Journal, err = filepath.Abs(journalPath)
	}
	if err = cmp.Or(err, s.Begin(c.Recent, time.Now())); err != nil {
		r.teller.Say("what this run sends is not noted for later runs, which may be refused: %v", err)
		return
	}
	r.noted = s
}

// credentialOf is the credential of a request with the fixed fields of the run.
func (c *Config) credentialOf(q *format.Request) string {
	header, u := http.Header{}, *q.URL
	maps.Copy(header, q.Header)
	for _, t := range c.Header {
		if text, fixed := t.Fixed(); fixed {
			header.Set(t.Name(), text)
		}
	}
	for _, t := range c.Query {
		if text, fixed := t.Fixed(); fixed {
			u.RawQuery += "&" + url.Values{t.Name(): {text}}.Encode()
		}
	}
	return secret.Credential(header, &u)
}

// join takes in what other programs of this user sent a moment ago.
func (r *earlier) join() {
	if r.noted.Journal == "" {
		return
	}
	ended, living := r.noted.Others(time.Now())
	var all []*journal.History
	var beside []*journal.Note
	for i, o := range slices.Concat(ended, living) {
		h, err := o.Recall(&r.noted, r.journal(), r.epoch)
		if err != nil {
			r.teller.Say("what process %d sent before does not count: %v", o.PID, err)
			continue
		}
		all = append(all, h)
		r.others = r.others || len(h.Sends) > 0
		if i >= len(ended) && !o.Idle && h.SentLately(r.epoch) {
			beside = append(beside, o)
		}
	}
	r.store.History.Join(all...)
	for _, o := range beside {
		r.teller.Say("%s", r.noted.Beside(o))
	}
}

// tellOthers reports that the first request waits for what other runs sent.
func (r *earlier) tellOthers(groups pools) {
	if !r.others {
		return
	}
	at := limit.Never
	for _, g := range groups {
		for _, of := range g.allowances {
			at = min(at, of.fitted.Ready(0, limit.One))
		}
	}
	if at > mono.Time(time.Second) && at < limit.AfterSettle {
		r.teller.Say("what other programs sent with the same keys still counts: the first request goes at %s (--recent=false: it goes now)",
			r.epoch.Add(time.Duration(at)).Local().Format(time.DateTime))
	}
}

// endNote notes that this run has ended.
func (r *earlier) endNote() {
	if err := r.noted.End(r.journal(), time.Now()); err != nil {
		r.teller.Say("what this run sent is not noted for later runs, which may be refused: %v", err)
	}
}
