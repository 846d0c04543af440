//go:build unix

package need

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Service is a database of a test's own, on a port and in a folder of its own, that ends with the test.
type Service struct {
	URL  string
	Port int
	// Folder is the folder of a PostgreSQL's socket.
	Folder string

	t     testing.TB
	run   func(name string, args ...string) *exec.Cmd
	args  []string
	crash os.Signal
	ready func() bool
	cmd   *exec.Cmd
}

// Redis starts a Redis without a disk, with env beside the environment.
func Redis(t testing.TB, env ...string) *Service {
	t.Helper()
	return redis(t, env)
}

// RedisWith starts a Redis without a disk, with arguments of its command line.
func RedisWith(t testing.TB, args ...string) *Service {
	t.Helper()
	return redis(t, nil, args...)
}

func redis(t testing.TB, env []string, args ...string) *Service {
	t.Helper()
	port := FreePort(t)
	s := &Service{URL: fmt.Sprintf("redis://127.0.0.1:%d", port), t: t, crash: os.Kill}
	s.args = []string{Program(t, "redis-server"), "--bind", "127.0.0.1", "--port", fmt.Sprint(port), "--save", "",
		"--appendonly", "no", "--dir", t.TempDir()}
	s.args = append(s.args, args...)
	s.Port = port
	s.run = func(name string, args ...string) *exec.Cmd {
		c := exec.Command(name, args...)
		c.Env = append(os.Environ(), env...)
		return c
	}
	s.ready = func() bool {
		answer := s.ask("PING")
		return strings.HasPrefix(answer, "+PONG") || strings.HasPrefix(answer, "-NOAUTH")
	}
	t.Cleanup(s.Crash)
	s.Start()
	return s
}

// ask sends a Redis a command, and returns the beginning of its answer, or nothing.
func (s *Service) ask(command string) string {
	c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", s.Port))
	if err != nil {
		return ""
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Second))
	answer := make([]byte, 4096)
	if _, err := c.Write([]byte(command + "\r\n")); err != nil {
		return ""
	}
	n, _ := c.Read(answer)
	return string(answer[:n])
}

// RedisCluster starts three Redis servers that are a cluster, and returns when all of them know it.
func RedisCluster(t testing.TB) []*Service {
	t.Helper()
	const slots = 16384
	var all []*Service
	for i := range 3 {
		s := RedisWith(t, "--cluster-enabled", "yes", "--cluster-port", fmt.Sprint(FreePort(t)), "--cluster-node-timeout",
			"2000")
		all = append(all, s)
		if answer := s.ask(fmt.Sprintf("CLUSTER ADDSLOTSRANGE %d %d", i*slots/3,
			(i+1)*slots/3-1)); !strings.HasPrefix(answer, "+OK") {
			t.Fatalf("CLUSTER ADDSLOTSRANGE: %s", answer)
		}
		if answer := s.ask(fmt.Sprintf("CLUSTER MEET 127.0.0.1 %d %s", all[0].Port,
			all[0].args[slices.Index(all[0].args, "--cluster-port")+1])); !strings.HasPrefix(answer, "+OK") {
			t.Fatalf("CLUSTER MEET: %s", answer)
		}
	}
	for _, s := range all {
		s.until(func() bool {
			answer := s.ask("CLUSTER INFO")
			return strings.Contains(answer, "cluster_state:ok") && strings.Contains(answer, "cluster_known_nodes:3")
		})
	}
	return all
}

// Sentinel starts a Redis Sentinel that watches a Redis under the name of master.
func Sentinel(t testing.TB, master string, of *Service) *Service {
	t.Helper()
	file := filepath.Join(t.TempDir(), "sentinel.conf")
	text := fmt.Sprintf("sentinel monitor %s 127.0.0.1 %d 1\nsentinel down-after-milliseconds %s 500\nsentinel "+
		"failover-timeout %s 1000\n", master, of.Port, master, master)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	port := FreePort(t)
	s := &Service{URL: fmt.Sprintf("redis://127.0.0.1:%d", port), Port: port, t: t, crash: os.Kill, run: exec.Command}
	s.args = []string{Program(t, "redis-server"), file, "--sentinel", "--bind", "127.0.0.1", "--port", fmt.Sprint(port),
		"--dir", t.TempDir()}
	s.ready = func() bool { return strings.HasPrefix(s.ask("PING"), "+PONG") }
	t.Cleanup(s.Crash)
	s.Start()
	return s
}

// Knows waits until a Sentinel knows a replica of the master that can take over.
func (s *Service) Knows(master string, replica *Service) bool {
	for range 600 {
		if answer := s.ask("SENTINEL REPLICAS " + master); strings.Contains(answer, fmt.Sprint(replica.Port)) &&
			strings.Contains(answer, "master-link-status\r\n$2\r\nok") {
			return true
		}
		time.Sleep(50 * time.Millisecond)
	}
	return false
}

