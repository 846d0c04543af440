package batch

import (
	"errors"

	"github.com/paceline-go/paceline/internal/journal"
	"github.com/paceline-go/paceline/queue"
)

// endings are requests that have ended, whose results are written at once.
type endings struct {
	r     *Run
	to    *results
	lines []byte
	of    []ended

	// Room that is used again.
	line    Result
	keep    kept
	answers []journal.Answered
	ids     []string
}

// ended is a request that has.
type ended struct {
	*queue.Ended
	job      *job
	from, to int // of lines
	written  bool
}

// mostLines is how long lines may get before they are written: so many bodies are held twice.
const mostLines = 256 << 10

// ended writes what became of requests: first the results, then the journal's answers. It is called by the Pool, one at a time, and
// by the feeder.
func (r *Run) ended(all []queue.Ended) {
	w := r.endings.Get().(*endings)
	w.r, w.keep.more = r, r.c.KeepHeaders
	for i := range all {
		w.add(&all[i])
	}
	w.write()
	if cap(w.lines) <= keptLine {
		r.endings.Put(w)
	}
}

// add takes in one, and writes those before it if it has another place, or they are long.
func (w *endings) add(e *queue.Ended) {
	to := w.r.store.out
	if e.State == queue.Dead {
		to = w.r.store.dead
	}
	if to != w.to {
		w.write()
		w.to = to
	}
	one := ended{Ended: e, job: e.Request.Value.(*job), from: len(w.lines)}
	w.r.result(&w.line, &w.keep, one.job, e)
	w.lines = w.r.c.Format.line(w.lines, &w.line)
	one.to = len(w.lines)
	if w.of = append(w.of, one); one.to >= mostLines {
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
	r.store.wake()
	r.tally.ended(w.of, !w.to.Regular())
	for i := range w.of {
		j := w.of[i].job
		size += j.size
		if j.first {
			r.trials.set(j.r.Estimate.Model, untried, "") // unless its answer has told
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
	w.of, w.lines, w.line = w.of[:0], w.lines[:0], Result{}
}

// results writes the lines at once, or where that fails, as there is little room left, one by one: not to a stream, which keeps what it
// has of them.
func (w *endings) results() error {
	err := w.to.Append(w.lines)
	for i := range w.of {
		e := &w.of[i]
		e.written = err == nil || len(w.of) > 1 && w.to.Regular() && w.to.Append(w.lines[e.from:e.to]) == nil
	}
	return err
}

// journal writes the answers of those whose results are written. Of those whose are not nothing is known: they are sent again.
func (w *endings) journal() error {
	to := w.r.store.journal
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
