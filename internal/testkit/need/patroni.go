//go:build linux

package need

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Cluster is a PostgreSQL of three nodes, of which Patroni makes one the primary. It ends with the test.
type Cluster struct {
	// URL has the addresses of all nodes, and takes the one that can be written.
	URL   string
	Nodes []*ClusterNode

	t           testing.TB
	as          *syscall.SysProcAttr
	synchronous bool
}

// ClusterNode is one PostgreSQL of a Cluster, with its Patroni.
type ClusterNode struct {
	Port int

	dir, api string
	command  func() *exec.Cmd
	patroni  *exec.Cmd
}

// ClusterConfig is for Patroni.
type ClusterConfig struct {
	// Synchronous lets a commit succeed only when a standby has it, also if there is no standby.
	Synchronous bool
	// Between returns the port by which other nodes reach the node of a port. If nil, it is the same.
	Between func(port int) int
}

// leaseFor is how long a primary that is not heard of stays the primary.
const leaseFor = 8 * time.Second

const patroniFile = `
scope: paceline
name: node%[1]d
restapi: {listen: '%[2]s', connect_address: '%[2]s'}
etcd3: {host: '%[3]s'}
bootstrap:
  dcs:
    ttl: %[4]d
    loop_wait: 1
    retry_timeout: 3
    maximum_lag_on_failover: 1000000000
    synchronous_mode: %[5]t
    synchronous_mode_strict: %[5]t
    postgresql: {use_pg_rewind: true, parameters: {wal_keep_size: 256MB}}
  initdb: [{encoding: UTF8}, {auth: trust}, {locale: C}]
  pg_hba: ['local all all trust', 'host all all 127.0.0.1/32 trust', 'host replication all 127.0.0.1/32 trust']
postgresql:
  listen: 127.0.0.1:%[6]d
  connect_address: 127.0.0.1:%[7]d
  data_dir: %[8]s/data
  bin_dir: %[9]s
  pgpass: %[8]s/pgpass
  authentication: {superuser: {username: paceline}, replication: {username: paceline}, rewind: {username: paceline}}
  remove_data_directory_on_diverged_timelines: true
  remove_data_directory_on_rewind_failure: true
  parameters: {unix_socket_directories: '%[8]s'}
watchdog: {mode: 'off'}
`

// Patroni starts a Cluster, with one etcd. It returns when there is a primary with two standbys.
func Patroni(t testing.TB, config ClusterConfig) *Cluster {
	t.Helper()
	patroni, etcd, server := Program(t, "patroni"), Program(t, "etcd"), postgresProgram(t, "postgres")
	dir, err := os.MkdirTemp("", "paceline-patroni")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if os.Getenv("KEEP") == "" {
			os.RemoveAll(dir)
		}
	})
	c := &Cluster{t: t, as: AsPostgres(t, dir), synchronous: config.Synchronous}
	if c.as == nil {
		c.as = &syscall.SysProcAttr{}
	}
	c.as.Pdeathsig = syscall.SIGKILL
	store := c.etcd(etcd, dir)
	var hosts []string
	for i := range 3 {
		n := &ClusterNode{Port: FreePort(t), dir: filepath.Join(dir, fmt.Sprint("node", i)), api: Address(t)}
		via := n.Port
		if config.Between != nil {
			via = config.Between(n.Port)
		}
		if err := os.Mkdir(n.dir, 0o700); err != nil {
			t.Fatal(err)
		}
		AsPostgres(t, n.dir)
		file := filepath.Join(n.dir, "patroni.yml")
		text := fmt.Sprintf(patroniFile, i, n.api, store, int(leaseFor.Seconds()), config.Synchronous, n.Port, via, n.dir,
			filepath.Dir(server))
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		n.command = func() *exec.Cmd { return c.process(n.dir, patroni, file) }
		c.Nodes, hosts = append(c.Nodes, n), append(hosts, fmt.Sprint("127.0.0.1:", n.Port))
	}
	c.URL = fmt.Sprintf("postgres://paceline@%s/postgres?sslmode=disable", strings.Join(hosts, ","))
	t.Cleanup(func() {
		for _, n := range c.Nodes {
			n.Kill()
		}
	})
	for _, n := range c.Nodes {
		c.Start(n)
	}
	c.Whole()
	return c
}

