package run

import (
	"net/http"
	"sync/atomic"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/meter"
	"github.com/paceline-go/paceline/internal/app/run/telling"
	"github.com/paceline-go/paceline/internal/text"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/pool"
)

// steps takes the steps after an answer, in their order. What judges comes first. The journal is last, since
// it has what the others found out.
func (at *attempt) steps() {
	r, j := at.r, at.j
	r.TellCoded(&j.res)
	at.ans, at.final = r.judge.of(j)
	at.file()                                            // the body gets a file of its own
	at.shape()                                           // or a row
	r.denials.heard(j.res.Ended, &at.ans)                // does the server deny all?
	at.final = r.trials.answered(j, &at.ans) || at.final // is there such a model?
	if r.trials.waiting.CompareAndSwap(true, false) {
		r.trials.clear(r.groups)
	}
	r.organizations.named(r.groups, r.epoch, j, &at.ans) // whose limits does the key have?
	at.served()                                          // what would fit, if no limit was given?
	at.ban()                                             // a key is out of use everywhere
	at.class()                                           // if it becomes a dead letter
	at.fail()                                            // how did it fail?
	r.purse.pay(j, at.ans.Result, at.price)              // what does it cost?
	at.count()                                           // and how much of the limits?
	r.hosts.answers(at.went, &j.res)                     // the host is there
	r.denials.tell(at.g.pool, at.a.Key, &at.ans)         // what do refusals prove?
	at.hold()                                            // until when does the key stay away?
	at.record()                                          // the journal has all of that
}

// file puts the body into a file, if the run has files of bodies and the answer ends its request well.
func (at *attempt) file() {
	r, j, files := at.r, at.j, at.r.store.Files
	if files == nil {
		return
	}
	if !endsWell(&at.ans) {
		if j.res.Saved != nil {
			files.Drop(j.res.Saved)
			j.res.Saved = nil
		}
		return
	}
	if res := &j.res; res.Unsaved == nil && res.Saved == nil {
		res.Saved, res.Unsaved = files.Save(j.r.ID, r.secrets.Of(j.r), res.Header,
			res.Status == http.StatusPartialContent, res.Body)
	}
	if j.res.Unsaved != nil {
		r.course.fail(j.res.Unsaved)
		return
	}
	r.sender.Memory.Free(&j.res.Share)
	j.res.Body = nil
}

// served observes what a server accepts if no limit is given.
func (at *attempt) served() {
	g, key := at.g, at.a.Key
	if g.knowsNothing() && !at.ans.Elsewhere &&
		g.served[key].Hear(at.j.res.Began, at.j.res.Ended, at.ans.Result) {
		g.tellServed(key, telling.EnoughRefusals)
	}
}

// class notes what the request is if it becomes a dead letter now.
func (at *attempt) class() { at.j.class, at.j.reason = classOf(at.j, &at.ans), at.ans.Reason }

func (at *attempt) ban() {
	if at.ans.Banned {
		at.g.banned(at.a.Key, at.ans.Reason)
	}
}

// fail counts the attempt if it failed.
func (at *attempt) fail() {
	what := failedOf(at.j, &at.ans)
	if what == "" { // the request keeps how it failed before, until it ends
		return
	}
	at.r.tally.Fails(at.j.failed, what, at.ans.Reason)
	at.j.failed = what
}

// count counts the attempt, and how much of the limits it used.
func (at *attempt) count() {
	j, cost := at.j, at.j.r.Cost
	j.result, j.actual = at.ans.Result, nil
	if at.ans.Metered {
		actual := at.ans.Actual
		j.actual, cost = &actual, actual
	}
	if at.r.tally.Sent(at.g.index, at.a.Key, &j.res, at.ans.Result, cost) {
		j.refusals.Add(j.res.Ended)
	}
}

// hold notes until when the answer keeps its key away.
func (at *attempt) hold() {
	at.j.hold = time.Time{}
	own := &at.ans.Outcome
	if at.ans.Resource != nil && at.j.r.Apart() == "" {
		own = at.ans.Resource
	}
	if d := at.holds(own); d > 0 {
		at.j.hold = at.j.res.Ended.Add(d)
		at.r.TellHold(at.g.called(at.a.Key), at.j.hold, at.ans.Reason)
	} else if o := at.ans.Resource; o != nil && holds(o, &at.ans.Capacity) > 0 {
		until := at.j.res.Ended.Add(holds(o, &at.ans.Capacity))
		at.r.TellHold(at.g.called(at.a.Key)+" ("+at.j.r.Apart()+")", until, at.ans.Reason)
	} else if at.ans.Result == limit.Limited {
		reason := at.ans.Reason // a pointer into at would keep all of it
		at.g.unsaid.Store(&reason)
	}
}

