package tally

import (
	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/core/queue"
	"github.com/paceline-go/paceline/limit"
)

// AgesMS are the ages of the latest answers of requests that are asked again and again, in milliseconds.
type AgesMS struct {
	P50   float64 `json:"p50"`
	P99   float64 `json:"p99"`
	Never int     `json:"never_answered,omitempty"` // requests without an answer
}

// AgesOf returns ages for the totals.
func AgesOf(a queue.Ages) *AgesMS {
	return &AgesMS{format.Milliseconds(a.P50), format.Milliseconds(a.P99), a.Never}
}

// Polls makes the tally count turns in place of the requests of the input. Nobody knows how many there will be.
func (t *Tally) Polls() {
	t.Mu.Lock()
	defer t.Mu.Unlock()
	t.Checked, t.Totals.Input, t.Resources = false, 0, nil
	for i := range t.Uses {
		t.Uses[i].Remaining = limit.Cost{}
	}
}

// Turn counts a turn that is about to be asked.
func (t *Tally) Turn(group int, q *format.Request) {
	t.Mu.Lock()
	defer t.Mu.Unlock()
	t.Totals.Input++
	t.remains(group, q, 1)
}
