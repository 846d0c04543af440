package paceline_test

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/queue"
)

// Of requests that wait any number may expire at once. All are told, in order, and to move on in the list of them takes no time: it is
// done under the lock.
func TestMoveOnInTheUntold(t *testing.T) {
	const many = 200_000
	all := make([]queue.Ended, many)
	for i := range all {
		all[i].Attempts = i + 1
	}
	begin := time.Now()
	for want := 1; len(all) > 0; {
		n := min(64, len(all))
		if all[0].Attempts != want || all[n-1].Attempts != want+n-1 {
			t.Fatalf("%d to %d, want from %d on", all[0].Attempts, all[n-1].Attempts, want)
		}
		want += n
		before := all[:n]
		if all = paceline.Without(all, n); len(all) > n && before[0].Attempts != 0 {
			t.Fatal("what was told is held on to")
		}
	}
	if took := time.Since(begin); took > time.Second {
		t.Errorf("it took %v", took)
	}
}

// The room of what was told is used again.
func TestRoomOfTheUntold(t *testing.T) {
	all := make([]queue.Ended, 100, 128)
	if n := testing.AllocsPerRun(100, func() { all = append(paceline.Without(all, 64), make([]queue.Ended, 64)...) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if rest := paceline.Without(append(all[:0], queue.Ended{Attempts: 1}), 1); len(rest) != 0 || rest[:1][0].Attempts != 0 {
		t.Error("what was told is held on to")
	}
}
