package tally

import "github.com/paceline-go/paceline/internal/app/run/sending"

// ModelTotals are the totals of a run for one model.
type ModelTotals struct {
	Model        string   `json:"model"`
	Done         int      `json:"done"`
	InputTokens  int64    `json:"input_tokens"`  // as reported in the answers
	OutputTokens int64    `json:"output_tokens"` // likewise
	USD          *float64 `json:"usd,omitempty"` // of all attempts (unanswered: the most); nil: no price is known

	Spent sending.Money `json:"-"`
}

// model returns the totals of a model, and makes them if there are none. The caller holds t.mu.
func (t *Tally) model(name string) *ModelTotals {
	if t.Models[name] == nil && len(t.Models) >= MostModels {
		name = OtherModels
	}
	m := t.Models[name]
	if m == nil {
		if t.Models == nil {
			t.Models = map[string]*ModelTotals{}
		}
		m = &ModelTotals{Model: name}
		t.Models[name] = m
	}
	return m
}

// Spend adds the cost of an attempt to the totals of its model.
func (t *Tally) Spend(model string, n sending.Money) {
	if n == 0 || model == "" {
		return
	}
	t.Mu.Lock()
	defer t.Mu.Unlock()
	t.model(model).Spent += n
}

// mostModels bounds the memory, since names of models may be made up. Further models are counted
// together as otherModels.
const (
	MostModels  = 100
	OtherModels = "others"
)
