package postgres_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/need"
	"github.com/paceline-go/paceline/share"
	"github.com/paceline-go/paceline/share/postgres"
	"github.com/paceline-go/paceline/share/sharetest"
)

// program finds a program of PostgreSQL, which Debian keeps where no PATH looks: the newest.
func program(t *testing.T, name string) string {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if len(found) > 0 {
		slices.Sort(found)
		return found[len(found)-1]
	}
	return need.Program(t, name)
}

// start starts a PostgreSQL of its own, and returns its address. It does not run as root.
func start(t *testing.T) string {
	t.Helper()
	initdb, server := program(t, "initdb"), program(t, "postgres")
	dir, err := os.MkdirTemp("", "paceline-postgres")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	var as *syscall.SysProcAttr
	if os.Getuid() == 0 {
		who, err := user.Lookup("postgres")
		if err != nil {
			t.Skipf("PostgreSQL does not run as root, and there is no user postgres: %v", err)
		}
		uid, _ := strconv.Atoi(who.Uid)
		gid, _ := strconv.Atoi(who.Gid)
		if err := os.Chown(dir, uid, gid); err != nil {
			t.Fatal(err)
		}
		as = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	}
	run := func(name string, args ...string) *exec.Cmd {
		c := exec.Command(name, args...)
		c.Dir, c.SysProcAttr, c.Env = dir, as, append(os.Environ(), "LC_ALL=C")
		return c
	}
	data := filepath.Join(dir, "data")
	if out, err := run(initdb, "-D", data, "-U", "paceline", "-A", "trust", "-N").CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	c := run(server, "-D", data, "-p", fmt.Sprint(port), "-h", "127.0.0.1", "-k", dir)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Process.Signal(syscall.SIGQUIT) // immediate
		c.Wait()
	})
	url := fmt.Sprintf("postgres://paceline@127.0.0.1:%d/postgres?sslmode=disable", port)
	for range 200 {
		if s, err := postgres.Open(context.Background(), url); err == nil {
			s.Close()
			return url
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("PostgreSQL does not answer")
	return ""
}

func TestStore(t *testing.T) {
	url := start(t)
	sharetest.Run(t, func(t *testing.T) share.Store {
		s, err := postgres.Open(context.Background(), url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		return s
	})
}

func TestUnreachable(t *testing.T) {
	for _, url := range []string{"postgres://paceline@127.0.0.1:1/x?sslmode=disable", "http://x", "postgres://%"} {
		if s, err := postgres.Open(context.Background(), url); err == nil {
			s.Close()
			t.Errorf("%s is open", url)
		}
	}
}
