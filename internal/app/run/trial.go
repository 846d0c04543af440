package run

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/tally"
	"github.com/paceline-go/paceline/internal/app/run/telling"
	"github.com/paceline-go/paceline/internal/text"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/pool"
)

// trialPatience is how long the other requests of a model wait for the first. A server refuses a
// model or a key at once. A server that takes longer works on the answer.
const trialPatience = 3 * time.Second

// trials lets the first request of each model go alone until its answer shows that the model
// exists, and that the key may use it. A wrong name then costs one request, and not the whole file.
// A wrong address costs a few: its answers seldom say that it is wrong, so several must be alike.
// Safe for concurrent use.
type trials struct {
	teller  *telling.Teller
	secrets *format.Secrets
	served  func() bool // some request of the input was served, in this run or in one before

	mu      sync.Mutex
	changed *sync.Cond
	of      map[string]*trial
	stopped bool
	tripped atomic.Bool // a model or the address is wrong
	waiting atomic.Bool // and its requests still wait in the Pools

	// The first answers are a trial of the address. It is over as soon as one of them differs.
	most     int         // equal errors that show that the address is wrong
	compared atomic.Bool // that trial is over
	alike    int
	address  string
	words    string
	astray   trial  // of the address
	culprit  string // what is wrong
}

// trial is that of a model, or of an address.
type trial struct {
	state  trialState
	class  format.DeadClass // of its requests, if it is wrong
	why    string           // why it is wrong
	unsent int              // requests that were not sent, since it is wrong
}

type trialState uint8

const (
	untried trialState = iota
	asking             // the first request is on its way
	right
	wrong // there is no such model, or the key may not use it
)

// newTrials returns trials without an answer. most is Config.SameErrors.
func newTrials(teller *telling.Teller, secrets *format.Secrets, most int, served func() bool) *trials {
	t := &trials{teller: teller, secrets: secrets, most: most, served: served, of: map[string]*trial{}}
	t.compared.Store(most == 0)
	t.changed = sync.NewCond(&t.mu)
	return t
}

// enter waits until a request may go, by its model and its address. first says that it goes alone, as the first
// of its model. If it may not go, spared is true, and the request is a dead letter. Without waits, requests that
// come before the first answer go beside the first.
func (t *trials) enter(j *job, waits bool) (first, spared bool) {
	model := j.r.Estimate.Model
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.spare(j) {
		return false, true
	}
	if model == "" {
		return false, false
	}
	m := t.of[model]
	if m == nil {
		if len(t.of) >= tally.MostModels {
			return false, false // so many names seem to be made up, and are not tried
		}
		m = &trial{}
		t.of[model] = m
	}
	for waits && m.state == asking && !t.stopped {
		t.changed.Wait()
	}
	if t.spare(j) { // the answer for which it waited has shown that
		return false, true
	}
	if first = m.state == untried; first {
		m.state = asking
	}
	return first, false
}

