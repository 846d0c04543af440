package work

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"github.com/paceline-go/paceline/backlog"
	"github.com/paceline-go/paceline/internal/app/run"
	"github.com/paceline-go/paceline/internal/app/run/sending"
)

// Note is what a backlog keeps beside its requests, the same for all processes.
type Note struct {
	// Limits says in words how the workers divide their limits: Config.Division of package run.
	Limits string `json:"limits,omitempty"`
	// API is the address of the first prompt. It names the provider, and says that tokens are counted. If empty,
	// there was no prompt.
	API string `json:"api,omitempty"`
	// Models have a lane each: Models[i] has lane i+1. Lane 0 has the requests to others, and those to no model.
	Models []string `json:"models,omitempty"`
	// Budget is the money that all processes may spend together; nil: there is no bound.
	Budget *Budget `json:"budget,omitempty"`
}

// Budget is a budget that processes share. Each takes parts of it, and gives back at its end what it did not spend.
// What a process had that was killed counts as spent.
type Budget struct {
	Most  sending.Money `json:"most"`
	Taken sending.Money `json:"taken"`
}

// parts says how small the parts are that a process takes: one of so many of what is left.
const parts = 32

// take takes least or more; 0: that is not left.
func (b *Budget) take(least sending.Money) sending.Money {
	left := b.Most - b.Taken
	if least > left {
		return 0
	}
	part := max(least, left/parts)
	b.Taken += part
	return part
}

// GiveBack gives back what a process took of a backlog's budget and did not spend.
func GiveBack(ctx context.Context, b *backlog.Backlog, rest sending.Money) error {
	if rest == 0 {
		return nil
	}
	return ChangeNote(ctx, b, func(n *Note) (changed bool, err error) {
		if n.Budget != nil {
			n.Budget.Taken -= min(rest, n.Budget.Taken)
		}
		return n.Budget != nil, nil
	})
}

// Lane returns the lane of the requests to a model.
func (n *Note) Lane(model string) int32 { return int32(slices.Index(n.Models, model) + 1) }

// takes gives a model a lane, if there is one for it. It reports whether that is news.
func (n *Note) takes(model string) bool {
	if model == "" || len(model) > run.LongestModel || len(n.Models) >= run.MostModels || slices.Contains(n.Models, model) {
		return false
	}
	n.Models = append(n.Models, model)
	return true
}

// noteOf reads a note. One that is no JSON has the Limits alone.
func noteOf(raw []byte) (n Note) {
	if json.Unmarshal(raw, &n) != nil {
		return Note{Limits: string(raw)}
	}
	return n
}

// ReadNote reads the note of a backlog.
func ReadNote(ctx context.Context, b *backlog.Backlog) (Note, error) {
	info, err := b.Info(ctx)
	return noteOf(info.Note), err
}

// ChangeNote puts what change makes of the note in its place, unless change returns false. It calls change again
// if another process was quicker.
func ChangeNote(ctx context.Context, b *backlog.Backlog, change func(*Note) (changed bool, err error)) error {
	for {
		info, err := b.Info(ctx)
		if err != nil {
			return err
		}
		n := noteOf(info.Note)
		changed, err := change(&n)
		if err != nil { // it may be about a note that another process has just changed
			if latest, ierr := b.Info(ctx); ierr == nil && !bytes.Equal(latest.Note, info.Note) {
				continue
			}
		}
		if err != nil || !changed {
			return err
		}
		text, err := json.Marshal(n)
		if err != nil {
			return err
		}
		if done, err := b.SetNote(ctx, info.Note, text); done || err != nil {
			return err
		}
	}
}
