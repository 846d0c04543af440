package postgres_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/share"
	"github.com/paceline-go/paceline/share/postgres"
	"github.com/paceline-go/paceline/share/sharetest"
)

// A PgBouncer in transaction mode stands before the database: each statement may be another
// connection's.
func pooled(t *testing.T, open func(*testing.T) share.Store) {
	sharetest.Run(t, open)
	var all sync.WaitGroup
	for range 8 {
		s := open(t)
		all.Go(func() {
			for i := range 10 {
				err := s.Turn(t.Context(), fmt.Sprint("of many ", i%3), func(r share.Reading) ([]byte, error) { return append(r.Blob, 'x'), nil })
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	n := 0
	for i := range 3 {
		open(t).Turn(t.Context(), fmt.Sprint("of many ", i), func(r share.Reading) ([]byte, error) {
			n += len(r.Blob)
			return nil, fmt.Errorf("only read")
		})
	}
	if n != 80 {
		t.Errorf("80 turns were put, and %d are there", n)
	}
}

// Each put waits for the disk, whatever the database's own setting.
func synchronousCommit(t *testing.T, u string) {
	rows(t, u, `ALTER DATABASE synchronous_commit SET synchronous_commit = off`)
	s := opener(u)(t)
	// A trigger sees the setting of the transaction that is being committed.
	rows(t, u, `CREATE TABLE seen (as_of text)`,
		`CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN INSERT INTO seen VALUES (current_setting('synchronous_commit')); RETURN NEW; END$$`,
		`CREATE CONSTRAINT TRIGGER see AFTER INSERT OR UPDATE ON paceline_share DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION see()`)
	for range 3 {
		if err := s.Turn(t.Context(), "a", func(share.Reading) ([]byte, error) { return []byte("x"), nil }); err != nil {
			t.Fatal(err)
		}
	}
	c, err := pgx.Connect(t.Context(), u)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	var on, all int
	if err := c.QueryRow(t.Context(), `SELECT count(*) FILTER (WHERE as_of = 'on'), count(*) FROM seen`).Scan(&on, &all); err != nil || on != 3 || all != 3 {
		t.Errorf("of %d commits %d wait: %v", all, on, err)
	}
}

// A socket, TLS with a CA of one's own, several hosts, and passwords of any signs.
func TestWays(t *testing.T) {
	t.Parallel()
	const password = `p@s/s?#%:[ü" \&=+`
	s := need.PostgreSQL(t)
	dir := t.TempDir()
	ca := need.Certificate(t, dir)
	for name, from := range map[string]string{"cert.pem": ca.Cert, "key.pem": ca.Key} {
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		give(t, s, filepath.Join("data", name), text)
	}
	give(t, s, "data/pg_hba.conf", []byte("local all all trust\nhost all paceline all trust\nhost all odd all scram-sha-256\n"))
	rows(t, s.URL, `CREATE ROLE odd LOGIN SUPERUSER PASSWORD `+"'"+strings.ReplaceAll(password, "'", "''")+"'", `ALTER SYSTEM SET ssl_cert_file = 'cert.pem'`,
		`ALTER SYSTEM SET ssl_key_file = 'key.pem'`, `ALTER SYSTEM SET ssl = on`, `SELECT pg_reload_conf()`)
	time.Sleep(100 * time.Millisecond) // each backend reloads by itself
	escaped := strings.ReplaceAll(url.QueryEscape(password), "+", "%20")
	odd := "odd:" + escaped + "@"
	was := ""
	for i, address := range []string{
		fmt.Sprintf("postgres://%s127.0.0.1:%d/postgres?sslmode=disable", odd, s.Port),
		fmt.Sprintf("postgresql://%s127.0.0.1:%d/postgres?sslmode=verify-full&sslrootcert=%s", odd, s.Port, url.QueryEscape(ca.Root)),
		fmt.Sprintf("postgres://paceline@/postgres?host=%s&port=%d", url.QueryEscape(s.Folder), s.Port),
		fmt.Sprintf("postgres://paceline@%s:%d/postgres", url.QueryEscape(s.Folder), s.Port),
		fmt.Sprintf("postgres://%s127.0.0.1:1,127.0.0.1:%d/postgres?target_session_attrs=read-write", odd, s.Port),
		fmt.Sprintf("postgres://odd@127.0.0.1:%d/postgres?password=%s", s.Port, escaped),
		fmt.Sprintf("host=%s port=%d user=paceline dbname=postgres", s.Folder, s.Port),
		fmt.Sprintf("postgres://paceline@127.0.0.1:%d/postgres?default_query_exec_mode=cache_statement", s.Port),
	} {
		err := opener(address)(t).Turn(t.Context(), "a", func(r share.Reading) ([]byte, error) {
			if string(r.Blob) != was {
				t.Errorf("%s has %q, not %q", address, r.Blob, was)
			}
			return fmt.Append(nil, i), nil
		})
		if err != nil {
			t.Errorf("%s: %v", address, err)
		}
		was = fmt.Sprint(i)
	}
	for address, why := range map[string]string{
		fmt.Sprintf("postgres://%s127.0.0.1:%d/postgres?sslmode=verify-full", odd, s.Port): "certificate",
		fmt.Sprintf("postgres://odd:other@127.0.0.1:%d/postgres", s.Port):                  "password authentication failed",
		fmt.Sprintf("postgres://%s127.0.0.1:%d/postgres?sslmode=none", odd, s.Port):        "sslmode",
		fmt.Sprintf("host=127.0.0.1 port=no password='%s", "p@s"):                          "expected postgres://",
		"postgres://odd:p@s@h/x": "%40",
	} {
		s, err := postgres.Open(t.Context(), address)
		if err == nil {
			s.Close()
		}
		if err == nil || !strings.Contains(err.Error(), why) || strings.Contains(err.Error(), "p@s") || strings.Contains(err.Error(), "p%40s") {
			t.Errorf("%s: %v", address, err)
		}
	}
}
