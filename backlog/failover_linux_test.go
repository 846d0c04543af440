package backlog_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/need"
)

// Six processes share 200 a second and one backlog, both in a PostgreSQL of three nodes. Its primary is killed, crashes
// or is stopped, again and again, and a worker dies with it.
func TestFailover(t *testing.T) {
	need.LongOnly(t, "a failover takes 10 s")
	t.Run("synchronous", func(t *testing.T) {
		c := need.Patroni(t, need.ClusterConfig{Synchronous: true})
		s := newStorm(t, storm{each: 200, jobs: 12_000, address: c.URL, share: c.URL})
		s.start(6)
		const faults = 6
		for i := range faults {
			s.until(1000 + i*9000/faults)
			s.kill(rand.IntN(len(s.all)))
			s.failover(c, i)
		}
		s.check(faults * 80)
	})
}

// failover does a fault of one of three kinds to the primary, and returns when all nodes are there again.
func (s *storm) failover(c *need.Cluster, kind int) {
	s.Helper()
	was, began, before := c.Primary(), time.Now(), s.server.arrived()
	what, mends := "killed", func() { c.Start(was) }
	switch kind % 3 {
	case 0:
		was.Kill()
	case 1: // it is started again, or another takes over
		what, mends = "crashed", func() {}
		was.KillServer()
	case 2:
		what, mends = "stopped", was.Continue
		was.Stop()
	}
	time.Sleep(time.Second)
	now := c.Primary()
	answers := time.Since(began)
	s.start(1)
	s.until(before + 300)
	s.Logf("a primary was %s; there is one after %v, another: %t; 300 requests later after %v", what, answers, now != was,
		time.Since(began))
	mends()
	c.Whole()
}
