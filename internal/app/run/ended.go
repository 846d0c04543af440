package run

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/paceline-go/paceline/internal/app/journal"
	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/meter"
	"github.com/paceline-go/paceline/internal/app/run/output"
	"github.com/paceline-go/paceline/internal/app/run/sending"
	"github.com/paceline-go/paceline/internal/app/run/tally"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/pool"
)

// writer writes the results of requests that have ended, and what the journal has of each attempt. An
// answer has room until it is written. Safe for concurrent use.
type writer struct {
	c       *Config
	secrets *format.Secrets
	sender  *sending.Sender // its Memory has the bodies
	store   *output.Store
	tally   *tally.Tally
	course  *course
	trials  *trials
	polls   *polls
	ceiling *ceilings
	room    atomic.Pointer[chan struct{}] // has one for each answer that is on its way to the results
	used    sync.Pool                     // of *endings
}

// endings are requests that have ended, whose results are written together.
type endings struct {
	*writer
	to    *output.Results
	lines []byte
	of    []ended
	lost  bool // something could not be written

	// These are kept only so that their memory is used again.
	line    format.Result
	keep    format.Kept
	answers []journal.Answered
	ids     []string
	tallied []tally.End
}

// ended is a request that has ended.
type ended struct {
	*pool.Ended
	job      *job
	from, to int // its line is lines[from:to]
	unsaved  bool
	written  bool
}

// endings returns endings without requests.
func (w *writer) endings() *endings {
	e, ok := w.used.Get().(*endings)
	if !ok {
		e = &endings{writer: w, keep: format.Kept{More: w.c.KeepHeaders}}
	}
	e.lost = false
	return e
}

// endedNow writes the result of one request, and reports whether that succeeded.
func (w *writer) endedNow(one pool.Ended) bool {
	e := w.endings()
	defer w.used.Put(e)
	e.add(&one)
	e.write()
	return !e.lost
}

// ended writes the results of requests, and then their answers in the journal. Each Pool calls it,
// one call at a time. The feeder and goroutines that send call it, too.
func (w *writer) ended(all []pool.Ended) {
	e := w.endings()
	for i := range all {
		if j := all[i].Request.Value.(*job); j.told {
			w.course.free(j.size, 1)
			if w.c.Backlog != nil {
				w.c.Backlog.Return(j.r.ID)
			}
			continue
		} else if j.spared {
			all[i].Attempts--
		}
		e.add(&all[i])
	}
	e.write()
	if cap(e.lines) <= output.KeptLine {
		w.used.Put(e)
	}
}

// roomFor makes room for the answers of so many attempts in flight. Answers that have room keep theirs.
func (w *writer) roomFor(inFlight int) {
	if was := w.room.Load(); was == nil || cap(*was) < 2*inFlight {
		room := make(chan struct{}, 2*inFlight)
		w.room.Store(&room)
	}
}

// enter waits for room for a job's answer, so that a run sends no more than it can keep while results
// are read slowly. It returns false if ctx ends first.
func (w *writer) enter(ctx context.Context, j *job) bool {
	room := *w.room.Load()
	select {
	case room <- struct{}{}:
		j.room = room
	case <-ctx.Done():
	}
	return j.room != nil
}

// release gives back the room of a job's answer.
func (w *writer) release(j *job) {
	w.sender.Memory.Free(&j.res.Share)
	if j.room != nil {
		<-j.room
		j.room = nil
	}
}

// sends records in the journal that an attempt is about to go. It returns false if that fails: then the
// run ends.
func (w *writer) sends(j *job, s journal.Send) bool {
	if w.store.Journal == nil {
		return true
	}
	var err error
	if j.n, err = w.store.Journal.Send(s, time.Now()); err != nil {
		w.course.fail(err)
		return false
	}
	w.store.Wake()
	return true
}

// answered records in the journal how a job's latest send ended.
func (w *writer) answered(j *job) {
	if j.n == 0 {
		return
	}
	if err := w.store.Journal.Answers([]journal.Answered{j.answer()}); err != nil {
		w.course.fail(err)
	}
}

