package run

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/paceline-go/paceline/internal/app/journal"
	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/sending"
	"github.com/paceline-go/paceline/pool"
)

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
	r.tally.Pace.Begin(r.epoch, r.c.each())
	r.keep = r.c.remembers()
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
	j, _, err := journal.Open(o.r.besideOut(), o.at)
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
