package backlog_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/need"
)

// Six processes share 200 a second and one backlog, both in a PostgreSQL of three nodes. Its primary is killed, crashes
// or is stopped, again and again.
func TestFailover(t *testing.T) {
	need.LongOnly(t, "a failover takes 20 s")
	// A standby has all that was committed: nothing is lost or unnamed, although a worker dies with each primary.
	t.Run("synchronous", func(t *testing.T) {
		s := newFailovers(t, need.ClusterConfig{Synchronous: true})
		for i := range s.faults() {
			s.killAny()
			s.failover(i)
		}
		s.check(s.done * 80)
	})
	// The same through a PgBouncer in transaction mode before each node. It keeps the place of a client that has gone for as
	// long as that client's query waits. Version 1.18 may end by itself then, so all of them are started again.
	t.Run("synchronous, pooled", func(t *testing.T) {
		var poolers []*need.Service
		s := newFailoversBy(t, need.ClusterConfig{Synchronous: true}, func(t *testing.T, c *need.Cluster) string {
			url := c.URL
			for _, n := range c.Nodes {
				pooler := need.PgBouncer(t, &need.Service{Port: n.Port}, "query_wait_timeout = 5", "server_login_retry = 1")
				url = strings.Replace(url, fmt.Sprint(":", n.Port), fmt.Sprint(":", pooler.Port), 1)
				poolers = append(poolers, pooler)
			}
			return url
		})
		for i := range s.faults() {
			s.killAny()
			s.failover(i)
			for _, p := range poolers {
				p.Crash()
				p.Start()
			}
		}
		s.check(s.done * 80)
	})
	// The standbys are a second behind. The workers that live name what they sent in that second.
	t.Run("asynchronous", func(t *testing.T) {
		s := newFailovers(t, need.ClusterConfig{})
		for i := range s.faults() {
			s.behind(true)
			time.Sleep(time.Second)
			s.failover(i)
		}
		s.check(s.done * 500)
	})
	// A worker dies with each primary. What it sent in the last second before that is all that may be unnamed.
	t.Run("asynchronous, with workers", func(t *testing.T) {
		s := newFailovers(t, need.ClusterConfig{})
		s.mayBeUnnamed = func(senders []int) bool {
			return slices.ContainsFunc(senders, func(pid int) bool { return slices.Contains(s.dead, pid) })
		}
		for i := range s.faults() {
			s.behind(true)
			time.Sleep(time.Second)
			s.killAny()
			s.failover(i)
		}
		s.check(s.done * 500)
	})
}

// failovers is a storm whose database fails over.
type failovers struct {
	*storm
	cluster *need.Cluster
	lines   map[int]*line // to each node, from the other nodes
	dead    []int         // workers that were killed
	done    int
}

func newFailovers(t *testing.T, config need.ClusterConfig) *failovers {
	return newFailoversBy(t, config, func(_ *testing.T, c *need.Cluster) string { return c.URL })
}

// newFailoversBy has the workers reach the cluster by an address.
func newFailoversBy(t *testing.T, config need.ClusterConfig, address func(*testing.T, *need.Cluster) string) *failovers {
	f := &failovers{lines: map[int]*line{}}
	if !config.Synchronous {
		config.Between = func(port int) int {
			f.lines[port] = newLine(t, port)
			return f.lines[port].port()
		}
	}
	f.cluster = need.Patroni(t, config)
	url := address(t, f.cluster)
	f.storm = newStorm(t, storm{each: 200, jobs: 14_000, address: url, share: url})
	f.start(6)
	return f
}

// faults are six, or fewer if the requests come to an end before.
func (f *failovers) faults() func(yield func(int) bool) {
	return func(yield func(int) bool) {
		for f.until(1000); f.done < 6 && f.server.arrived() < f.jobs-2000; f.done++ {
			if !yield(f.done) {
				return
			}
		}
		if f.done < 3 {
			f.Errorf("only %d faults", f.done)
		}
	}
}

func (f *failovers) killAny() { f.dead = append(f.dead, f.kill(rand.IntN(len(f.all))).Process.Pid) }

// behind lets nothing of the primary reach the standbys.
func (f *failovers) behind(cut bool) {
	if l := f.lines[f.cluster.Primary().Port]; l != nil {
		l.set(cut)
	}
}

// failover does a fault of one of three kinds to the primary, and returns when all nodes are there again.
func (f *failovers) failover(kind int) {
	f.Helper()
	was, began, before := f.cluster.Primary(), time.Now(), f.server.arrived()
	what, mends := "killed", func() { f.cluster.Start(was) }
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
	now := f.cluster.Primary()
	answers := time.Since(began)
	f.start(6 - len(f.all))
	f.until(before + 300)
	f.Logf("a primary was %s; there is one after %v, another: %t; 300 requests later after %v", what, answers, now != was,
		time.Since(began))
	mends()
	for _, l := range f.lines {
		l.set(false)
	}
	f.cluster.Whole()
}
