package run

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/paceline-go/paceline/internal/app/auth/bearer"
	"github.com/paceline-go/paceline/internal/app/journal"
	"github.com/paceline-go/paceline/internal/app/run/dead"
	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/output"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/pool"
	"github.com/paceline-go/paceline/provider"
)

// job is a request on its way.
type job struct {
	r        *format.Request
	group    *group
	hop      hop
	size     int64
	repeat   bool            // it may have been served before
	doubt    bool            // an attempt may have been served
	unsure   bool            // the latest attempt may have been served, and has no answer that is a result
	held     bool            // it is not sent again for that reason
	number   int             // of the latest attempt
	parts    *provider.Parts // of the latest answer, if it was served in part
	class    dead.Class      // its class as a dead letter, by its latest attempt
	reason   string          // the same, in words
	failed   string          // why the latest attempt failed, in a word or two; empty: it did not fail
	astray   bool            // nothing came back from a host that only a redirect led to
	keyHost  bool            // a redirect was not followed, since a key would have gone with it
	first    bool            // it is the first request of its model
	noModel  bool            // there is no such model, as its answer says
	unpaid   bool            // the key has no credit, as its answer says
	noQuota  bool            // the key may not use the model, since its limit is 0
	unlike   bool            // Config.Success refused its answer
	room     bool            // it holds a place in Run.room
	key      string
	keyIndex int
	token    bearer.Pass
	refused  int // generation of the token of the latest refusal
	refusals refusals
	n        int64 // number of its send in the journal; 0: the journal has its answer
	at       mono.Time
	waited   [2][]time.Duration // time waited for each cause, until it was submitted and until it was sent
	res      response
	row      *string // the row that Config.Shape made of the answer
	result   limit.Result
	cost     money       // the cost of the latest attempt
	actual   *limit.Cost // its use of the limits; nil: as much as was admitted
	hold     time.Time

	next  string          // the next page, as the results keep it; empty: there is none
	after *format.Request // the request for that page
	stray *straying       // why that page is not requested
	since mono.Time       // when this page could be sent, if it is not the first
	told  bool            // nothing more is written about it
}

// send makes one attempt. It records the attempt in the journal, sends the request, and judges what
// the answer states about the limits.
func (g *group) send(ctx context.Context, a pool.Attempt) pool.Answer {
	r, j := g.r, a.Request.Value.(*job)
	returned := pool.Answer{Outcome: limit.Outcome{Result: limit.Unsent}, Returned: true}
	land, ok := r.takeOff(ctx, a.Key)
	if !ok {
		return returned
	}
	defer land()
	price, ok := g.mayGo(ctx, j, &a)
	if !ok {
		return returned
	}
	if j.doubt {
		j.repeat = true
	}
	key := r.c.Keys[a.Key]
	j.key, j.keyIndex, j.at, j.number = key.Name, a.Key, a.At, a.Number
	j.waited[1] = g.waits.until(time.Now())
	went := j.hop.host // before a redirect
	if j.first {
		patience := time.AfterFunc(trialPatience, func() { r.trials.set(j.r.Estimate.Model, right, "") })
		defer patience.Stop()
	}
	res := r.sender.send(ctx, j.r, j.hop,
		&format.Values{Key: key.Secret, Token: j.token.Value, ID: j.r.ID, Nonce: a.Nonce, Attempt: a.Number, Cells: j.r.Cell},
		g.leave(&a))
	if res.lapsed {
		return g.takeBack(j, price)
	}
	j.res = res
	r.tellCoded(&res)
	ans, final := r.judge(j)
	if r.sender.files != nil {
		r.file(j, &ans)
	}
	if r.c.Shape != nil && endsWell(&ans) {
		r.shape(j, a.Number)
	}
	r.denials.heard(j.res.ended, &ans)
	r.heard(j, &ans)
	r.named(j, &ans)
	if len(g.limits)+len(g.autos) == 0 && !ans.Elsewhere && g.served[a.Key].hear(j.res.began, j.res.ended, ans.Result) {
		g.tellServed(a.Key, enoughRefusals)
	}
	if ans.Banned {
		g.banned(a.Key, ans.Reason)
	}
	j.class, j.reason = classOf(j, &ans), ans.Reason
	r.failed(j, &ans)
	j.result, j.actual, j.cost = ans.Result, nil, r.cost(j, ans.Result, price)
	r.budget.settle(price, j.cost)
	r.tally.spend(j.r.Estimate.Model, j.cost)
	cost := j.r.Cost
	if ans.Metered {
		actual := ans.Actual
		j.actual, cost = &actual, actual
	}
	if r.tally.sent(g.index, a.Key, &j.res, ans.Result, cost) {
		j.refusals.add(j.res.ended)
	}
	if j.res.status != 0 {
		r.hosts.note(went, answered)
	}
	g.tellTrouble(&ans)
	j.hold = time.Time{}
	if d := g.holds(a.Key, &ans); d > 0 {
		j.hold = j.res.ended.Add(d)
		r.tellHold(g.called(a.Key), j.hold, ans.Reason)
	} else if ans.Result == limit.Limited {
		g.unsaid.Store(&ans.Reason)
	}
	if !final {
		if err := r.answered(j); err != nil {
			r.fail(err)
		}
		if a.Number < r.c.Attempts {
			j.res.shorten()
		}
		r.release(j)
	}
	return g.turn(j, &a, ans)
}