// answer describes how a job's latest send ended, for the journal.
func (j *job) answer() journal.Answered {
	a := journal.Answered{Send: j.n,
		Answer: journal.Answer{Result: j.result, Counts: j.res.Ended, Hold: j.hold, Actual: j.actual, Price: int64(j.cost)}}
	if j.result == limit.Unknown {
		a.Counts = a.Counts.Add(journal.Late)
	}
	if j.unsure {
		a.Doubt = j.r.ID
	}
	j.n = 0
	return a
}

// add takes in one request. It first writes the requests before it if they go to another file. It
// writes all of them if their lines are long.
func (w *endings) add(e *pool.Ended) {
	to := w.store.Out
	if e.State == pool.Dead {
		to = w.store.Dead
	}
	if to != w.to {
		w.write()
		w.to = to
	}
	one := ended{Ended: e, job: e.Request.Value.(*job), from: len(w.lines)}
	if one.job.res.Unsaved != nil && e.State == pool.Done {
		one.to, one.unsaved = one.from, true
		w.of = append(w.of, one)
		return
	}
	w.result(one.job, e)
	if w.c.Ended != nil {
		w.c.Ended(&w.line)
	}
	w.lines = w.store.Line(w.lines, &w.line, e.State == pool.Dead)
	one.to = len(w.lines)
	if w.of = append(w.of, one); one.to >= output.MostLines {
		w.write()
	}
}

func (w *endings) write() {
	if len(w.of) == 0 {
		return
	}
	results := w.results()
	err := errors.Join(results, w.journal())
	size, taken := int64(0), 0
	if w.store.Files != nil {
		err = errors.Join(err, w.files())
	}
	if w.store.IsOrdered() && w.to != w.store.Out {
		w.pass()
	}
	w.store.Wake()
	w.tally.Ended(w.ends(), !w.to.Regular() && !w.tally.Elsewhere)
	for i := range w.of {
		j := w.of[i].job
		if size += j.size; j.size > 0 { // otherwise it is a page of a line
			taken++
		}
		w.lost = w.lost || !w.of[i].written
		if w.polls != nil {
			w.polls.ended(j.r, w.of[i].State == pool.Done)
		}
		if j.first {
			w.trials.set(j.r.Estimate.Model, untried) // no effect if its answer has decided
		}
		w.release(j)
		j.res.Body, j.r.Body, j.r.Raw = nil, nil, nil // the Pool and its queue remember a request for a while
	}
	w.course.free(size, taken)
	if err != nil {
		w.course.fail(err)
	}
	clear(w.of)
	clear(w.answers)
	clear(w.ids)
	clear(w.tallied)
	w.of, w.lines, w.line = w.of[:0], w.lines[:0], format.Result{Headers: w.line.Headers}
}

// ends describes the requests for the tally.
func (w *endings) ends() []tally.End {
	w.tallied = w.tallied[:0]
	for i := range w.of {
		e, j := &w.of[i], w.of[i].job
		one := tally.End{State: e.State, Late: e.Late, Reason: e.Reason, Request: j.r, Failed: j.failed, Group: j.group.index,
			Key: j.keyIndex, Written: e.written, Partly: j.parts != nil, Repeat: j.repeat, KeyHost: j.keyHost,
			Length: j.cut}
		if e.State == pool.Dead {
			one.Class = deadOf(j, e.Ended)
			one.Bare = j.res.Status == http.StatusUnauthorized && w.c.Bearer == nil && w.c.prices.isBare(j.r)
		}
		w.tallied = append(w.tallied, one)
	}
	return w.tallied
}

// results writes the lines together. If that fails, perhaps because the disk is almost full, it
// writes them one by one. It does not do so with a stream, which may have a part of them already.
func (w *endings) results() error {
	if b := w.c.Backlog; b != nil {
		for i := range w.of {
			e := &w.of[i]
			end := BacklogEnd{State: e.State, Attempts: e.Attempts, Repeat: e.job.repeat,
				Unsure: e.job.unsure, Line: w.lines[e.from:e.to]}
			if e.State == pool.Dead {
				end.Class = deadOf(e.job, e.Ended)
			}
			b.Ended(e.job.r.ID, end)
			e.written = true
		}
		return nil
	}
	err := w.to.Append(w.lines)
	for i := range w.of {
		e := &w.of[i]
		e.written = !e.unsaved && (err == nil || len(w.of) > 1 && w.to.Regular() && w.to.Append(w.lines[e.from:e.to]) == nil)
	}
	return err
}

