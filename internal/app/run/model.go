package run

import (
	"cmp"
	"slices"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/provider"
)

// ModelTotals are the totals of a run for one model.
type ModelTotals struct {
	Model        string   `json:"model"`
	Done         int      `json:"done"`
	InputTokens  int64    `json:"input_tokens"`  // as reported in the answers
	OutputTokens int64    `json:"output_tokens"` // likewise
	USD          *float64 `json:"usd,omitempty"` // of all attempts (unanswered: the most); nil: no price is known

	spent money
}

// model returns the totals of a model, and makes them if there are none. The caller holds t.mu.
func (t *tally) model(name string) *ModelTotals {
	if t.models[name] == nil && len(t.models) >= mostModels {
		name = otherModels
	}
	m := t.models[name]
	if m == nil {
		if t.models == nil {
			t.models = map[string]*ModelTotals{}
		}
		m = &ModelTotals{Model: name}
		t.models[name] = m
	}
	return m
}

// spend adds the cost of an attempt to the totals of its model.
func (t *tally) spend(model string, n money) {
	if n == 0 || model == "" {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.model(model).spent += n
}

// modelTotals puts the totals of each model into t.
func (r *Run) modelTotals(t *Totals) {
	l, ok := r.c.Format.(*format.LLM)
	if !ok {
		return
	}
	published := false
	for name, m := range r.tally.models {
		if _, _, known := r.pricesOf(name); known {
			usd := float64(m.spent) / float64(dollar)
			m.USD = &usd
			published = !r.c.Prices.given()
		}
		t.Models = append(t.Models, *m)
	}
	if published {
		row, _ := provider.LookupProvider(l.Seller())
		t.PricesAsOf = row.ModelsAsOf
	}
	slices.SortFunc(t.Models, func(a, b ModelTotals) int {
		return cmp.Or(cmp.Compare(b.Done, a.Done), cmp.Compare(a.Model, b.Model))
	})
}
