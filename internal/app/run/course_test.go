package run

import (
	"testing"
	"testing/synctest"
)

// A reader that has read enough ahead waits until there is room for several requests. A short queue has room for
// one. A stop ends the wait.
func TestReadsSeveralAtOnce(t *testing.T) {
	for _, c := range []struct{ queue, inFlight, fills, wakesAt int }{{160, 4, 164, 154}, {16, 1, 17, 16}, {15, 1, 1000, 1000}} {
		synctest.Test(t, func(t *testing.T) {
			course := newCourse(func() {})
			course.ahead(c.queue, c.inFlight)
			taken := 0
			go func() {
				for taken < 1000 && course.take(1) {
					taken++
				}
			}()
			synctest.Wait()
			if taken != c.fills {
				t.Fatalf("a queue of %d: %d are taken, want %d", c.queue, taken, c.fills)
			}
			for held := taken; c.fills < 1000 && held > c.wakesAt; held-- {
				if taken != c.fills {
					t.Fatalf("a queue of %d: it goes on at %d held, want %d", c.queue, held, c.wakesAt)
				}
				course.free(1, 1)
				synctest.Wait()
			}
			if again := c.fills + c.fills - c.wakesAt; c.fills < 1000 && taken != again {
				t.Errorf("a queue of %d: then %d are taken, want %d", c.queue, taken, again)
			}
			course.stop()
		})
	}
}
