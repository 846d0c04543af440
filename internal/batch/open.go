package batch

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/dispatch"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/mono"
	"github.com/paceline-go/paceline/queue"
)

// Open opens the files, reads what the runs before left in them, and makes the Pool ready. Nothing is sent yet.
func (r *Run) Open() (err error) {
	r.epoch = time.Now()
	defer func() {
		if err != nil {
			r.closeFiles()
		}
	}()
	if r.out, err = r.openOutput(r.c.Out, false); err != nil {
		return fmt.Errorf("%w: %w; %w", ErrOutput, err, ErrUnsent)
	}
	switch {
	case r.c.Dead == r.c.Out:
		r.dead = r.out
	default:
		if r.dead, err = r.openOutput(r.c.Dead, true); err != nil {
			return fmt.Errorf("%w: %w; %w", ErrOutput, err, ErrUnsent)
		}
	}
	r.history = &history{}
	if r.out.regular {
		for _, l := range r.c.Limits {
			r.keep = max(r.keep, l.remembers())
		}
		r.keep += r.keep/1000 + late + time.Second
		r.journal, r.history, err = openJournal(r.c.Out+".journal", r.epoch, r.keep, r.c.Timeout, r.c.SyncAlways,
			func(id string) bool { return r.ledger.has(digestOf(id), inOut|inDead) },
			func() error { return errors.Join(r.out.sync(1), r.dead.sync(1)) })
		if err != nil {
			return fmt.Errorf("%w: %w; %w", ErrOutput, err, ErrUnsent)
		}
	}
	if r.checked { // a run that is broken off at once has them, too
		for _, v := range r.ledger {
			switch {
			case v>>flagBits == 0:
			case v&inOut != 0:
				r.totals.SkippedDone++
			case v&inDead != 0 && !r.c.RetryDead:
				r.totals.SkippedDead++
			}
		}
	}
	r.name(r.history.open)
	for _, k := range r.c.Keys {
		if until := r.history.holds[k.Name]; until > 0 {
			r.tellHold(k.Name, time.Unix(0, until), "by an answer to the run before")
		}
	}
	return r.newPool()
}

// note marks what ended in a run before.
func (r *Run) note(e entry, _ int64) {
	if e.State == "dead" {
		r.ledger.mark(digestOf(e.ID), inDead)
	} else {
		r.ledger.mark(digestOf(e.ID), inOut)
	}
}

func (r *Run) openOutput(path string, dead bool) (*lineFile, error) {
	if path == "-" {
		return &lineFile{name: "standard output", f: stream{r.c.Stdout}}, nil
	}
	if info, err := os.Stat(path); err == nil {
		if r.c.InputInfo != nil && os.SameFile(info, r.c.InputInfo) {
			return nil, fmt.Errorf("%s is the input", path)
		}
		if !info.Mode().IsRegular() {
			if info.IsDir() {
				return nil, fmt.Errorf("%s is a folder", path)
			}
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				return nil, err
			}
			return &lineFile{name: path, f: f}, nil
		}
	}
	l, f, err := openResults(path, form{r.c.Format, dead}, r.peeked[path], r.note)
	if err == nil {
		r.files = append(r.files, written{f, l.size, form{r.c.Format, dead}})
	}
	return l, err
}

// stream makes a file of a writer.
type stream struct{ io.Writer }

func (stream) Sync() error          { return nil }
func (stream) Truncate(int64) error { return nil }
func (stream) Close() error         { return nil }

// name tells of requests that were unanswered when the run before died.
func (r *Run) name(open map[string]struct{}) {
	if len(open) == 0 {
		return
	}
	what := "they are sent again, their results say possible_repeat"
	if r.c.HoldUnanswered {
		what = "they become dead letters (--unanswered hold)"
	}
	r.c.Notice(fmt.Sprintf("%d requests were sent but not answered when the run before ended; those of the input may be repeats: %s", len(open), what))
	const most = 100
	ids := slices.Sorted(maps.Keys(open))
	for _, id := range ids[:min(len(ids), most)] {
		r.c.Notice(fmt.Sprintf("  unanswered: %s", id))
	}
	if len(ids) > most {
		r.c.Notice(fmt.Sprintf("  and %d more: see %s", len(ids)-most, r.journal.path))
	}
}

