package run

import (
	"errors"

	"github.com/paceline-go/paceline/internal/app/journal"
	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/output"
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
	if one.job.res.unsaved != nil && e.State == pool.Done {
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
	if r.sender.files != nil {
		err = errors.Join(err, w.files())
	}
	if r.store.IsOrdered() && w.to != r.store.Out {
		w.pass()
	}
	r.store.Wake()
	r.tally.ended(w.of, !w.to.Regular())
	for i := range w.of {
		j := w.of[i].job
		size += j.size
		w.lost = w.lost || !w.of[i].written
		if j.first {
			r.trials.set(j.r.Estimate.Model, untried, "") // no effect if its answer has decided
		}
		r.release(j)
		j.res.body, j.r.Body, j.r.Raw = nil, nil, nil // the Pool and its queue remember a request for a while
	}
	r.course.free(size)
	if err != nil {
		r.fail(err)
	}
	clear(w.of)
	clear(w.answers)
	clear(w.ids)
	w.of, w.lines, w.line = w.of[:0], w.lines[:0], format.Result{}
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
		if e := &w.of[i]; e.written && e.job.res.saved != nil {
			err = errors.Join(err, w.r.store.Named(*e.job.res.saved))
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
