//go:build unix

package need

import (
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
	URL string

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
	port := freePort(t)
	s := &Service{URL: fmt.Sprintf("redis://127.0.0.1:%d", port), t: t, crash: os.Kill}
	s.args = []string{Program(t, "redis-server"), "--bind", "127.0.0.1", "--port", fmt.Sprint(port), "--save", "",
		"--appendonly", "no", "--dir", t.TempDir()}
	s.run = func(name string, args ...string) *exec.Cmd {
		c := exec.Command(name, args...)
		c.Env = append(os.Environ(), env...)
		return c
	}
	s.ready = func() bool {
		c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			return false
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(time.Second))
		answer := make([]byte, 5)
		_, err = c.Write([]byte("PING\r\n"))
		if err == nil {
			_, err = c.Read(answer)
		}
		return err == nil && string(answer) == "+PONG"
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
	port := freePort(t)
	// "immediate"
	s := &Service{URL: fmt.Sprintf("postgres://paceline@127.0.0.1:%d/postgres?sslmode=disable", port), t: t,
		crash: syscall.SIGQUIT}
	data := filepath.Join(dir, "data")
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

// Start starts it, and returns when it answers.
func (s *Service) Start() {
	s.t.Helper()
	s.cmd = s.run(s.args[0], s.args[1:]...)
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	for range 1200 {
		if s.ready() {
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

func freePort(t testing.TB) int {
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

// asPostgres gives the folder to the user postgres where the test runs as root, as whom PostgreSQL does not run.
func asPostgres(t testing.TB, dir string) *syscall.SysProcAttr {
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
	if err := os.Chown(dir, uid, gid); err != nil {
		t.Fatal(err)
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
}
