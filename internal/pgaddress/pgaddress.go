// Package pgaddress reads addresses of PostgreSQL, and keeps the passwords in these addresses out
// of errors. It also configures a pool of connections so that, after a failover, the pool soon
// connects to the new primary server. For this, the address must name that server, too, or lead to
// it.
package pgaddress

import (
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/paceline-go/paceline/internal/secret"
)

// hostFor is how long one of several hosts may take to answer. One that is stopped takes a connection and never
// answers. It would keep the others from being asked.
const hostFor = 2 * time.Second

// Codes of errors of a server that takes no writes. A connection that gets one is closed, so that the next one may
// find the primary.
const (
	codeReadOnly   = "25006" // read_only_sql_transaction
	codeNotPrimary = "55000" // object_not_in_prerequisite_state: a standby has no position in the log that it writes
)

// Parse is pgxpool.ParseConfig, whose error quotes the address with parts of odd passwords. Of several hosts the
// pool takes the one that can be written.
func Parse(url string) (*pgxpool.Config, error) {
	_, wrong := secret.ParseAddress(url)
	isURL := strings.Contains(url, "://")
	if isURL && wrong != nil {
		return nil, wrong
	}
	c, err := pgxpool.ParseConfig(url)
	if err == nil {
		findPrimary(&c.ConnConfig.Config)
		return c, nil
	}
	const quoted = "`: " // the end of the address in the error
	text := err.Error()
	if i := strings.LastIndex(text, quoted); isURL && i >= 0 {
		return nil, errors.New(text[i+len(quoted):])
	}
	return nil, errors.New("the address cannot be read, expected postgres://USER:PASSWORD@HOST/NAME")
}

// findPrimary has each connection be to a server that takes writes, as far as that can be known.
func findPrimary(c *pgconn.Config) {
	closes := c.OnPgError
	c.OnPgError = func(conn *pgconn.PgConn, e *pgconn.PgError) bool {
		return e.Code != codeReadOnly && e.Code != codeNotPrimary && closes(conn, e)
	}
	several := false
	for _, f := range c.Fallbacks { // they include the same host without TLS
		several = several || f.Host != c.Host || f.Port != c.Port
	}
	if !several {
		return
	}
	if c.ValidateConnect == nil {
		c.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = hostFor
	}
}
