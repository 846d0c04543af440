package keyring

import (
	"time"

	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/pool/backoff"
)

const (
	// longestPause is the longest pause of a key that denies everything.
	longestPause = 10 * time.Minute
	// longestProven is the longest pause of a denying key that has ever served anything. The key
	// may be in order, with a long row of requests at fault.
	longestProven = 10 * time.Second
	// manyProven takes the place of manyBelieved where requests cannot wait, and the keys have
	// served some: requests in order fail while the keys stay away.
	manyProven = 20
)

// Pause is the Away of those whose requests can wait, and of a Row: 1 s, 2 s, and up to 10 min. A key
// that has served a request stays away for at most 10 s.
func Pause(row int, proven bool) time.Duration {
	pause := backoff.Policy{Base: time.Second, Max: longestPause, Jitter: -1}
	if proven {
		pause.Max = longestProven
	}
	return pause.Delay(row, nil)
}

// believed returns how many requests in a row that every key denied are taken to be at fault
// themselves. own counts those that were.
func believed(first, own int) int { return min(first+2*own, mostBelieved) }

// Row is the requests in a row that one server denied with every key, where requests cannot wait.
// After too many of them all keys stay away from the server. Then one request goes alone. The zero
// Row has none. Not safe for concurrent use.
type Row struct {
	count  int // how many were denied in a row
	pauses int // how many pauses began in a row
	own    int // rows that ended by a served request: the requests were at fault
	proven bool
	since  mono.Time // when the latest pause began
	until  mono.Time
}

// Denied takes in a request that every key denied, and was sent at that instant. If away is not 0, all
// keys stay away for that long. A request that was in flight when a pause began is no further evidence.
func (r *Row) Denied(now, sent mono.Time) (away time.Duration) {
	if r.pauses > 0 && sent <= r.since {
		return 0
	}
	first := manyBelieved
	if r.proven {
		first = manyProven
	}
	if r.count++; r.count <= believed(first, r.own) {
		return 0
	}
	r.pauses++
	away = Pause(r.pauses, r.proven)
	r.since, r.until = now, now.Add(away)
	return away
}

// Served takes in a request that a key served. It reports whether the keys stayed away.
func (r *Row) Served() (ended bool) {
	if ended = r.pauses > 0; ended {
		r.own++
	}
	r.count, r.pauses, r.proven = 0, 0, true
	return ended
}

// Away reports whether every key was denied, and until when all stay away. If that is over, the next
// request shows whether it still holds.
func (r *Row) Away() (until mono.Time, on bool) { return r.until, r.pauses > 0 }

// Return ends the row: somebody says that the keys are in order. It reports whether they stayed away.
func (r *Row) Return() (ended bool) {
	ended = r.pauses > 0
	r.count, r.pauses = 0, 0
	return ended
}
