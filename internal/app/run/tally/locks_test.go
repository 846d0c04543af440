package tally

import (
	"testing"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/limit"
)

// Each method leaves the lock free, or the run stands still at the next one.
func TestMethodsUnlock(t *testing.T) {
	n := New(0, NewFigures([]format.Key{{Name: "A"}}, nil, 0, false))
	race.Unlocks(t, n, &n.Mu)
}

// Requests that are asked again and again are counted by the turn: nothing of the input is left to be sent.
func TestPolls(t *testing.T) {
	n := New(0, NewFigures([]format.Key{{Name: "A"}}, nil, 0, false))
	n.Checked, n.Totals.Input, n.Resources = true, 7, map[string]limit.Cost{"search": limit.One}
	n.Uses[0].Remaining = limit.Cost{limit.Requests: 7}
	n.Polls()
	if n.Checked || n.Totals.Input != 0 || n.Resources != nil || n.Uses[0].Remaining != (limit.Cost{}) {
		t.Errorf("after Polls: %+v, of which %v remain, %v", n.Totals, n.Uses[0].Remaining, n.Resources)
	}
	for range 2 {
		n.Turn(0, &format.Request{Cost: limit.One})
	}
	if n.Totals.Input != 2 || n.Uses[0].Remaining != (limit.Cost{limit.Requests: 2}) {
		t.Errorf("after two turns: %+v, of which %v remain", n.Totals, n.Uses[0].Remaining)
	}
}

// A run that begins again counts as skipped what ended before and is in the input. What only the files of
// earlier runs have is no part of it, and neither is what is sent again.
func TestSkipped(t *testing.T) {
	n := New(1<<format.DeadRefused, NewFigures([]format.Key{{Name: "A"}}, nil, 0, false))
	n.resumes = true
	for id, s := range map[string]standing{
		"done": standing(inOut).at(1), "gone": inOut, "expired": standing(inExpired).at(2), "new": standing(0).at(3),
		"dead": standing(0).dead(format.DeadLength).at(4), "dead and gone": standing(0).dead(format.DeadLength),
		"again": standing(0).dead(format.DeadRefused).at(5),
	} {
		n.ledger[format.HashOf(id)] = s
	}
	n.Skipped()
	if got := n.Totals; got.SkippedDone != 1 || got.SkippedExpired != 1 || got.SkippedDead != 1 || n.Bad.Dead[format.DeadLength] != 1 {
		t.Errorf("skipped %+v, dead %v", got, n.Bad.Dead)
	}
	// The same, counted as they are read. What ended before no longer remains.
	n.Totals, n.Uses[0].Remaining = Totals{}, limit.Cost{limit.Requests: 5}
	for id, want := range map[string]bool{"done": false, "expired": false, "new": true, "dead": false, "again": true} {
		if sends := n.Read(&format.Request{ID: id, Hash: format.HashOf(id), Cost: limit.One}); sends != want {
			t.Errorf("%s is sent: %v, want %v", id, sends, want)
		}
	}
	if got, left := n.Totals, n.Uses[0].Remaining[limit.Requests]; got.Input != 5 || got.SkippedDone != 1 || got.SkippedExpired != 1 || got.SkippedDead != 1 || left != 2 {
		t.Errorf("when all were read: %+v, %d remain", got, left)
	}
}
