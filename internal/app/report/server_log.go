package report

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/output"
	"github.com/paceline-go/paceline/internal/text/rate"
)

// ErrNotLog is the error of a file that has neither the results of a run nor the log of a server.
var ErrNotLog = errors.New("no results of paceline run (--out), and no log of paceline serve (--log)")

// Log is what is drawn of a run or of a server. It keeps 24 bytes of each request. Its zero value
// is that of a run without a request; its methods are safe for concurrent use.
type Log struct {
	mu       sync.Mutex
	isServer bool
	events   []event
	undated  int                  // attempts of a run that were refused at an instant that the log does not have
	limits   map[string]rate.Rate // the limits that requests waited for; the keys are their texts
	keys     map[string]bool      // the API keys; each has those limits for itself
	ceiling  []point              // how many requests per second the limits of a run allowed
	left     map[leftOf][]point
}

// leftOf names a limit of a server and who shares it, as a key for what is left. Both are empty if
// the log is of a server with one limit.
type leftOf struct{ policy, who string }

type point struct{ at, y float64 } // at is in seconds

// event is a request, or an attempt of a run that was refused. Times are in seconds.
type event struct {
	at      float64
	wait    float32 // in the log of a server, the time until a refused request would pass; negative: it is not known
	latency float32
	kind    kind
}

// kind is what became of a request or an attempt.
type kind uint8

const (
	done kind = iota
	refused
	failed
)

// line is a line of the results of a run, or of the log of a server. The fields that a line has say
// which it is.
type line struct {
	// These fields are of results.
	State     string           `json:"state"`
	Ended     string           `json:"at"`
	WaitedMS  float64          `json:"waited_ms"`
	LatencyMS float64          `json:"latency_ms"`
	WaitedFor map[string]int64 `json:"waited_for_ms"`
	Key       string           `json:"key"`
	Refused   int              `json:"refused"`
	RefusedAt []string         `json:"refused_at"`
	Ceiling   float64          `json:"ceiling_sustained"`

	// Course has these fields in the results of a batch.
	Course *line `json:"paceline"`

	// These fields are of servers.
	Event     string `json:"event"`
	Status    int    `json:"status"`
	CheckedNS *int64 `json:"checked_ns"`
	AtNS      *int64 `json:"at_ns"`
	UnixNS    *int64 `json:"at_unix_ns"`
	WaitNS    int64  `json:"wait_ns"`
	Remaining *int64 `json:"remaining"`
	Counts    []struct {
		Policy, Who string
		Left        int64
	} `json:"counts"`
}

// Read reads the file of results or the log of this name. If the file is a table that a run made of
// its results, those are read. With the results come the dead letters: those in the file dead, or
// if that is empty, in the file beside the results.
func Read(name, dead string) (*Log, error) {
	l := &Log{}
	err := l.readFile(name)
	if errors.Is(err, ErrNotLog) {
		if rows := new(Log); rows.readFile(output.RowsOf(name)) == nil {
			l, err = rows, nil
		}
	}
	if err == nil && len(l.events) == 0 {
		err = fmt.Errorf("%s: %w", name, ErrNotLog)
	}
	if err != nil || l.isServer {
		return l, err
	}
	if dead == "" {
		dead = output.DeadBeside(strings.TrimSuffix(name, output.RowsOf("")))
	}
	more := &Log{}
	if dead != name && more.readFile(dead) == nil {
		l.merge(more)
	}
	return l, nil
}

