// Package sqlitefile opens SQLite files that several processes of one machine share.
package sqlitefile

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"regexp"
	"time"

	engine "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"
)

// InMemory reports whether SQLite would keep a database of this name in memory, where no other process
// sees it.
func InMemory(file string) bool { return inMemory.MatchString(file) }

var inMemory = regexp.MustCompile(`(?i):memory:|[?&](mode=memory|vfs=memdb)`)

// Config is for Open.
type Config struct {
	File string
	// Pragmas are set for each connection: "journal_mode(WAL)".
	Pragmas []string
	// Immediate begins transactions as those that write.
	Immediate bool
	// Existing takes only a file that is there.
	Existing bool
	// Conns is the most connections.
	Conns int
	// First makes what is not there. It is repeated while another process does the same.
	First func(context.Context, *sql.DB) error
}

const (
	// openFor is for how long Open waits for others that make the same file, and mostPause the most
	// between two tries.
	openFor, mostPause = 10 * time.Second, 10 * time.Millisecond
)

// Open opens a file, or makes it. The error has the cause, and not the file.
func Open(c Config) (*sql.DB, error) {
	q := url.Values{"_pragma": c.Pragmas}
	if c.Immediate {
		q.Set("_txlock", "immediate")
	}
	if c.Existing {
		q.Set("mode", "rw")
	}
	db, err := sql.Open("sqlite",
		(&url.URL{Scheme: "file", Opaque: (&url.URL{Path: c.File}).EscapedPath(), RawQuery: q.Encode()}).String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(c.Conns)
	ctx, cancel := context.WithTimeout(context.Background(), openFor)
	defer cancel()
	for most := time.Millisecond; ; most = min(2*most, mostPause) {
		err := c.First(ctx, db)
		if err == nil {
			return db, nil
		}
		if !IsBusy(err) || ctx.Err() != nil {
			return nil, errors.Join(because(c, err), db.Close())
		}
		time.Sleep(rand.N(most))
	}
}

// IsBusy reports that another process had the file, and that nothing was done. If two processes
// make the file at once, SQLite does not wait for its busy_timeout, since each could wait for the
// other.
func IsBusy(err error) bool {
	e, ok := errors.AsType[*engine.Error](err)
	return ok && e.Code()&0xff == lib.SQLITE_BUSY
}

// because adds the reason why a file cannot be opened. The engine does not report it.
func because(c Config, err error) error {
	if e, ok := errors.AsType[*engine.Error](err); !ok || e.Code()&0xff != lib.SQLITE_CANTOPEN {
		return err
	}
	flags := os.O_RDWR | os.O_CREATE
	if c.Existing {
		flags = os.O_RDWR
	}
	f, why := os.OpenFile(c.File, flags, 0o666)
	if e, ok := errors.AsType[*os.PathError](why); ok {
		return fmt.Errorf("%w: %w", err, e.Err)
	}
	return errors.Join(err, f.Close())
}