// refuses reports whether an attempt does not go: an answer has shown that its model or its address is wrong, since its
// request was let in. The request is then a dead letter.
func (t *trials) refuses(j *job) bool {
	if !t.tripped.Load() {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.spare(j)
}

// clear makes dead letters of all requests that wait in the Pools and do not go any more.
func (t *trials) clear(groups pools) {
	for _, g := range groups {
		g.pool.Update(func(now mono.Time, q *pool.Queue, _ *pool.Dispatcher) {
			for _, ticket := range q.Waiting() {
				if j := q.Info(ticket).Request.Value.(*job); t.refuses(j) {
					q.Kill(now, ticket, j.reason)
				}
			}
		})
	}
}

// isOver reports whether refuses would refuse an attempt, and changes nothing.
func (t *trials) isOver(j *job) bool {
	if !t.tripped.Load() {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.wrongOf(j) != nil
}

// spare makes a job a dead letter that is not sent, or not again, if its model or its address is wrong. t.mu is held.
func (t *trials) spare(j *job) bool {
	is := t.wrongOf(j)
	if is == nil {
		return false
	}
	if j.number > 0 { // it has an answer and a class of its own
		j.reason = is.again(j.reason)
		return true
	}
	is.unsent++
	j.class, j.reason = is.class, "not sent: "+is.why
	return true
}

// again is the reason of a request that has an answer, and is not sent again.
func (is *trial) again(reason string) string { return reason + "; not sent again: " + is.why }

// wrongOf returns the trial by which a request does not go; nil: it goes. t.mu is held.
func (t *trials) wrongOf(j *job) *trial {
	if t.astray.state == wrong && addressOf(j) == t.address {
		return &t.astray
	}
	if m := t.of[j.r.Estimate.Model]; m != nil && m.state == wrong {
		return m
	}
	return nil
}

// addressOf is the method and the address of a request, without its query.
func addressOf(j *job) string { return j.r.Method + " " + j.r.URL.Host + j.r.URL.EscapedPath() }

// compare takes in the end of a request. If the first ends are all the same error, and no request was served yet,
// the address is wrong: its other requests would be answered alike. An error that a request which only reads gets is
// its answer, for example in a list of links, so it shows nothing.
//
// An answer that --success refuses, or of which --select fails, is such an error, too: the expression may be wrong for
// all. Further attempts of one request show no more than its first.
func (t *trials) compare(j *job, ans *pool.Answer) {
	isUnlike := j.unlike || j.misfit != ""
	if t.compared.Load() || j.unlike && j.number > 1 ||
		!isUnlike && !endsWell(ans) && (!ans.Invalid || ans.Denied || ans.Banned || ans.Result == limit.Limited) {
		return
	}
	isWrong := saysWrong(j) && !t.served() || j.misfit != "" || j.unlike && !t.served()
	words, culprit := said(statusText(j.res.Status), j.res.Body, t.secrets.Of(j.r)), "the address"
	switch {
	case j.unlike:
		words, culprit = ans.Reason, "--success"
	case j.misfit != "":
		what, _, _ := strings.Cut(j.misfit, " (") // then the value, which differs
		words, culprit = statusText(j.res.Status)+", of which --select "+what, "--select"
	}
	if why := t.liken(addressOf(j), words, culprit, isWrong); why != "" {
		t.teller.Say("%s %s: %s; its other requests are not sent (--same-errors 0 sends them)", text.Sanitize(j.r.Method),
			text.Sanitize(j.r.URL.Path), strings.TrimSuffix(why, "."))
	}
}

// liken compares an end with those before it. It returns why the address is wrong, once it is.
func (t *trials) liken(address, words, culprit string, isWrong bool) (why string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.compared.Load() {
		return ""
	}
	if t.alike == 0 {
		t.address, t.words = address, words
	}
	if !isWrong || t.address != address || t.words != words {
		t.compared.Store(true)
		return ""
	}
	if t.alike++; t.alike < t.most {
		return ""
	}
	t.compared.Store(true)
	t.trip()
	t.culprit, t.astray = culprit, trial{state: wrong, class: format.DeadInvalid, why: fmt.Sprintf("the first %d requests were all %s", t.alike, words)}
	return t.astray.why
}

// trip notes that a model or the address is wrong.
func (t *trials) trip() {
	t.tripped.Store(true)
	t.waiting.Store(true)
}

// saysWrong reports whether an answer may say that the address is wrong. A conflict is about the state of a thing, and
// an unknown model is a trial of its own.
func saysWrong(j *job) bool {
	switch j.r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return false
	}
	return !j.noModel && !j.unlike && j.res.Err == nil && j.res.Status/100 == 4 && j.res.Status != http.StatusConflict &&
		format.DeadClassOfStatus(j.res.Status) == format.DeadInvalid
}

// set ends a trial that is under way. If s is untried, another request will be the first.
func (t *trials) set(model string, s trialState) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.of[model]
	if m != nil && m.state == asking {
		m.state = s
		t.changed.Broadcast()
	}
}

// fail ends a trial, or a model that was right until now. It returns false if the model is wrong
// already.
func (t *trials) fail(model, why string) (changed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.of[model]
	if m == nil || m.state == wrong {
		return false
	}
	m.state, m.class = wrong, format.DeadNoModel
	m.why = strings.TrimSuffix(why, ".") + ", to another request of model " + model
	t.trip()
	t.changed.Broadcast()
	return true
}

// answered takes in an answer to a request: to the first one of its model, or one that says that there is
// no such model for the key. It reports whether the request ends here, since its
// model or its address is wrong.
func (t *trials) answered(j *job, ans *pool.Answer) (ends bool) {
	t.compare(j, ans)
	model := j.r.Estimate.Model
	switch {
	case !j.first && !(j.noModel && j.noQuota):
	case j.noModel:
		if t.fail(model, ans.Reason) {
			t.teller.Say("model %s: %s; its other requests are not sent", text.Sanitize(model), strings.TrimSuffix(ans.Reason, "."))
		}
	case ans.Denied, ans.Banned: // the key may be at fault and not the model; another attempt shows more
	case ans.Result == limit.Accepted, ans.Result == limit.Limited, j.unlike: // the model answered
		t.set(model, right)
	}
	return t.endsNow(j, ans)
}

// endsNow ends a request whose other attempts would be answered alike.
func (t *trials) endsNow(j *job, ans *pool.Answer) bool {
	if !t.tripped.Load() || ans.Result != limit.Failed || ans.Invalid || ans.Denied || ans.Banned || ans.Returned {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	is := t.wrongOf(j)
	if is == nil {
		return false
	}
	ans.Invalid, ans.Reason = true, is.again(ans.Reason)
	return true
}

// stop ends all waits in enter.
func (t *trials) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped = true
	t.changed.Broadcast()
}

// tellUnsent reports for a wrong address, and for each wrong model, how many of its requests were not sent.
func (t *trials) tellUnsent() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := t.astray.unsent; n > 0 {
		t.teller.Say("%s not sent (--retry-dead=%v sends them, once %s is right)",
			text.Count(n, "request was", "requests were"), format.DeadInvalid, t.culprit)
	}
	for _, model := range slices.Sorted(maps.Keys(t.of)) {
		if n := t.of[model].unsent; n > 0 {
			t.teller.Say("model %s: %s not sent (--retry-dead=%v sends them, once there is such a model)", text.Sanitize(model),
				text.Count(n, "request was", "requests were"), format.DeadNoModel)
		}
	}
}
