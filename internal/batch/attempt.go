package batch

import (
	"context"
	"fmt"
	"time"

	"github.com/paceline-go/paceline/dispatch"
	"github.com/paceline-go/paceline/internal/journal"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/mono"
	"github.com/paceline-go/paceline/queue"
)

// job is a request on its way.
type job struct {
	r        *Request
	group    *group
	hop      hop
	size     int64
	repeat   bool   // it may have been served before
	doubt    bool   // an attempt had no whole answer
	unsure   bool   // after a crash it would not be known whether the latest attempt was served
	class    class  // what it would be dead of, by its latest attempt
	reason   string // likewise
	astray   bool   // nothing came back from where only a redirect led
	keyHost  bool   // a redirect was not followed, since a key would have gone along
	first    bool   // of its model
	noModel  bool   // there is no such model, as its answer says
	unlike   bool   // its answer is not what Config.Success calls one
	room     bool   // it holds a place in Run.room
	key      string
	keyIndex int
	n        int64 // of the journal; 0: its answer is written
	at       mono.Time
	waited   [2][]time.Duration // for what was waited at all, until it was submitted and until it was sent
	res      response
	result   limit.Result
	cost     money       // of the latest attempt
	actual   *limit.Cost // nil: as admitted
	hold     time.Time
}

