package queue_test

import (
	"slices"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/queue"
	"github.com/paceline-go/paceline/limit/mono"
)

func at(seconds float64) mono.Time { return mono.Time(seconds * float64(time.Second)) }

// What is still open is skipped, and keeps its place; rounds that passed unseen are skipped whole.
func TestTurns(t *testing.T) {
	turns := queue.NewTurns(at(1), 3, 5*time.Second, 5, 10)
	for _, step := range []struct {
		at      float64
		ended   []int // right before, each with an answer
		round   int
		due     []int
		skipped int
		next    float64
	}{
		{1, nil, 11, []int{0, 1, 2}, 0, 6},
		{5.999, []int{0}, 11, nil, 0, 6},
		{6, nil, 12, []int{0}, 2, 11},
		{11.5, []int{2}, 13, []int{2}, 4, 16},
		{22, []int{2, 0, 1}, 15, []int{0, 1, 2}, 7, 0}, // round 14 began and ended unseen
		{40, []int{1}, 15, nil, 7, 0},
	} {
		for _, i := range step.ended {
			turns.Ended(at(step.at), i, true)
		}
		round, due := turns.Due(at(step.at), nil)
		next, more := turns.Next()
		if round != step.round || !slices.Equal(due, step.due) || turns.Skipped() != step.skipped ||
			more != (step.next > 0) || more && next != at(step.next) {
			t.Errorf("at %v: round %d, due %v, skipped %d, next %v %v; want %+v", step.at, round, due, turns.Skipped(), next, more, step)
		}
	}
	if n := turns.Waiting(); n != 2 {
		t.Errorf("%d waiting, want 2", n)
	}
}

// After one round of one, nobody is asked again, and no later round is skipped.
func TestOneRound(t *testing.T) {
	turns := queue.NewTurns(at(0), 2, time.Second, 1, 0)
	turns.Due(at(0), nil)
	turns.Ended(at(0.5), 0, true)
	if _, due := turns.Due(at(0), []int{7}); !slices.Equal(due, []int{7}) {
		t.Errorf("nothing is due, and to 7 it appends %v", due)
	}
	if round, due := turns.Due(at(3), nil); round != 1 || len(due) > 0 || turns.Skipped() != 0 {
		t.Errorf("round %d, due %v, skipped %d; want round 1 alone", round, due, turns.Skipped())
	}
}

// Whose turn is the longest ago goes first.
func TestOldestFirst(t *testing.T) {
	turns := queue.NewTurns(at(0), 3, time.Second, 0, 0)
	turns.Due(at(0), nil)
	for n, i := range []int{2, 0, 1} {
		turns.Ended(at(0.1*float64(n+1)), i, i != 2) // an answer or not
	}
	if _, due := turns.Due(at(1), nil); !slices.Equal(due, []int{2, 0, 1}) {
		t.Errorf("due %v", due)
	}
}

// The present ages are those of the latest answers. Overall, a look at a random time counts.
func TestAges(t *testing.T) {
	turns := queue.NewTurns(at(0), 2, time.Second, 0, 0)
	turns.Due(at(0), nil)
	turns.Ended(at(10), 0, true)
	turns.Ended(at(12), 0, true)
	turns.Ended(at(14), 0, false) // no answer: the one before gets older
	turns.Ended(at(20), 0, true)
	near := func(what string, got queue.Ages, p50, p99 float64, never int) {
		t.Helper()
		far := func(d time.Duration, want float64) bool {
			return (d - time.Duration(want*1e9)).Abs() > 60*time.Millisecond
		}
		if far(got.P50, p50) || far(got.P99, p99) || got.Never != never {
			t.Errorf("%s: %+v, want %v s, %v s, %d", what, got, p50, p99, never)
		}
	}
	near("now", turns.Now(at(25)), 5, 5, 1)
	// Of 15 s, each second of age up to 2 was there in three gaps, up to 5 in two, and up to 8 in one.
	near("overall", turns.Overall(at(25)), 2+(7.5-6)/2, 8-0.15, 1)
	near("overall again", turns.Overall(at(25)), 2+(7.5-6)/2, 8-0.15, 1)
}
