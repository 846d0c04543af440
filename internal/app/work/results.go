package work

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/paceline-go/paceline/backlog"
	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/output"
)

// Results writes the results of a backlog, in the order of its input.
type Results struct {
	Backlog *backlog.Backlog
	// States are the states of which it writes results; nil: all.
	States []backlog.State
	// Shape, if not nil, makes rows of them.
	Shape *output.Shape
	// Format, if not nil, is the form in which they are written, in place of that of run's own lines.
	Format format.Results
	// Out gets them, and Dead the dead ones. If Dead is nil, Out gets all.
	Out, Dead io.Writer
	// Failed is called with the first error of an expression of the Shape.
	Failed func(id string, err error)

	failed int
}

// Write writes them all, and returns how many results there were. Results that come meanwhile are there if
// their places were not passed yet.
func (r *Results) Write(ctx context.Context) (n int, err error) {
	if r.Shape != nil {
		if _, err := r.Out.Write(r.Shape.Head()); err != nil {
			return 0, err
		}
	}
	for one, err := range r.Backlog.Results(ctx, 0) {
		if err != nil {
			return n, err
		}
		if r.States != nil && !slices.Contains(r.States, one.State) {
			continue
		}
		n++
		to, result := r.Out, resultOf(&one)
		line := result.line
		if line == nil {
			line = result.Append(nil)
		}
		isDead := one.State == backlog.Dead && r.Dead != nil
		if isDead {
			to = r.Dead
		}
		switch {
		case r.Shape != nil && !isDead:
			if line, _, err = r.Shape.Row(nil, answer(line)); err != nil {
				if r.failed++; r.failed == 1 && r.Failed != nil {
					r.Failed(one.ID, err)
				}
			}
		case r.Format != nil:
			line = r.Format.Line(nil, &result.Result)
		}
		if _, err := to.Write(line); err != nil {
			return n, err
		}
	}
	return n, nil
}

// stated is a result as run states it, and its line if nothing was filled in.
type stated struct {
	format.Result
	line []byte
}

// resultOf reads a result. What the backlog alone knows is filled in: that a request may have been sent twice, and
// that it was cancelled.
func resultOf(r *backlog.Result) (s stated) {
	if json.Unmarshal(r.Line, &s.Result) != nil || s.ID != r.ID {
		s.Result = format.Result{ID: r.ID, State: r.State.String(), Attempts: r.Attempts, At: format.Stamp(r.At), Class: r.Class}
		if len(r.Line) > 0 {
			s.Error = "its result is not of paceline run"
		}
		s.PossibleRepeat = r.Repeat
		return s
	}
	if s.PossibleRepeat || !r.Repeat {
		s.line = append(bytes.Clone(r.Line), '\n')
	}
	s.PossibleRepeat = s.PossibleRepeat || r.Repeat
	return s
}

// answer is what an expression reads of a result: the fields of its line, with the body as JSON if it is JSON.
func answer(line []byte) any {
	v, ok := format.Parsed(line).(map[string]any)
	if !ok {
		return map[string]any{}
	}
	for name, missing := range map[string]any{"possible_repeat": false, "body_cut": false, "headers": map[string]any{}, "body": nil} {
		if v[name] == nil {
			v[name] = missing
		}
	}
	if body, ok := v["body"].(string); ok {
		v["body"] = format.Parsed([]byte(body))
	}
	return v
}

// States are the states of results by their names.
func States(names []string) (all []backlog.State, err error) {
	for _, name := range names {
		s := backlog.Done
		for s.String() != name {
			if s++; s > backlog.Cancelled {
				return nil, fmt.Errorf("%q, expected done, dead, expired or cancelled", name)
			}
		}
		all = append(all, s)
	}
	return all, nil
}
