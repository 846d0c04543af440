//go:build unix

package need

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// PgBouncer starts a PgBouncer before a PostgreSQL, in transaction mode, with nothing else configured but lines of settings.
func PgBouncer(t testing.TB, of *Service, settings ...string) *Service {
	t.Helper()
	program := Program(t, "pgbouncer")
	dir, err := os.MkdirTemp("", "paceline-pgbouncer")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	as := AsPostgres(t, dir)
	port := FreePort(t)
	file, users := filepath.Join(dir, "pgbouncer.ini"), filepath.Join(dir, "users.txt")
	text := fmt.Sprintf("[databases]\n* = host=127.0.0.1 port=%d\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = "+
		"%d\nunix_socket_dir =\n"+
		"auth_type = trust\nauth_file = %s\npool_mode = transaction\ndefault_pool_size = 3\n%s\n", of.Port, port, users, strings.Join(settings, "\n"))
	if err := errors.Join(os.WriteFile(file, []byte(text), 0o644),
		os.WriteFile(users, []byte("\"paceline\" \"\"\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	s := &Service{URL: fmt.Sprintf("postgres://paceline@127.0.0.1:%d/postgres?sslmode=disable", port), Port: port}
	s.Command = func() *exec.Cmd {
		c := exec.Command(program, file)
		c.Dir, c.SysProcAttr = dir, as
		return c
	}
	s.Ready = func() bool {
		c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			c.Close()
		}
		return err == nil
	}
	return s.Begin(t)
}