// newPool replays the history into the limiters: a window that the process before filled still counts.
func (r *Run) newPool() error {
	index := map[string]int{}
	for i, k := range r.c.Keys {
		index[k.Name] = i
	}
	// Of a bucket it is not known what it held when the history begins: at least nothing. The history is long enough for
	// it to have filled since, unless it was used.
	if r.history.last > 0 {
		for i := range r.limiters {
			for n, l := range r.limiters[i] {
				if rate := r.c.Limits[n]; rate.Bucket {
					var all limit.Cost
					all[rate.Unit] = rate.most()
					at := mono.Time(-r.keep)
					l.Settle(at, l.Admit(at, all), limit.Outcome{Result: limit.Failed})
				}
			}
		}
	}
	underway := make([][]int64, len(r.limiters)) // what may still arrive, of each key and limit
	for i := range underway {
		underway[i] = make([]int64, len(r.c.Limits))
	}
	for _, s := range r.history.sends {
		i, ours := index[s.key]
		if !ours {
			continue
		}
		// Not after the epoch even if the clock was set back since: that would only count longer.
		counts := mono.Time(min(s.counts-r.epoch.UnixNano(), int64(late+r.c.Timeout)))
		if counts < mono.Time(-r.keep) {
			continue // no limit of this run reaches so far back
		}
		for n, l := range r.limiters[i] {
			cost := s.cost
			if rate := r.c.Limits[n]; rate.Bucket {
				// A bucket that let it go was not below empty then. Ours could be, and for hours, where its limit was higher
				// in the run before.
				if w := &cost[rate.Unit]; counts > 0 {
					*w = min(*w, max(rate.most()+int64(rate.perSecond()*time.Duration(counts).Seconds())-underway[i][n], 0))
					underway[i][n] += *w
				} else if *w > 0 && l.Ready(counts, cost) > counts {
					*w = min(*w, rate.room(l, counts))
				}
			}
			lease := l.Admit(min(counts, 0), cost)
			o := limit.Outcome{Result: s.result}
			if counts > 0 {
				o = limit.Outcome{Result: limit.Unknown, ArrivedAgo: -time.Duration(counts)}
			} else if s.result == limit.Unknown {
				o.Result = limit.Failed // counts is its bound already
			}
			l.Settle(min(counts, 0), lease, o)
		}
	}
	r.rooms = make([]int64, len(r.c.Limits))
	for n, rate := range r.c.Limits {
		for i := range r.limiters {
			if rate.Bucket {
				r.rooms[n] += rate.room(r.limiters[i][n], 0)
			}
		}
	}
	keys := make([]dispatch.Key, len(r.c.Keys))
	for i, k := range r.c.Keys {
		keys[i] = dispatch.Key{Name: k.Name, Limiter: limit.NewAll(r.limiters[i]...), Gap: r.c.Gap}
		if Uses(r.c.Header, "nonce") || Uses(r.c.Query, "nonce") {
			keys[i].Nonce = &dispatch.NonceConfig{Unit: r.c.NonceUnit, After: r.history.nonces[k.Name]}
		}
	}
	var err error
	r.pool, err = paceline.NewPool(paceline.PoolConfig{
		Keys: keys, Send: r.send, Ended: r.ended, InFlight: r.c.Concurrency, Backoff: r.c.Backoff, Log: r.c.Log, Epoch: r.epoch,
		Queue:     queue.Config{MaxLen: r.c.Queue, MaxAttempts: r.c.Attempts, KeepDead: -1, Host: goesTo},
		MaxOutage: r.c.MaxOutage, Outage: r.outage,
	})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	r.pool.Update(func(now mono.Time, _ *queue.Queue, d *dispatch.Dispatcher) {
		for name, until := range r.history.holds {
			if i, ours := index[name]; ours && until > r.epoch.UnixNano() {
				d.Hold(now, i, mono.Time(until-r.epoch.UnixNano()))
			}
		}
	})
	return nil
}