// send makes one attempt: a trace in the journal first, then the request, then what it says about limits.
func (g *group) send(ctx context.Context, a dispatch.Attempt) dispatch.Answer {
	r, j := g.r, a.Request.Value.(*job)
	returned := dispatch.Answer{Outcome: limit.Outcome{Result: limit.Unsent}, Returned: true}
	land, ok := r.takeOff(ctx, a.Key)
	if !ok {
		return returned
	}
	defer land()
	// Whoever reads the results may be slow. Then no more is sent than can be kept.
	select {
	case r.room <- struct{}{}:
	case <-ctx.Done():
		return returned
	}
	j.room = true
	if r.course.isStopped() {
		r.release(j)
		return returned
	}
	key := r.c.Keys[a.Key]
	price := r.price(j.r)
	if ok, err := r.budget.reserve(ctx, price); !ok {
		r.release(j)
		if err == nil {
			r.enough(r.overBudget())
		}
		return returned
	}
	if r.course.isStopped() { // while it waited for that
		r.budget.settle(price, 0)
		r.release(j)
		return returned
	}
	if err := r.sending(j, a, g.name(a.Key), price); err != nil {
		r.budget.settle(price, 0)
		r.release(j)
		r.fail(err)
		return returned
	}
	if j.doubt {
		j.repeat = true
	}
	j.key, j.keyIndex, j.at = key.Name, a.Key, a.At
	j.waited[1] = g.waits.until(time.Now())
	went := j.hop.host // before a redirect
	if j.first {
		patience := time.AfterFunc(trialPatience, func() { r.trials.set(j.r.Estimate.Model, right, "") })
		defer patience.Stop()
	}
	j.res = r.sender.send(ctx, j.r, j.hop, &values{key: key.Secret, id: j.r.ID, nonce: a.Nonce, attempt: a.Number})
	ans, final := r.judge(j)
	r.denials.heard(j.res.ended, &ans)
	r.heard(j, &ans)
	if len(g.limits) == 0 && !ans.Elsewhere && g.served[a.Key].hear(j.res.began, j.res.ended, ans.Result) {
		g.tellServed(a.Key, enoughRefusals)
	}
	if ans.Banned {
		g.banned(a.Key, ans.Reason)
	}
	j.class, j.reason = classOf(j, &ans), ans.Reason
	j.result, j.actual, j.cost = ans.Result, nil, r.cost(j, ans.Result, price)
	r.budget.settle(price, j.cost)
	r.tally.spend(j.r.Estimate.Model, j.cost)
	cost := j.r.Cost
	if ans.Metered {
		actual := ans.Actual
		j.actual, cost = &actual, actual
	}
	r.tally.sent(g.index, a.Key, &j.res, ans.Result, cost)
	if j.res.status != 0 {
		r.hosts.note(went, answered)
	}
	g.tellTrouble(&ans)
	j.hold = time.Time{}
	if d := holds(&ans); d > 0 {
		j.hold = j.res.ended.Add(d)
		r.tellHold(g.called(a.Key), j.hold, ans.Reason)
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
	return ans
}

// holds is how long an answer keeps its key away: as it asks, or until there is more of what is used up. A run after this one keeps
// to that, too.
func holds(ans *dispatch.Answer) time.Duration {
	d := ans.RetryAfter
	for u, reset := range ans.Reset {
		if ans.Known>>u&1 == 1 && ans.Remaining[u] <= 0 {
			d = max(d, reset/time.Duration(max(ans.Capacity[u], 1))) // of a bucket it is when it is full
		}
	}
	return d
}

// sending writes into the journal that an attempt is about to go.
func (r *Run) sending(j *job, a dispatch.Attempt, key string, price money) (err error) {
	if r.store.journal == nil {
		return nil
	}
	j.n, err = r.store.journal.Send(journal.Send{ID: j.r.ID, Attempt: a.Number, Key: key, Nonce: a.Nonce, Cost: j.r.Cost, Price: int64(price)}, time.Now())
	if err == nil {
		r.store.wake()
	}
	return err
}

// answered writes the end of a job's latest send into the journal.
func (r *Run) answered(j *job) error {
	if j.n == 0 {
		return nil
	}
	return r.store.journal.Answers([]journal.Answered{j.answer()})
}

// answer is how a job's latest send ended, for the journal.
func (j *job) answer() journal.Answered {
	a := journal.Answered{Send: j.n, Answer: journal.Answer{Result: j.result, Counts: j.res.ended, Hold: j.hold, Actual: j.actual, Price: int64(j.cost)}}
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

// result is the line about a request.
func (r *Run) result(line *Result, keep *kept, j *job, e *queue.Ended) {
	at := time.Now()
	if e.State == queue.Done {
		at = j.res.ended
	}
	*line = Result{
		ID: j.r.ID, State: e.State.String(), Attempts: e.Attempts, At: stamp(at), PossibleRepeat: j.repeat, Key: j.key, Digest: j.r.Digest,
		Status: j.res.status,
	}
	if !j.res.ended.IsZero() {
		line.WaitedMS = milliseconds(j.at.Sub(e.Submitted))
		line.WaitedFor = j.group.waits.between(j.waited[0], j.waited[1])
		line.LatencyMS = milliseconds(j.res.ended.Sub(j.res.began))
		line.setHeaders(j.res.header, keep, r.sender.secrets)
		if j.res.status != 0 {
			line.setBody(&j.res, r.sender.secrets)
		}
		if j.hop.count > 0 {
			var n int
			line.Location, n = r.sender.secrets.HideIn(j.hop.url.String())
			line.Hidden += n
		}
	}
	switch e.State {
	case queue.Expired:
		line.Error = "the deadline passed before it could be sent"
		if e.Attempts > 0 {
			line.Error = "the deadline passed: " + e.Reason
		}
	case queue.Dead:
		line.Error, line.Class, line.Request = e.Reason, deadOf(j, e).String(), j.r.Raw
	}
}

// DeadBecause says where the dead letters of this run are and what most of them are dead of; empty: there are none.
func (r *Run) DeadBecause() string {
	most, n, all := r.tally.deadBecause()
	if most == "" {
		return ""
	}
	where := ""
	if dead := r.store.dead; dead != nil && dead != r.store.out {
		where = " in " + dead.Name()
	}
	if all == 1 {
		return fmt.Sprintf("1 dead letter%s, because: %s", where, most)
	}
	return fmt.Sprintf("%d dead letters%s, %d of them because: %s", all, where, n, most)
}

// DeadAgain says how many requests of the input are dead or expired, of what, and how they are sent again, if another run can know of
// them; empty: none is.
func (r *Run) DeadAgain() string {
	r.tally.mu.Lock()
	defer r.tally.mu.Unlock()
	e := r.tally.bad
	switch e.again = r.c.Out != "-"; {
	case !e.again:
		e.lapsed, e.again = 0, r.c.Dead != "-" && !IsNowhere(r.c.Dead)
	case IsNowhere(r.c.Dead):
		e.again = false // it is, without being asked
	}
	return e.String()
}
