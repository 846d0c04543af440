package backlog

import (
	"context"
	"errors"

	core "github.com/paceline-go/paceline/internal/core/backlog"
)

// These errors are returned, wrapped, by a Store and by all that use it.
var (
	// ErrNoStore: the file, or the tables, are not there, and were not to be made.
	ErrNoStore = errors.New("there is no store of backlogs")
	// ErrNoBacklog: no backlog has the name, or it was removed.
	ErrNoBacklog = errors.New("there is no such backlog")
	// ErrFormat: the backlog has requests of another format.
	ErrFormat = errors.New("the backlog has another format")
	// ErrWentBack: the store does not have what it had committed, as a standby may that takes over.
	ErrWentBack = errors.New("the store has lost its last turns")
	// ErrVersion: the tables were made by another version of Paceline, and are not those of this one.
	ErrVersion = errors.New("the tables are of another version")
)

// These are the words of a worker and its Store.
type (
	// Turn is what a worker says in one transaction.
	//
	//  1. If the row of Turn.Worker is alive and has the beat Turn.Beat, the row gets Turn.Beat+1 and
	//     Turn.Sending. Then the turn fits.
	//  2. Doubts, which a worker has if the store went back in time: the row of each of these requests,
	//     whoever has it, has a doubt. If one has a result, that has Repeat. That holds whether the
	//     turn fits or not.
	//  3. Ends, each Seq at most once: the row of each waiting request goes, and its result is written, with Repeat if the row or
	//     the End has a Doubt. That holds whether the turn fits or not. A request whose row has gone has a
	//     result already, and the End counts for nothing.
	//  4. If the turn fits, Returns: of requests that the worker has. They wait until their Rest is over.
	//     A Doubt of the row stays.
	//  5. If the turn fits, Claims: the first N waiting requests of a Lane by Place and Seq, after From,
	//     that nobody has and that do not rest. They are the worker's now. If the backlog is paused,
	//     there are none.
	Turn = core.Turn
	// End is the result of one request, as a Turn says it.
	End = core.End
	// Return gives one request back.
	Return = core.Return
	// Claim asks for requests of a lane.
	Claim = core.Claim
	// Place is where a request stands in its lane.
	Place = core.Place
	// Outcome is what a committed Turn returned.
	Outcome = core.Done
	// Claimed is a request that a worker has: its Place, Lane, ID, Data, Attempts, Doubt and Deadline.
	Claimed = core.Job
	// Row is what the store has of a worker, and the requests that it has.
	Row = core.Row
	// Beat is a living worker: its number, and the beat of its row.
	Beat = core.Beat
)

// Entry is a Job as a Store keeps it. Instants are in milliseconds since 1970; 0: none.
type Entry struct {
	ID            string
	Data          []byte
	Lane          int32
	Place         int64
	Due, Deadline int64
}

// Store is a database of backlogs. Each method is one transaction, unless it says otherwise: it is done
// as a whole or not at all. After an error nobody knows whether it was done. backlog/sqlite and
// backlog/postgres are Stores; backlog/backlogtest tests one of your own. Programs use a Backlog, and
// not these methods. Safe for concurrent use.
//
// backlog is the number of a Backlog: Info.ID.
type Store interface {
	// Find returns the backlog of a name. If there is none, it returns ErrNoBacklog.
	Find(ctx context.Context, name string) (Info, error)
	// Create makes a backlog, unless one has the name already.
	Create(ctx context.Context, name, format string) error
	// List returns all backlogs, by their names.
	List(ctx context.Context) ([]Info, error)
	// Remove deletes a backlog with all its requests and results. It may take many transactions. Workers
	// that are still there learn that their rows have gone.
	Remove(ctx context.Context, backlog int64) error

	// Enqueue adds requests, in their order, and returns how many were not there already.
	Enqueue(ctx context.Context, backlog int64, entries []Entry) (added int, err error)
	// Differing returns the IDs of the entries whose ID is there with other Data, in their order.
	Differing(ctx context.Context, backlog int64, entries []Entry) (ids []string, err error)
	// Analyze is called after many requests were added, so that the database can plan for so many. It may
	// do nothing.
	Analyze(ctx context.Context) error
	// Results returns the first n results by Seq, after the Seq after.
	Results(ctx context.Context, backlog, after int64, n int) ([]Result, error)
	// Count counts the requests of a backlog.
	Count(ctx context.Context, backlog int64) (Counts, error)
	// Empty reports whether each request has a result.
	Empty(ctx context.Context, backlog int64) (bool, error)
	// Workers returns the living workers, and those of the dead that wrote results.
	Workers(ctx context.Context, backlog int64) ([]WorkerStatus, error)
	// SetPaused pauses a backlog, or lets it go on.
	SetPaused(ctx context.Context, backlog int64, paused bool) error
	// SetNote puts a note if the note was is there, and reports whether it did.
	SetNote(ctx context.Context, backlog int64, was, note []byte) (done bool, err error)
	// Cancel writes the result Cancelled of up to n requests that no worker has; ids nil: of any. It
	// returns how many.
	Cancel(ctx context.Context, backlog int64, ids []string, n int) (int, error)
	// RetryDead lets up to n dead requests wait again, with no attempts counted; classes nil: of any
	// class. Their results go to a list of earlier ones. A request whose result has Repeat, or whose End
	// was Unsure, has a Doubt. It returns how many.
	RetryDead(ctx context.Context, backlog int64, classes []string, n int) (int, error)

	// Register makes a row for a worker. Its number never comes again, also if the store goes back in time.
	// It returns ErrNoBacklog if the backlog has gone.
	Register(ctx context.Context, backlog int64, host string, pid int) (Beat, error)
	// Turn does what a worker says.
	Turn(ctx context.Context, backlog int64, t *Turn) (Outcome, error)
	// Read returns the row of a worker, and what it has. A row that is not there is dead, and its beat is -1.
	Read(ctx context.Context, worker int64) (Row, error)
	// Look returns the living workers of a backlog.
	Look(ctx context.Context, backlog int64) ([]Beat, error)
	// GiveUp makes a worker dead if it is alive and has the beat. Then its requests are nobody's, in their
	// places. Those that its row has in Sending have a Doubt, and an attempt more. It reports whether it
	// did so.
	GiveUp(ctx context.Context, b Beat) (done bool, err error)
	// Wake lets the requests go whose rest is over, by the clock of the store.
	Wake(ctx context.Context, backlog int64) error
	// Close closes the store. Stop the Sessions first.
	Close() error
}
