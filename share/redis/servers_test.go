package redis_test

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/need"
)

// redisCluster starts three Redis servers that are a cluster, and returns when all of them know it.
func redisCluster(t testing.TB) []*need.Service {
	t.Helper()
	const slots = 16384
	var all []*need.Service
	bus := 0 // of the first
	for i := range 3 {
		port := need.FreePort(t)
		s := need.RedisWith(t, "--cluster-enabled", "yes", "--cluster-port", fmt.Sprint(port), "--cluster-node-timeout", "2000")
		all, bus = append(all, s), cmp.Or(bus, port)
		if answer := s.Ask(fmt.Sprintf("CLUSTER ADDSLOTSRANGE %d %d", i*slots/3,
			(i+1)*slots/3-1)); !strings.HasPrefix(answer, "+OK") {
			t.Fatalf("CLUSTER ADDSLOTSRANGE: %s", answer)
		}
		if answer := s.Ask(fmt.Sprintf("CLUSTER MEET 127.0.0.1 %d %d", all[0].Port, bus)); !strings.HasPrefix(answer, "+OK") {
			t.Fatalf("CLUSTER MEET: %s", answer)
		}
	}
	for _, s := range all {
		s.Until(func() bool {
			answer := s.Ask("CLUSTER INFO")
			return strings.Contains(answer, "cluster_state:ok") && strings.Contains(answer, "cluster_known_nodes:3")
		})
	}
	return all
}

// sentinel starts a Redis Sentinel that watches a Redis under the name of master.
func sentinel(t testing.TB, master string, of *need.Service) *need.Service {
	t.Helper()
	file := filepath.Join(t.TempDir(), "sentinel.conf")
	text := fmt.Sprintf("sentinel monitor %s 127.0.0.1 %d 1\nsentinel down-after-milliseconds %s 500\nsentinel "+
		"failover-timeout %s 1000\n", master, of.Port, master, master)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	port, folder, program := need.FreePort(t), t.TempDir(), need.Program(t, "redis-server")
	s := &need.Service{URL: fmt.Sprintf("redis://127.0.0.1:%d", port), Port: port}
	s.Command = func() *exec.Cmd {
		return exec.Command(program, file, "--sentinel", "--bind", "127.0.0.1", "--port", fmt.Sprint(port), "--dir", folder)
	}
	s.Ready = func() bool { return strings.HasPrefix(s.Ask("PING"), "+PONG") }
	return s.Begin(t)
}

// knows waits until a Sentinel knows a replica of the master that can take over.
func knows(s *need.Service, master string, replica *need.Service) bool {
	for range 600 {
		if answer := s.Ask("SENTINEL REPLICAS " + master); strings.Contains(answer, fmt.Sprint(replica.Port)) &&
			strings.Contains(answer, "master-link-status\r\n$2\r\nok") {
			return true
		}
		time.Sleep(50 * time.Millisecond)
	}
	return false
}
