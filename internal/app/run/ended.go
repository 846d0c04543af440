package run

import (
	"errors"
	"time"

	"github.com/paceline-go/paceline/internal/app/journal"
	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/output"
	"github.com/paceline-go/paceline/internal/app/run/tally"
	"github.com/paceline-go/paceline/pool"
)

// endings are requests that have ended, whose results are written together.
type endings struct {
	r     *Run
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

// endedNow writes the result of one request, and reports whether that succeeded.
func (r *Run) endedNow(e pool.Ended) bool {
	w := r.endings.Get().(*endings)
	w.r, w.keep.More, w.lost = r, r.c.KeepHeaders, false
	w.add(&e)
	w.write()
	defer r.endings.Put(w)
	return !w.lost
}

// ended writes the results of requests, and then their answers in the journal. Each Pool calls it,
// one call at a time. The feeder and goroutines that send call it, too.
func (r *Run) ended(all []pool.Ended) {
	w := r.endings.Get().(*endings)
	w.r, w.keep.More = r, r.c.KeepHeaders
	for i := range all {
		if j := all[i].Request.Value.(*job); j.told {
			r.course.free(j.size)
			continue
		}
		w.add(&all[i])
	}
	w.write()
	if cap(w.lines) <= output.KeptLine {
		r.endings.Put(w)
	}
}

// add takes in one request. It first writes the requests before it if they go to another file. It
// writes all of them if their lines are long.
func (w *endings) add(e *pool.Ended) {
	to := w.r.store.Out
	if e.State == pool.Dead {
		to = w.r.store.Dead
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
	w.r.result(&w.line, &w.keep, one.job, e)
	if w.r.c.Ended != nil {
		w.r.c.Ended(&w.line)
	}
	w.lines = w.r.store.Line(w.lines, &w.line)
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
	r, size := w.r, int64(0)
	if r.store.Files != nil {
		err = errors.Join(err, w.files())
	}
	if r.store.IsOrdered() && w.to != r.store.Out {
		w.pass()
	}
	r.store.Wake()
	r.tally.Ended(w.ends(), !w.to.Regular())
	for i := range w.of {
		j := w.of[i].job
		size += j.size
		w.lost = w.lost || !w.of[i].written
		if j.first {
			r.trials.set(j.r.Estimate.Model, untried, "") // no effect if its answer has decided
		}
		r.release(j)
		j.res.Body, j.r.Body, j.r.Raw = nil, nil, nil // the Pool and its queue remember a request for a while
	}
	r.course.free(size)
	if err != nil {
		r.course.fail(err)
	}
	clear(w.of)
	clear(w.answers)
	clear(w.ids)
	clear(w.tallied)
	w.of, w.lines, w.line = w.of[:0], w.lines[:0], format.Result{}
}

// ends describes the requests for the tally.
func (w *endings) ends() []tally.End {
	w.tallied = w.tallied[:0]
	for i := range w.of {
		e, j := &w.of[i], w.of[i].job
		one := tally.End{State: e.State, Late: e.Late, Reason: e.Reason, Request: j.r, Failed: j.failed, Group: j.group.index,
			Key: j.keyIndex, Written: e.written, Partly: j.parts != nil, Repeat: j.repeat, KeyHost: j.keyHost}
		if e.State == pool.Dead {
			one.Class = deadOf(j, e.Ended)
		}
		w.tallied = append(w.tallied, one)
	}
	return w.tallied
}

// results writes the lines together. If that fails, perhaps because the disk is almost full, it
// writes them one by one. It does not do so with a stream, which may have a part of them already.
func (w *endings) results() error {
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
			w.r.store.Passed(e.job.r.Hash)
		}
	}
}

// files hands over the bodies whose lines are written now. Their files get their names.
func (w *endings) files() (err error) {
	for i := range w.of {
		if e := &w.of[i]; e.written && e.job.res.Saved != nil {
			err = errors.Join(err, w.r.store.Named(*e.job.res.Saved))
		}
	}
	return err
}

// journal records the answers of the requests whose results are written. The next run sends a
// request without a result again.
func (w *endings) journal() error {
	to := w.r.store.Journal
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

// result fills in the line about a request.
func (r *Run) result(line *format.Result, keep *format.Kept, j *job, e *pool.Ended) {
	at := time.Now()
	if e.State == pool.Done {
		at = j.res.Ended
	}
	*line = format.Result{
		ID: j.r.ID, State: e.State.String(), Attempts: e.Attempts, At: format.Stamp(at), PossibleRepeat: j.repeat, Late: e.Late,
		Key: j.key, Digest: j.r.Digest,
		Status: j.res.Status, Partly: j.parts, Page: j.r.Page, Next: j.next, Refused: j.refusals.N,
		RefusedAt: j.refusals.Texts(), Ceiling: r.ceilings.now(),
	}
	if !j.res.Ended.IsZero() {
		line.WaitedMS = format.Milliseconds(j.at.Sub(j.submitted(e.Submitted)))
		line.WaitedFor = j.group.waits.Between(j.waited[0], j.waited[1])
		line.LatencyMS = format.Milliseconds(j.res.Ended.Sub(j.res.Began))
		line.Row = j.row
		if j.row == nil {
			line.SetHeaders(j.res.Header, keep, r.secrets.Of(j.r))
		}
		switch {
		case j.row != nil:
		case j.res.Saved != nil:
			j.res.Saved.Tell(line)
		case j.res.Status != 0:
			line.SetBody(j.res.Body, j.res.Cut, j.res.CutAt(), r.secrets.Of(j.r))
		}
		if j.hop.Count > 0 {
			var n int
			line.Location, n = r.secrets.Of(j.r).HideIn(j.hop.URL.String())
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
		line.Error, line.Class, line.Request = e.Reason, deadOf(j, e).String(), r.secrets.LineOf(j.r)
	}
}
