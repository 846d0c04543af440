package journal

import (
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/transport"
)

// SentLog is a file with a line of JSON for each attempt, from which an audit shows how full each window was. A line
// is appended once the cost of its attempt is final, so lines are in the order of their ends. Several processes may
// append to one file. If the file was renamed or removed, as logrotate does, SentLog makes a new one within a second.
// Safe for concurrent use.
type SentLog struct {
	path  string
	log   *slog.Logger
	began time.Time

	mu     sync.Mutex
	file   *os.File
	looked time.Time // when path was found to be that of file
	broken bool      // the latest line was not written whole
	closed bool      // by Close: the file is open for the time of a write
}

// OpenSentLog opens the file to append to it, or makes it, readable by its owner alone. log gets the first of some
// failures in a row, and their end.
func OpenSentLog(path string, log *slog.Logger) (*SentLog, error) {
	l := &SentLog{path: path, log: log, began: time.Now()}
	if err := l.open(l.began); err != nil {
		return nil, fmt.Errorf("%w; expected a file that this process may write", err)
	}
	return l, nil
}

// open opens the file.
func (l *SentLog) open(now time.Time) error {
	f, err := os.OpenFile(l.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	l.file, l.looked = f, now
	return nil
}

// SentLine is a line of a SentLog.
type SentLine struct {
	// At is when the attempt was sent, in UTC. The times of one process follow the machine's own clock, which no
	// user sets.
	At       string `json:"at"`
	Upstream string `json:"upstream"`
	Target   string `json:"target,omitempty"`
	// Key is the name of the key, or what stands for the credential of a client. It is no secret.
	Key      string `json:"key"`
	Client   string `json:"client,omitempty"`
	Resource string `json:"resource,omitempty"`
	Model    string `json:"model,omitempty"`
	Method   string `json:"method"`
	Path     string `json:"path"`
	// Attempt is its number among those of its request, and Status that of its answer; 0: there was none.
	Attempt int    `json:"attempt"`
	Status  int    `json:"status,omitempty"`
	Result  string `json:"result"`

	Amounts
}

// Amounts is what an attempt cost, as the limits counted it in the end: by unit, without those of 0.
type Amounts struct {
	Requests int64 `json:"requests,omitempty"`
	Weight   int64 `json:"weight,omitempty"`
	Orders   int64 `json:"orders,omitempty"`
	Input    int64 `json:"input_tokens,omitempty"`
	Output   int64 `json:"output_tokens,omitempty"`
	Tokens   int64 `json:"tokens,omitempty"`
	Money    int64 `json:"micro_usd,omitempty"`
	Other    int64 `json:"other,omitempty"`
}

// Add appends a settled attempt, for Config.Settled of a Transport. line has the Upstream, the Client, the Method
// and the Path. An attempt of which nothing was sent has no line. A nil SentLog does nothing.
func (l *SentLog) Add(line SentLine, a *transport.Attempt, o *limit.Outcome) {
	if l == nil || o.Result == limit.Unsent {
		return
	}
	cost := a.Cost
	if o.Metered {
		cost = o.Actual
	}
	line.At = l.began.Add(a.Sent.Sub(l.began)).UTC().Format(time.RFC3339Nano)
	line.Target, line.Key = a.Partition.Target, cmp.Or(a.Key, a.Partition.Key)
	line.Resource, line.Model = a.Partition.Resource, a.Partition.Model
	line.Attempt, line.Status, line.Result = a.Number, a.Status, o.Result.String()
	line.Amounts = Amounts{cost[limit.Requests], cost[limit.Weight], cost[limit.Orders], cost[limit.Input],
		cost[limit.Output], cost[limit.Tokens], cost[limit.Money], cost[limit.Other]}
	text, err := json.Marshal(line)
	if err != nil {
		panic(err) // cannot fail: every field has a JSON form
	}
	l.write(append(text, '\n'))
}

// look is the time between two looks at whether the file was renamed.
const look = time.Second

func (l *SentLog) write(line []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.followLocked(time.Now())
	if err == nil {
		if l.broken { // a part of a line may be there
			line = append([]byte{'\n'}, line...)
		}
		_, err = l.file.Write(line)
	}
	was := l.broken
	switch l.broken = err != nil; {
	case l.broken && !was:
		l.log.Error("an attempt is missing in the file of attempts, and an audit of it has a gap", "file", l.path, "err", err)
	case was && !l.broken:
		l.log.Warn("attempts are written to their file again", "file", l.path)
	}
	if l.closed {
		l.closeLocked()
	}
}

// followLocked opens the file anew if another one, or none, is in its place.
func (l *SentLog) followLocked(now time.Time) error {
	if l.file != nil && now.Sub(l.looked) < look {
		return nil
	}
	if l.file != nil {
		is, err := l.file.Stat()
		at, gone := os.Stat(l.path)
		if l.looked = now; err == nil && gone == nil && os.SameFile(at, is) {
			return nil
		}
		l.closeLocked()
	}
	return l.open(now)
}

// Close closes the file. Attempts that settle later are still appended. A nil SentLog has none.
func (l *SentLog) Close() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.closeLocked()
}

func (l *SentLog) closeLocked() {
	if l.file != nil {
		_ = l.file.Close() // each line is written by now
		l.file = nil
	}
}
