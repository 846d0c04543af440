package run

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/dead"
	"github.com/paceline-go/paceline/internal/app/run/tally"
	"github.com/paceline-go/paceline/internal/text/sanitize"
)

// trialPatience is how long the other requests of a model wait for the first. A server refuses a
// model or a key at once. A server that takes longer works on the answer.
const trialPatience = 3 * time.Second

// trials lets the first request of each model go alone until its answer shows that the model
// exists, and that the key may use it. A wrong name then costs one request, and not the whole file.
// Safe for concurrent use.
type trials struct {
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

func newTrials() *trials {
	t := &trials{of: map[string]*trial{}}
	t.changed = sync.NewCond(&t.mu)
	return t
}

// enter waits until a request of a model may go. first says that it goes alone, as the first. If
// why is not empty, it may not go.
func (t *trials) enter(model string) (first bool, why string) {
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
	for m.state == asking && !t.stopped {
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

// set ends a trial that is under way. If s is untried, another request will be the first. It
// returns false if no trial is under way.
func (t *trials) set(model string, s trialState, why string) (changed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.of[model]
	if m == nil || m.state != asking {
		return false
	}
	m.state, m.why = s, why
	t.changed.Broadcast()
	return true
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

// stop ends all waits in enter.
func (t *trials) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped = true
	t.changed.Broadcast()
}

// tellUnsent reports for each wrong model how many of its requests were not sent.
func (r *Run) tellUnsent() {
	r.trials.mu.Lock()
	defer r.trials.mu.Unlock()
	for _, model := range slices.Sorted(maps.Keys(r.trials.of)) {
		if n := r.trials.of[model].unsent; n > 0 {
			r.Say("model %s: %s not sent (--retry-dead=%v sends them, once there is such a model)", sanitize.Text(model),
				sanitize.Count(n, "request was", "requests were"), dead.NoModel)
		}
	}
}