// PgBouncer starts a PgBouncer before a PostgreSQL, in transaction mode, with nothing else configured.
func PgBouncer(t testing.TB, of *Service) *Service {
	t.Helper()
	program := Program(t, "pgbouncer")
	dir, err := os.MkdirTemp("", "paceline-pgbouncer")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	as := asPostgres(t, dir)
	port := FreePort(t)
	file, users := filepath.Join(dir, "pgbouncer.ini"), filepath.Join(dir, "users.txt")
	text := fmt.Sprintf("[databases]\n* = host=127.0.0.1 port=%d\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = "+
		"%d\nunix_socket_dir =\n"+
		"auth_type = trust\nauth_file = %s\npool_mode = transaction\ndefault_pool_size = 3\n", of.Port, port, users)
	if err := errors.Join(os.WriteFile(file, []byte(text), 0o644),
		os.WriteFile(users, []byte("\"paceline\" \"\"\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	s := &Service{URL: fmt.Sprintf("postgres://paceline@127.0.0.1:%d/postgres?sslmode=disable", port), Port: port, t: t,
		crash: os.Kill}
	s.args = []string{program, file}
	s.run = func(name string, args ...string) *exec.Cmd {
		c := exec.Command(name, args...)
		c.Dir, c.SysProcAttr = dir, as
		return c
	}
	s.ready = func() bool {
		c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			c.Close()
		}
		return err == nil
	}
	t.Cleanup(s.Crash)
	s.Start()
	return s
}

// PostgreSQL starts a PostgreSQL, not as root, with env beside the environment.
func PostgreSQL(t testing.TB, env ...string) *Service {
	t.Helper()
	initdb, server := postgresProgram(t, "initdb"), postgresProgram(t, "postgres")
	dir, err := os.MkdirTemp("", "paceline-postgres") // those of a test are closed to other users
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	as := asPostgres(t, dir)
	port := FreePort(t)
	// "immediate"
	s := &Service{URL: fmt.Sprintf("postgres://paceline@127.0.0.1:%d/postgres?sslmode=disable", port), t: t,
		crash: syscall.SIGQUIT}
	data := filepath.Join(dir, "data")
	s.Port, s.Folder = port, dir
	s.args = []string{server, "-D", data, "-p", fmt.Sprint(port), "-h", "127.0.0.1", "-k", dir}
	s.run = func(name string, args ...string) *exec.Cmd {
		c := exec.Command(name, args...)
		c.Dir, c.SysProcAttr, c.Env = dir, as, append(append(os.Environ(), "LC_ALL=C"), env...)
		return c
	}
	if out, err := s.run(initdb, "-D", data, "-U", "paceline", "-A", "trust", "-N").CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	s.ready = func() bool { // it says so in the file with its number
		text, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
		lines := strings.Split(string(text), "\n")
		return err == nil && len(lines) > 7 && lines[0] == fmt.Sprint(s.cmd.Process.Pid) &&
			strings.TrimSpace(lines[7]) == "ready"
	}
	t.Cleanup(s.Crash)
	s.Start()
	return s
}

// Give writes a file into a PostgreSQL's folder, as its user.
func (s *Service) Give(name string, text []byte) {
	s.t.Helper()
	path := filepath.Join(s.Folder, name)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		s.t.Fatal(err)
	}
	asPostgres(s.t, path)
}

// Start starts it, and returns when it answers.
func (s *Service) Start() {
	s.t.Helper()
	s.cmd = s.run(s.args[0], s.args[1:]...)
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.until(s.ready)
}

// until waits until ready is true.
func (s *Service) until(ready func() bool) {
	s.t.Helper()
	for range 1200 {
		if ready() {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	s.t.Fatalf("%s does not answer", s.args[0])
}

// Crash ends it without giving it time for anything. It may be started again.
func (s *Service) Crash() {
	if s.cmd != nil && s.cmd.ProcessState == nil {
		s.cmd.Process.Signal(s.crash)
		s.cmd.Wait()
	}
}

// FreePort returns a port at which nobody listens now.
func FreePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// postgresProgram finds a program of PostgreSQL, which Debian keeps where no PATH looks: the newest.
func postgresProgram(t testing.TB, name string) string {
	t.Helper()
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if len(found) > 0 {
		slices.Sort(found)
		return found[len(found)-1]
	}
	return Program(t, name)
}

// asPostgres gives a file or a folder to the user postgres where the test runs as root, as whom
// PostgreSQL does not run.
func asPostgres(t testing.TB, path string) *syscall.SysProcAttr {
	t.Helper()
	if os.Getuid() != 0 {
		return nil
	}
	who, err := user.Lookup("postgres")
	if err != nil {
		t.Skipf("PostgreSQL does not run as root, and there is no user postgres: %v", err)
	}
	uid, _ := strconv.Atoi(who.Uid)
	gid, _ := strconv.Atoi(who.Gid)
	if err := os.Chown(path, uid, gid); err != nil {
		t.Fatal(err)
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
}
