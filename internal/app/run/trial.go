package run

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/tally"
	"github.com/paceline-go/paceline/internal/app/run/telling"
	"github.com/paceline-go/paceline/internal/text"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/pool"
)

// trialPatience is how long the other requests of a model wait for the first. A server refuses a
// model or a key at once. A server that takes longer works on the answer.
const trialPatience = 3 * time.Second

// trials lets the first request of each model go alone until its answer shows that the model
// exists, and that the key may use it. A wrong name then costs one request, and not the whole file.
// Safe for concurrent use.
type trials struct {
	teller *telling.Teller

	mu      sync.Mutex
	changed *sync.Cond
	of      map[string]*trial
	stopped bool
}

type trial struct {
	state  trialState
	why    string // why the model is wrong
	unsent int    // requests that were not sent, since the model is wrong
}

type trialState uint8

const (
	untried trialState = iota
	asking             // the first request is on its way
	right
	wrong // there is no such model, or the key may not use it
)

func newTrials(teller *telling.Teller) *trials {
	t := &trials{teller: teller, of: map[string]*trial{}}
	t.changed = sync.NewCond(&t.mu)
	return t
}

// enter waits until a request of a model may go. first says that it goes alone, as the first. If
// why is not empty, it may not go. Without waits, requests that come before the first answer go beside the first.
func (t *trials) enter(model string, waits bool) (first bool, why string) {
	if model == "" {
		return false, ""
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.of[model]
	if m == nil {
		if len(t.of) >= tally.MostModels {
			return false, "" // so many names seem to be made up, and are not tried
		}
		m = &trial{}
		t.of[model] = m
	}
	for waits && m.state == asking && !t.stopped {
		t.changed.Wait()
	}
	switch m.state {
	case untried:
		m.state, first = asking, true
	case wrong:
		m.unsent++
	}
	return first, m.why
}

// refuses returns why a request that was let in does not go: an answer has shown since that its model is wrong.
// That happens if the first answer took longer than trialPatience, or where enter does not wait.
func (t *trials) refuses(model string) (why string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.of[model]
	if m == nil || m.state != wrong {
		return ""
	}
	m.unsent++
	return m.why
}

// spare makes a job a dead letter that is not sent, since its model is wrong.
func (j *job) spare(why string) {
	j.class = format.DeadNoModel
	j.reason = "not sent: " + strings.TrimSuffix(why, ".") + ", to another request of model " + j.r.Estimate.Model
}

// set ends a trial that is under way. If s is untried, another request will be the first.
func (t *trials) set(model string, s trialState, why string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.of[model]
	if m != nil && m.state == asking {
		m.state, m.why = s, why
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
	m.state, m.why = wrong, why
	t.changed.Broadcast()
	return true
}

// answered takes in an answer to a request: to the first one of its model, or one that says that there is
// no such model for the key.
func (t *trials) answered(j *job, ans *pool.Answer) {
	model := j.r.Estimate.Model
	switch {
	case !j.first && !(j.noModel && j.noQuota):
	case j.noModel:
		if t.fail(model, ans.Reason) {
			t.teller.Say("model %s: %s; its other requests are not sent", text.Sanitize(model), strings.TrimSuffix(ans.Reason, "."))
		}
	case ans.Denied, ans.Banned: // the key may be at fault and not the model; another attempt shows more
	case ans.Result == limit.Accepted, ans.Result == limit.Limited:
		t.set(model, right, "")
	}
}

// stop ends all waits in enter.
func (t *trials) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped = true
	t.changed.Broadcast()
}

// tellUnsent reports for each wrong model how many of its requests were not sent.
func (t *trials) tellUnsent() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, model := range slices.Sorted(maps.Keys(t.of)) {
		if n := t.of[model].unsent; n > 0 {
			t.teller.Say("model %s: %s not sent (--retry-dead=%v sends them, once there is such a model)", text.Sanitize(model),
				text.Count(n, "request was", "requests were"), format.DeadNoModel)
		}
	}
}
