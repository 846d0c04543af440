package paceline_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
)

// importer is the code that is to be tested: it sends under a limit.
type importer struct {
	gate *paceline.Gate
	send func(context.Context, string) error
}

func (m *importer) run(ctx context.Context, names []string) error {
	for _, name := range names {
		if err := m.gate.Do(ctx, limit.One, func() error { return m.send(ctx, name) }); err != nil {
			return err
		}
	}
	return nil
}

// testImporter is a test as you would write it, under the name TestImporter. The bubble of
// synctest.Test has its own clock, which moves on when all goroutines wait. An hour takes no time,
// and instants are exact. The Gate is made inside.
func testImporter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var sent []time.Duration
		m := importer{
			gate: paceline.NewGate(limit.MustRolling(2, time.Hour)),
			send: func(context.Context, string) error {
				sent = append(sent, time.Since(start))
				time.Sleep(100 * time.Millisecond) // the server's answer takes so long
				return nil
			},
		}
		if err := m.run(t.Context(), []string{"a", "b", "c", "d"}); err != nil {
			t.Fatal(err)
		}
		// An hour after the first was answered, and a margin for the server's clock.
		if want := time.Hour + 100*time.Millisecond; len(sent) != 4 || sent[2] < want || sent[2] > want+time.Second {
			t.Errorf("sent at %v, want the third %v after the start", sent, want)
		}

		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		before := time.Now()
		if err := m.run(ctx, []string{"e"}); !errors.Is(err, paceline.ErrDeadline) {
			t.Errorf("%v, want that it cannot go within a minute", err)
		} else if time.Since(before) != 0 {
			t.Errorf("it waited for %v, only to fail", time.Since(before))
		}
	})
}

// How to test code of your own that waits at a Gate, in virtual time: no sleeping, and no waiting for it.
func Example_synctest() {
	// go test runs testImporter, which you would call TestImporter.
}