// leave decides, right before an attempt is written, whether it may go. Nil: it may.
func (g *group) leave(a *pool.Attempt) fresh {
	if g.r.c.Share == nil {
		return nil
	}
	return func() bool { return g.pool.Fresh(a) }
}

// takeBack returns a request to the queue. The leave for it had lapsed, and nothing was written.
func (g *group) takeBack(j *job, price money) pool.Answer {
	r := g.r
	r.budget.settle(price, 0)
	was := j.result
	j.result = limit.Unsent
	if err := r.answered(j); err != nil {
		r.fail(err)
	}
	j.result = was
	r.release(j)
	return pool.Answer{Outcome: limit.Outcome{Result: limit.Unsent}, Returned: true}
}

// mayGo gets all that an attempt needs beside its permit: room for its answer, money, a token, and
// a record in the journal. It returns false if the attempt does not go now.
func (g *group) mayGo(ctx context.Context, j *job, a *pool.Attempt) (price money, ok bool) {
	r := g.r
	// If results are read slowly, the run sends no more than it can keep.
	select {
	case r.room <- struct{}{}:
	case <-ctx.Done():
		return 0, false
	}
	j.room = true
	if r.course.isStopped() {
		r.release(j)
		return 0, false
	}
	price = r.price(j.r)
	if ok, err := r.budget.reserve(ctx, price); !ok {
		r.release(j)
		if err == nil {
			r.enough(r.overBudget())
		}
		return 0, false
	}
	// The run may have stopped while the attempt waited for money.
	if ok = !r.course.isStopped() && r.pass(ctx, j); ok {
		if err := r.sending(j, *a, g.name(a.Key), price); err != nil {
			r.fail(err)
			ok = false
		}
	}
	if !ok {
		r.budget.settle(price, 0)
		r.release(j)
	}
	return price, ok
}

// file puts the body of an answer into a file, if the answer ends its request well.
func (r *Run) file(j *job, ans *pool.Answer) {
	files := r.sender.files
	if !endsWell(ans) {
		if j.res.saved != nil {
			files.Drop(j.res.saved)
			j.res.saved = nil
		}
		return
	}
	if res := &j.res; res.unsaved == nil && res.saved == nil {
		res.saved, res.unsaved = files.Save(j.r.ID, r.secrets.Of(j.r), res.header,
			res.status == http.StatusPartialContent, res.body)
	}
	if j.res.unsaved != nil {
		r.fail(j.res.unsaved)
		return
	}
	r.sender.memory.free(&j.res.share)
	j.res.body = nil
}

// endsWell reports whether an answer ends its request and is its result.
func endsWell(ans *pool.Answer) bool {
	return ans.Result == limit.Accepted && !ans.Returned && !ans.Banned && !ans.Invalid
}