// pass makes the order skip dead letters, which are in a file of their own.
func (w *endings) pass() {
	for i := range w.of {
		if e := &w.of[i]; e.written {
			w.store.Passed(e.job.r.Hash)
		}
	}
}

// files hands over the bodies whose lines are written now. Their files get their names.
func (w *endings) files() (err error) {
	for i := range w.of {
		if e := &w.of[i]; e.written && e.job.res.Saved != nil {
			err = errors.Join(err, w.store.Named(*e.job.res.Saved))
		}
	}
	return err
}

// journal records the answers of the requests whose results are written. The next run sends a
// request without a result again.
func (w *endings) journal() error {
	to := w.store.Journal
	if to == nil {
		return nil
	}
	w.answers, w.ids = w.answers[:0], w.ids[:0]
	for i := range w.of {
		e := &w.of[i]
		if !e.written {
			continue
		}
		w.ids = append(w.ids, e.job.r.ID)
		if e.job.n != 0 {
			w.answers = append(w.answers, e.job.answer())
		}
	}
	err := to.Answers(w.answers)
	if err == nil {
		to.Ended(w.ids...)
	}
	return err
}

// result fills in the line about a request that has ended.
func (w *endings) result(j *job, e *pool.Ended) {
	line, at := &w.line, j.res.Ended
	if e.State != pool.Done {
		at = time.Now()
	}
	headers := line.Headers
	if w.c.Ended != nil {
		headers = nil // the user of the results may keep it
	}
	clear(headers)
	*line = format.Result{
		ID: j.r.ID, State: e.State.String(), Attempts: e.Attempts, At: format.Stamp(at), PossibleRepeat: j.repeat, Late: e.Late,
		Key: j.key, Digest: j.r.Digest,
		Status: j.res.Status, Partly: j.parts, Page: j.r.Page, Next: j.next, Round: j.r.Round, Refused: j.refusals.N,
		RefusedAt: j.refusals.Texts(), Ceiling: w.ceiling.now(), Headers: headers,
	}
	if j.usage != nil {
		line.InputTokens, line.OutputTokens = int(j.usage.Input), int(j.usage.Output)
	}
	if j.cut && e.State == pool.Done {
		line.Finish = meter.Length
	}
	if !j.res.Ended.IsZero() {
		line.WaitedMS = format.Milliseconds(j.at.Sub(j.submitted(e.Submitted)) + j.res.InLine)
		line.WaitedFor = j.group.waits.Between(j.waited[0], j.waited[1])
		line.LatencyMS = format.Milliseconds(j.res.Ended.Sub(j.res.Began))
		line.Row, line.SelectFailed = j.row, j.misfit != ""
		if j.row == nil {
			line.SetHeaders(j.res.Header, &w.keep, w.secrets.Of(j.r))
		}
		switch {
		case j.row != nil:
		case j.res.Saved != nil:
			j.res.Saved.Tell(line)
		case j.res.Status != 0:
			line.SetBody(j.res.Body, j.res.Cut, j.res.CutAt(), w.secrets.Of(j.r))
		}
		if j.hop.Count > 0 {
			var n int
			line.Location, n = w.secrets.Of(j.r).HideIn(j.hop.URL.String())
			line.Hidden += n
		}
	}
	switch e.State {
	case pool.Expired:
		switch {
		case e.Lapsed:
			line.Error = "not sent, since the answer would be too late: " + e.Reason
		case e.Attempts > 0:
			line.Error = "the deadline passed: " + e.Reason
		default:
			line.Error = "the deadline passed before it could be sent"
		}
	case pool.Dead:
		line.Error, line.Class, line.Request = e.Reason, deadOf(j, e).String(), w.secrets.LineOf(j.r)
		if columns := j.r.Columns(w.secrets.Of(j.r)); columns != nil {
			line.Columns = bytes.TrimSuffix(format.LineOf(columns), []byte("\n"))
		}
	}
}