func (l *Log) readFile(name string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := l.read(file); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// read reads a log. The error is ErrNotLog if the first line is of something else.
func (l *Log) read(r io.Reader) error {
	lines := bufio.NewReaderSize(r, 1<<20)
	for number := 1; ; number++ {
		text, err := lines.ReadBytes('\n')
		if len(strings.TrimSpace(string(text))) > 0 {
			var one line
			bad := json.Unmarshal(text, &one)
			switch {
			case bad != nil && number == 1:
				return ErrNotLog
			case bad != nil && err == io.EOF: // a crash broke off the last line
				return nil
			case bad != nil:
				return fmt.Errorf("line %d: %w", number, bad)
			case !l.add(&one) && number == 1:
				return ErrNotLog
			}
		} else if number == 1 {
			return ErrNotLog
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// merge adds what another log of the same run has.
func (l *Log) merge(more *Log) {
	l.events = append(l.events, more.events...)
	l.ceiling = append(l.ceiling, more.ceiling...)
	l.undated += more.undated
	for name, r := range more.limits {
		set(&l.limits, name, r)
	}
	for name := range more.keys {
		set(&l.keys, name, true)
	}
}

// set sets an element of a map that may be nil yet.
func set[K comparable, V any](m *map[K]V, k K, v V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[k] = v
}

// add takes in a line. It returns false if the line has nothing that is drawn.
func (l *Log) add(one *line) bool {
	if one.Course != nil {
		one = one.Course
	}
	at := one.CheckedNS
	for _, other := range []*int64{one.AtNS, one.UnixNS} {
		if at == nil {
			at = other
		}
	}
	ended, ok := secondsOf(one.Ended)
	switch {
	case one.State == "rows" && !ok: // it says what rows are made of the results, and comes first
	case one.State != "" && ok:
		l.result(one, ended)
	case at != nil && (one.Event == "" || one.Event == "request"):
		l.isServer = true
		l.checked(one, float64(*at)/1e9)
	default:
		return false
	}
	return true
}

// secondsOf reads an instant as results have it.
func secondsOf(text string) (at float64, ok bool) {
	t, err := time.Parse(time.RFC3339Nano, text)
	return float64(t.UnixNano()) / 1e9, err == nil
}

// Result takes in a result of a run. It keeps nothing of r.
func (l *Log) Result(r *format.Result) {
	one := line{
		State: r.State, Ended: r.At, Status: r.Status, WaitedMS: r.WaitedMS, LatencyMS: r.LatencyMS, WaitedFor: r.WaitedFor,
		Key: r.Key, Refused: r.Refused, RefusedAt: r.RefusedAt, Ceiling: r.Ceiling,
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.add(&one)
}

// result takes in a line of a run's results: the request, and the attempts of it that were refused.
// Older versions did not write these attempts; of their results it is only known whether the last
// attempt was refused.
func (l *Log) result(one *line, ended float64) {
	e := event{at: ended, wait: float32(one.WaitedMS / 1e3), latency: float32(one.LatencyMS / 1e3)}
	if one.State != "done" {
		e.kind = failed
	}
	l.events = append(l.events, e)
	n, at := max(one.Refused, len(one.RefusedAt)), one.RefusedAt
	if n == 0 && one.Status == http.StatusTooManyRequests {
		n, at = 1, []string{one.Ended}
	}
	for _, text := range at {
		if at, ok := secondsOf(text); ok {
			l.events = append(l.events, event{at: at, kind: refused, wait: -1})
			n--
		}
	}
	l.undated += n
	if last := len(l.ceiling) - 1; one.Ceiling > 0 && (last < 0 || l.ceiling[last].y != one.Ceiling) {
		l.ceiling = append(l.ceiling, point{ended, one.Ceiling})
	}
	set(&l.keys, one.Key, true)
	for what := range one.WaitedFor {
		if _, known := l.limits[what]; known {
			continue
		}
		if text, is := strings.CutPrefix(what, "limit "); is {
			if r, err := rate.ParseLimit(text); err == nil { // perhaps by the clock of a place
				set(&l.limits, what, rate.Rate{N: r.N, Per: r.Per})
			}
		}
	}
}

// checked takes in a line of a server's log.
func (l *Log) checked(one *line, at float64) {
	e := event{at: at, wait: -1}
	switch {
	case one.Status == http.StatusTooManyRequests:
		e.kind, e.wait = refused, float32(float64(one.WaitNS)/1e9)
	case one.Status >= http.StatusBadRequest:
		e.kind = failed
	}
	l.events = append(l.events, e)
	if one.Remaining != nil {
		l.leave(leftOf{}, at, *one.Remaining)
	}
	for _, c := range one.Counts {
		l.leave(leftOf{c.Policy, c.Who}, at, c.Left)
	}
}

func (l *Log) leave(of leftOf, at float64, n int64) {
	set(&l.left, of, append(l.left[of], point{at, float64(n)}))
}