// holds returns how long an answer keeps its key away: as long as the answer asks, or until a
// used-up quota has more. The next run keeps to that, too.
func (g *group) holds(key int, ans *pool.Answer) time.Duration {
	d := holds(&ans.Outcome, &ans.Capacity)
	if d == 0 || g.r.c.Strangers == nil && len(g.autos) == 0 { // others know only what answers state
		return d
	}
	o, units := ans.Outcome, uint8(0)
	g.pool.Update(func(_ mono.Time, _ *pool.Queue, d *pool.Dispatcher) {
		units = d.Refills(key, ans)
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

// sending records in the journal that an attempt is about to go.
func (r *Run) sending(j *job, a pool.Attempt, key string, price money) (err error) {
	if r.store.Journal == nil {
		return nil
	}
	j.n, err = r.store.Journal.Send(journal.Send{ID: j.r.ID, Attempt: a.Number, Key: key, Nonce: a.Nonce, Cost: j.r.Cost,
		Price: int64(price)}, time.Now())
	if err == nil {
		r.store.Wake()
	}
	return err
}

// answered records in the journal how a job's latest send ended.
func (r *Run) answered(j *job) error {
	if j.n == 0 {
		return nil
	}
	return r.store.Journal.Answers([]journal.Answered{j.answer()})
}

// answer describes how a job's latest send ended, for the journal.
func (j *job) answer() journal.Answered {
	a := journal.Answered{Send: j.n,
		Answer: journal.Answer{Result: j.result, Counts: j.res.ended, Hold: j.hold, Actual: j.actual, Price: int64(j.cost)}}
	if j.result == limit.Unknown {
		a.Counts = a.Counts.Add(journal.Late)
	}
	if j.unsure {
		a.Doubt = j.r.ID
	}
	j.n = 0
	return a
}

func (r *Run) release(j *job) {
	r.sender.memory.free(&j.res.share)
	if j.room {
		j.room = false
		<-r.room
	}
}

// result fills in the line about a request.
func (r *Run) result(line *format.Result, keep *format.Kept, j *job, e *pool.Ended) {
	at := time.Now()
	if e.State == pool.Done {
		at = j.res.ended
	}
	*line = format.Result{
		ID: j.r.ID, State: e.State.String(), Attempts: e.Attempts, At: format.Stamp(at), PossibleRepeat: j.repeat, Late: e.Late,
		Key: j.key, Digest: j.r.Digest,
		Status: j.res.status, Partly: j.parts, Page: j.r.Page, Next: j.next, Refused: j.refusals.n,
		RefusedAt: j.refusals.texts(), Ceiling: r.ceilings.now(),
	}
	if !j.res.ended.IsZero() {
		line.WaitedMS = format.Milliseconds(j.at.Sub(j.submitted(e.Submitted)))
		line.WaitedFor = j.group.waits.between(j.waited[0], j.waited[1])
		line.LatencyMS = format.Milliseconds(j.res.ended.Sub(j.res.began))
		line.Row = j.row
		if j.row == nil {
			line.SetHeaders(j.res.header, keep, r.secrets.Of(j.r))
		}
		switch {
		case j.row != nil:
		case j.res.saved != nil:
			j.res.saved.Tell(line)
		case j.res.status != 0:
			line.SetBody(j.res.body, j.res.cut, j.res.cutAt(), r.secrets.Of(j.r))
		}
		if j.hop.count > 0 {
			var n int
			line.Location, n = r.secrets.Of(j.r).HideIn(j.hop.url.String())
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

// DeadBecause names the file of this run's dead letters and their most frequent reason. It is empty
// if there are none.
func (r *Run) DeadBecause() string {
	most, n, all := r.tally.deadBecause()
	if most == "" {
		return ""
	}
	where := ""
	if dead := r.store.Dead; dead != nil && dead != r.store.Out {
		where = " in " + dead.Name()
	}
	if all == 1 {
		return fmt.Sprintf("1 dead letter%s, because: %s", where, most)
	}
	return fmt.Sprintf("%d dead letters%s, %d of them because: %s", all, where, n, most)
}

// DeadAgain says how many requests of the input are dead or expired, why, and how to send them
// again. It is empty if there are none. It says how only if another run can know of them.
func (r *Run) DeadAgain() string {
	r.tally.mu.Lock()
	defer r.tally.mu.Unlock()
	e := r.tally.bad
	switch e.Again = r.c.Out != "-"; {
	case !e.Again:
		e.Lapsed, e.Again = 0, r.c.Dead != "-" && !output.IsNowhere(r.c.Dead)
	case output.IsNowhere(r.c.Dead):
		e.Again = false // no file keeps them, so another run sends them again in any case
	}
	return e.String()
}
