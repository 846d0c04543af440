package pgaddress_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/paceline-go/paceline/internal/pgaddress"
	"github.com/paceline-go/paceline/internal/testkit/need"
)

// pool connects as the stores do, but by one connection, so that each call has the one of the call before.
func pool(t *testing.T, hosts string) *pgxpool.Pool {
	t.Helper()
	c, err := pgaddress.Parse("postgres://paceline@" + hosts + "/postgres?sslmode=disable&pool_max_conns=1")
	if err != nil {
		t.Fatal(err)
	}
	p, err := pgxpool.NewWithConfig(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func at(s *need.Service) string { return fmt.Sprint("127.0.0.1:", s.Port) }

// takesWrites lets a server take writes, or refuse them as a standby does. Sessions go on.
func takesWrites(t *testing.T, s *need.Service, yes bool) {
	t.Helper()
	p := pool(t, at(s))
	for _, query := range []string{`SET default_transaction_read_only = off`,
		fmt.Sprintf(`ALTER SYSTEM SET default_transaction_read_only = %t`, !yes), `SELECT pg_reload_conf()`} {
		if _, err := p.Exec(t.Context(), query); err != nil {
			t.Fatal(err)
		}
	}
	s.Until(func() bool { // each session reloads by itself
		var is string
		err := p.QueryRow(t.Context(), `SELECT reset_val FROM pg_settings WHERE name = 'default_transaction_read_only'`).Scan(&is)
		return err == nil && (is == "on") != yes
	})
}

// Of several servers the one that takes writes is found, also when it changes while the connections stay whole: one
// call fails, and the next one finds the other server.
func TestSeveral(t *testing.T) {
	t.Parallel()
	a, b := need.PostgreSQL(t), need.PostgreSQL(t)
	takesWrites(t, a, false)
	p := pool(t, at(a)+","+at(b))
	write := func() (port int, err error) {
		if _, err = p.Exec(t.Context(), `CREATE TABLE IF NOT EXISTS written (x int)`); err == nil {
			err = p.QueryRow(t.Context(), `SELECT inet_server_port()`).Scan(&port)
		}
		return port, err
	}
	if port, err := write(); port != b.Port || err != nil {
		t.Fatalf("it writes to %d, %v, expected %d", port, err, b.Port)
	}
	takesWrites(t, b, false)
	takesWrites(t, a, true)
	var err error
	b.Until(func() bool { // the session may hear of it later than others
		_, err = write()
		return err != nil
	})
	if e, ok := errors.AsType[*pgconn.PgError](err); !ok || e.Code != "25006" {
		t.Fatalf("a server that takes no writes any more says %v", err)
	}
	if port, err := write(); port != a.Port || err != nil {
		t.Fatalf("then it writes to %d, %v, expected %d", port, err, a.Port)
	}
}

// A host that takes connections and never answers, as a stopped one does, holds up the others for 2 s.
func TestStopped(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s := need.PostgreSQL(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := pool(t, l.Addr().String()+","+at(s)).Exec(ctx, `SELECT 1`); err != nil {
		t.Fatal(err)
	}
}

// What the address says itself holds.
func TestOwnWords(t *testing.T) {
	c, err := pgaddress.Parse("postgres://a,b/x?connect_timeout=7&target_session_attrs=primary")
	if err != nil || c.ConnConfig.ConnectTimeout != 7*time.Second || c.ConnConfig.ValidateConnect == nil {
		t.Errorf("%v %v", c.ConnConfig.ConnectTimeout, err)
	}
	if c, err = pgaddress.Parse("postgres://a/x"); err != nil || c.ConnConfig.ConnectTimeout != 0 || c.ConnConfig.ValidateConnect != nil {
		t.Errorf("one host: %v %v", c.ConnConfig.ConnectTimeout, err)
	}
	if c, err = pgaddress.Parse("host=a,b port=1,2 dbname=x"); err != nil || c.ConnConfig.ValidateConnect == nil {
		t.Errorf("several hosts in words: %v", err)
	}
}