// record writes the answer into the journal, unless the request ends here: then its result is written first.
func (at *attempt) record() {
	r, j := at.r, at.j
	if at.final {
		return
	}
	if r.c.Backlog != nil && !at.ans.Returned && !at.ans.Banned {
		r.c.Backlog.Tried(j.r.ID, j.unsure)
	}
	r.writer.answered(j)
	if at.a.Number < r.c.Attempts {
		j.res.Shorten()
	}
	r.writer.release(j)
}

// holds returns how long an answer keeps its key away: as long as the answer asks, or until a
// used-up quota has more. The next run keeps to that, too.
func (at *attempt) holds(own *limit.Outcome) time.Duration {
	g, ans := at.g, &at.ans
	d := holds(own, &ans.Capacity)
	if d == 0 || g.r.c.Strangers == nil && g.r.c.Auto == nil { // others know only what answers state
		return d
	}
	o, units := *own, uint8(0)
	g.pool.Update(func(_ mono.Time, _ *pool.Queue, d *pool.Dispatcher) {
		units = d.Refills(at.a.Key, ans)
	})
	o.Refilled(units)
	return holds(&o, &ans.Capacity)
}

func holds(o *limit.Outcome, capacity *limit.Cost) time.Duration {
	d := o.RetryAfter
	for u, reset := range o.Reset {
		if o.Known>>u&1 == 1 && o.Remaining[u] <= 0 {
			d = max(d, reset/time.Duration(max(capacity[u], 1))) // reset: the bucket is full; one token is enough
		}
	}
	return d
}

// shape makes the row of an answer that ends its request well, with --select.
func (at *attempt) shape() {
	r, j := at.r, at.j
	j.misfit = ""
	if r.c.Shape == nil || !endsWell(&at.ans) {
		return
	}
	v := at.selectable()
	row, null, err := r.c.Shape.Row(nil, v)
	line := string(row)
	j.row, j.res.Body = &line, nil
	r.sender.Memory.Free(&j.res.Share)
	if err == nil {
		if r.selected.add(null, v) == fewRows {
			r.tellNulls(fewRows)
		}
		return
	}
	message, _ := r.secrets.Of(j.r).HideIn(err.Error())
	j.misfit = message
	if r.unselected.Add(1) == 1 {
		r.Say("--select %s, of the answer to %q: the field is empty; the end of the run says how many answers are so", message,
			j.r.ID)
	}
}

// selectable returns the values that a --select expression can read: the fields of the result, the
// body as JSON if it is JSON, and the request.
func (at *attempt) selectable() map[string]any {
	r, j := at.r, at.j
	res, secrets := &j.res, r.secrets.Of(j.r)
	headers := map[string]any{}
	kept := format.Kept{More: []string{"*"}}
	var line format.Result
	line.SetHeaders(res.Header, &kept, secrets)
	for name, value := range line.Headers {
		headers[name] = value
	}
	address := r.secrets.Address(j.r)
	v := map[string]any{
		"id": j.r.ID, "state": "done", "status": res.Status, "attempts": at.a.Number, "key": j.key, "at": format.Stamp(res.Ended),
		"latency_ms": format.Milliseconds(res.Ended.Sub(res.Began)), "headers": headers, "possible_repeat": j.repeat,
		"method": j.r.Method, "url": address, "body_cut": res.Cut, "row": j.r.Columns(secrets),
	}
	if r.c.Meter != nil {
		v["finish"], v["input_tokens"], v["output_tokens"] = nil, nil, nil
		if j.cut {
			v["finish"] = meter.Length
		}
		if u := j.usage; u != nil {
			v["input_tokens"], v["output_tokens"] = int(u.Input), int(u.Output)
		}
	}
	if j.hop.Count > 0 {
		v["location"], _ = secrets.HideIn(j.hop.URL.String())
	}
	body, _ := secrets.Hide(res.Body, res.CutAt())
	v["body"] = format.Parsed(body)
	return v
}

// fewRows is how many answers show that a column of a selection is null in all of them. It may be so for good reason,
// so that is a notice and ends nothing. An expression that fails is wrong: see trials.compare.
const fewRows = 20

// selected counts the answers from which a selection made a row, and notes the columns that had a value. Safe for
// concurrent use.
type selected struct {
	rows   atomic.Int64
	found  atomic.Uint64
	sample atomic.Pointer[map[string]any] // the first answer of which a column was null
}

// add takes in the mask of a row, and what the row was made of. It returns how many rows there are by now.
func (s *selected) add(null uint64, of map[string]any) int64 {
	s.found.Or(^null)
	if null != 0 {
		s.sample.CompareAndSwap(nil, &of)
	}
	return s.rows.Add(1)
}

// tellNulls names the columns that were null in all rows so far.
func (r *Run) tellNulls(rows int64) {
	if null, sample := ^r.selected.found.Load(), r.selected.sample.Load(); null != 0 && sample != nil {
		r.Say("--select has found nothing in %s: %s", text.Count(int(rows), "answer", "answers"),
			r.c.Shape.Nulls(null, *sample))
	}
}
