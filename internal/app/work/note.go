package work

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/paceline-go/paceline/backlog"
	"github.com/paceline-go/paceline/internal/app/run"
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
		if changed, err := change(&n); err != nil || !changed {
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