// etcd starts the store by which the Patronis agree, and returns its address.
func (c *Cluster) etcd(program, dir string) string {
	address, peers := Address(c.t), Address(c.t)
	cmd := c.process(dir, program, "--data-dir", filepath.Join(dir, "etcd"), "--listen-client-urls", "http://"+address,
		"--advertise-client-urls", "http://"+address, "--listen-peer-urls", "http://"+peers, "--log-level", "error")
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	c.until("etcd", func() bool {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	return address
}

// process is a program that ends when the test does, however that ends. Its output is in the folder.
func (c *Cluster) process(dir, program string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.SysProcAttr, cmd.Env = dir, c.as, append(os.Environ(), "LC_ALL=C")
	out, err := os.OpenFile(filepath.Join(dir, filepath.Base(program)+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { out.Close() })
	cmd.Stdout, cmd.Stderr = out, out
	return cmd
}

func (c *Cluster) until(what string, ready func() bool) {
	c.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !ready(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			for _, n := range c.Nodes {
				log, _ := os.ReadFile(filepath.Join(n.dir, "patroni.log"))
				c.t.Logf("%s", log[max(len(log)-2000, 0):])
			}
			c.t.Fatalf("%s is not there", what)
		}
	}
}

// Start starts a node that was killed.
func (c *Cluster) Start(n *ClusterNode) {
	c.t.Helper()
	n.patroni = n.command()
	if err := n.patroni.Start(); err != nil {
		c.t.Fatal(err)
	}
}

// Primary waits for a primary that lives, and returns it.
func (c *Cluster) Primary() (primary *ClusterNode) {
	c.t.Helper()
	c.until("a primary", func() bool {
		for _, n := range c.Nodes {
			if n.is("primary") {
				primary = n
				return true
			}
		}
		return false
	})
	return primary
}

// Whole waits for a primary with two standbys that follow it.
func (c *Cluster) Whole() {
	c.t.Helper()
	c.until("a primary with two standbys", func() bool {
		for _, n := range c.Nodes {
			if n.is("primary") && n.leadsAll(c) {
				return true
			}
		}
		return false
	})
}

// leadsAll reports whether a primary has two standbys on its timeline, less than 1 MB behind, and one of them
// synchronous if any is to be.
func (n *ClusterNode) leadsAll(c *Cluster) bool {
	var seen struct {
		Members []struct {
			Role, State string
			Timeline    int
			Lag         json.Number
		}
	}
	resp, err := patience.Get("http://" + n.api + "/cluster")
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	if json.NewDecoder(resp.Body).Decode(&seen) != nil || len(seen.Members) != len(c.Nodes) {
		return false
	}
	synchronous := !c.synchronous
	for _, m := range seen.Members {
		lag, err := m.Lag.Int64()
		isLeader := m.Role == "leader"
		synchronous = synchronous || m.Role == "sync_standby"
		if m.Timeline != seen.Members[0].Timeline || m.Timeline == 0 || !isLeader && (err != nil || lag > 1<<20) {
			return false
		}
	}
	return synchronous
}

var patience = http.Client{Timeout: time.Second}

// is asks a node's Patroni.
func (n *ClusterNode) is(what string) bool {
	resp, err := patience.Get("http://" + n.api + "/" + what)
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// Kill ends a node's PostgreSQL and its Patroni at once.
func (n *ClusterNode) Kill() {
	if n.patroni == nil {
		return
	}
	n.patroni.Process.Kill()
	n.patroni.Wait()
	n.patroni = nil
	n.KillServer()
}

// KillServer ends a node's PostgreSQL at once. Its Patroni starts it again, or makes another node the primary.
func (n *ClusterNode) KillServer() { n.signal(syscall.SIGKILL) }

// Stop stops a node's PostgreSQL and its Patroni, as a machine does that sleeps.
func (n *ClusterNode) Stop() {
	n.patroni.Process.Signal(syscall.SIGSTOP)
	n.signal(syscall.SIGSTOP)
}

// Continue ends Stop. PostgreSQL goes on first: it is a primary that does not know that it is none any more.
func (n *ClusterNode) Continue() {
	n.signal(syscall.SIGCONT)
	n.patroni.Process.Signal(syscall.SIGCONT)
}

// signal is for all processes of a PostgreSQL: the first, and its children.
func (n *ClusterNode) signal(s syscall.Signal) {
	text, err := os.ReadFile(filepath.Join(n.dir, "data", "postmaster.pid"))
	if err != nil {
		return
	}
	pid, err := strconv.Atoi(strings.SplitN(string(text), "\n", 2)[0])
	if err != nil {
		return
	}
	cwd, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid)) // the number may be another process's by now
	if err != nil || cwd != filepath.Join(n.dir, "data") {
		return
	}
	children := childrenOf(pid)
	syscall.Kill(pid, s)
	for _, child := range append(children, childrenOf(pid)...) {
		syscall.Kill(child, s)
	}
}

// childrenOf returns the numbers of a process's children.
func childrenOf(pid int) (all []int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range stats {
		text, err := os.ReadFile(file)
		_, after, _ := strings.Cut(string(text), ") ")
		if fields := strings.Fields(after); err == nil && len(fields) > 1 && fields[1] == fmt.Sprint(pid) {
			if child, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
				all = append(all, child)
			}
		}
	}
	return all
}
