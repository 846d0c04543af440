package batch

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/paceline-go/paceline/dispatch"
	"github.com/paceline-go/paceline/internal/shown"
	"github.com/paceline-go/paceline/limit"
)

// trialPatience is how long the others of a model wait for its first: who refuses a model or a key does so at once, and a long thought is
// none of that.
const trialPatience = 3 * time.Second

// trials has the first request of each model go alone until its answer shows that there is such a model, and that the key may use it: a
// name that is wrong then costs one request and not the file. Safe for concurrent use.
type trials struct {
	mu      sync.Mutex
	changed *sync.Cond
	of      map[string]*trial
	stopped bool
}

type trial struct {
	state  trialState
	why    string // wrong
	unsent int    // likewise
}

type trialState uint8

const (
	untried trialState = iota
	asking             // one has gone
	right
	wrong // there is no such model
)

func newTrials() *trials {
	t := &trials{of: map[string]*trial{}}
	t.changed = sync.NewCond(&t.mu)
	return t
}

// enter waits until a request of a model may go: as the first, or after it. why: it may not.
func (t *trials) enter(model string) (first bool, why string) {
	if model == "" {
		return false, ""
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.of[model]
	if m == nil {
		if len(t.of) >= mostModels {
			return false, "" // somebody made them up
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

// set ends a trial that goes on, or has another request be the first.
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

// stop has nobody wait any more.
func (t *trials) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped = true
	t.changed.Broadcast()
}

// heard takes in the answer to a model's first request.
func (r *Run) heard(j *job, ans *dispatch.Answer) {
	model := j.r.Estimate.Model
	switch {
	case !j.first:
	case j.noModel:
		if r.trials.set(model, wrong, ans.Reason) {
			r.tell("model %s: %s; its other requests are not sent", shown.Text(model), strings.TrimSuffix(ans.Reason, "."))
		}
	case ans.Denied, ans.Banned: // the key's, or that of both: another may tell
	case ans.Result == limit.Accepted, ans.Result == limit.Limited && !ans.Invalid:
		r.trials.set(model, right, "")
	}
}

// tellUnsent tells what was not sent at all.
func (r *Run) tellUnsent() {
	r.trials.mu.Lock()
	defer r.trials.mu.Unlock()
	for _, model := range slices.Sorted(maps.Keys(r.trials.of)) {
		if n := r.trials.of[model].unsent; n > 0 {
			r.tell("model %s: %s not sent (--retry-dead=%v sends them, once there is such a model)", shown.Text(model), shown.Count(n, "request was", "requests were"), noModel)
		}
	}
}

// saysNoModel tells whether an error is that there is no such model, or none that the key may use: in a code that several providers share,
// or in words.
func saysNoModel(status int, body []byte) bool {
	switch status {
	case http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound, http.StatusUnprocessableEntity:
	default:
		return false
	}
	var v struct {
		Error json.RawMessage `json:"error"`
		problem
	}
	if json.Unmarshal(body, &v) != nil {
		return false
	}
	p := v.problem
	if len(v.Error) > 0 && json.Unmarshal(v.Error, &p) != nil {
		_ = json.Unmarshal(v.Error, &p.Message) // a text
	}
	if slices.Contains(noModelCodes, p.Type) || slices.Contains(noModelCodes, strings.Trim(string(p.Code), `"`)) {
		return true
	}
	text := strings.ToLower(strings.Join(strings.Fields(p.Message), " "))
	if status == http.StatusNotFound && strings.Contains(text, "model") {
		return true
	}
	return slices.ContainsFunc(noModelWords, func(w string) bool { return strings.Contains(text, w) })
}

type problem struct {
	Code    json.RawMessage `json:"code"` // some have numbers
	Type    string          `json:"type"`
	Message string          `json:"message"`
}

var (
	noModelCodes = []string{"model_not_found", "invalid_model", "model_not_available", "model_not_supported", "DeploymentNotFound"}
	noModelWords = []string{"invalid model", "model not exist", "model not found", "not a valid model", "unknown model", "model does not exist"}
)
