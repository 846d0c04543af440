package backlog

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"
)

const (
	// enqueueBatch is how many requests one transaction adds, and page how many results one reads. A long
	// transaction keeps what others delete, and makes their claims slow.
	enqueueBatch, page = 5000, 1000
	// changeBatch is how many requests one transaction cancels or lets wait again.
	changeBatch = 5000
	// analyzeFrom is from how many requests on Enqueue reports that they are there.
	analyzeFrom = 20_000

	mostID       = 500
	mostPriority = 1_000_000
	// priorityStep is by how much a step of the priority puts a request before others, in milliseconds.
	priorityStep = int64(time.Minute / time.Millisecond)
)

// Backlog is one list of requests. Open makes it. Safe for concurrent use.
type Backlog struct {
	store Store
	info  Info // as it was when the Backlog was opened
}

// Options are for Open. The zero Options are usable.
type Options struct {
	// Format names what Data and Line are: the program that reads them, and its version. If a backlog is
	// there with another Format, Open returns ErrFormat. If empty, Open takes any format, and makes a
	// backlog without one.
	Format string
	// Existing takes only a backlog that is there. Otherwise Open makes one.
	Existing bool
}

// Open opens the backlog of a name, 1 to 200 bytes of UTF-8.
func Open(ctx context.Context, store Store, name string, o Options) (*Backlog, error) {
	if err := check("name", name, 200); err != nil {
		return nil, err
	}
	info, err := store.Find(ctx, name)
	if errors.Is(err, ErrNoBacklog) && !o.Existing {
		if err := store.Create(ctx, name, o.Format); err != nil {
			return nil, err
		}
		info, err = store.Find(ctx, name)
	}
	if err != nil {
		return nil, err
	}
	if o.Format != "" && info.Format != o.Format {
		return nil, fmt.Errorf("backlog: %s: %w: %s, expected %s", name, ErrFormat, info.Format, o.Format)
	}
	return &Backlog{store: store, info: info}, nil
}

// check reports why a text is no name or ID.
func check(what, text string, most int) error {
	switch {
	case text == "" || len(text) > most:
		return fmt.Errorf("backlog: the %s %.50q has %d bytes, expected 1 to %d", what, text, len(text), most)
	case strings.ToValidUTF8(text, "") != text || strings.Contains(text, "\x00"):
		return fmt.Errorf("backlog: the %s %q is no UTF-8, or has a zero byte", what, text)
	}
	return nil
}

// Name returns the name of the backlog.
func (b *Backlog) Name() string { return b.info.Name }

// Info reads what the store knows of the backlog, without counting.
func (b *Backlog) Info(ctx context.Context) (Info, error) { return b.store.Find(ctx, b.info.Name) }

// Enqueue adds requests, and returns how many. Those whose ID is there already are passed over. Many are
// added in several transactions, so after an error the first of them may be there: call it again with
// the same. All are checked before the first is added.
func (b *Backlog) Enqueue(ctx context.Context, jobs ...Job) (added int, err error) {
	entries, err := Entries(time.Now(), jobs)
	if err != nil {
		return 0, err
	}
	for part := range slices.Chunk(entries, enqueueBatch) {
		n, err := b.store.Enqueue(ctx, b.info.ID, part)
		added += n
		if err != nil {
			return added, err
		}
	}
	if len(jobs) >= analyzeFrom {
		return added, b.store.Analyze(ctx)
	}
	return added, nil
}

// Differing returns the IDs of the jobs that are there with other Data. Enqueue passes them over, and what
// is there stays.
func (b *Backlog) Differing(ctx context.Context, jobs ...Job) (ids []string, err error) {
	entries, err := Entries(time.Now(), jobs)
	if err != nil {
		return nil, err
	}
	for part := range slices.Chunk(entries, enqueueBatch) {
		some, err := b.store.Differing(ctx, b.info.ID, part)
		if err != nil {
			return nil, err
		}
		ids = append(ids, some...)
	}
	return ids, nil
}

// Analyze has the database take note of many requests that were added by several calls of Enqueue. A
// single call with 20,000 requests or more does so itself.
func (b *Backlog) Analyze(ctx context.Context) error { return b.store.Analyze(ctx) }

// Entries returns jobs as a Store keeps them. now is the instant of jobs without an Entered. The error
// names the first job that cannot be added. It is for a Store that adds jobs within a transaction of
// somebody else.
func Entries(now time.Time, jobs []Job) ([]Entry, error) {
	all := make([]Entry, len(jobs))
	for i, j := range jobs {
		if err := check("ID", j.ID, mostID); err != nil {
			return nil, err
		}
		if j.Priority < -mostPriority || j.Priority > mostPriority {
			return nil, fmt.Errorf("backlog: %s: the priority %d is not between -%d and %d", j.ID, j.Priority, mostPriority,
				mostPriority)
		}
		entered := j.Entered
		if entered.IsZero() {
			entered = now
		}
		all[i] = Entry{ID: j.ID, Data: j.Data, Lane: j.Lane, Due: millis(j.Due), Deadline: millis(j.Deadline),
			Place: max(1, entered.UnixMilli()-int64(j.Priority)*priorityStep)}
	}
	return all, nil
}

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// Results returns the results whose Seq is more than after, in the order of the input. It reads pages of
// 1,000, each in a transaction, so it may be used while workers write. Requests without a result are left
// out. It ends with the first error.
func (b *Backlog) Results(ctx context.Context, after int64) iter.Seq2[Result, error] {
	return func(yield func(Result, error) bool) {
		for {
			all, err := b.store.Results(ctx, b.info.ID, after, page)
			if err != nil {
				yield(Result{}, err)
				return
			}
			for _, r := range all {
				if after = r.Seq; !yield(r, nil) {
					return
				}
			}
			if len(all) < page {
				return
			}
		}
	}
}

// Count counts the requests. It reads all of them: 0.2 s for a million.
func (b *Backlog) Count(ctx context.Context) (Counts, error) { return b.store.Count(ctx, b.info.ID) }

// Workers returns the workers that live, and those that wrote results.
func (b *Backlog) Workers(ctx context.Context) ([]WorkerStatus, error) {
	return b.store.Workers(ctx, b.info.ID)
}

// Pause lets no more requests go. Workers learn of it with their next turn, within a second.
func (b *Backlog) Pause(ctx context.Context) error { return b.store.SetPaused(ctx, b.info.ID, true) }

// Resume ends a Pause.
func (b *Backlog) Resume(ctx context.Context) error { return b.store.SetPaused(ctx, b.info.ID, false) }

// SetNote puts a note beside the backlog, such as the limit for which it is, if the note was is there
// still. It reports whether it did. A new backlog has the note nil.
func (b *Backlog) SetNote(ctx context.Context, was, note []byte) (bool, error) {
	return b.store.SetNote(ctx, b.info.ID, was, note)
}

// Cancel ends requests that no worker has: those with the ids. It returns how many. A request that a
// worker has goes on, since it may be on its way.
func (b *Backlog) Cancel(ctx context.Context, ids ...string) (sum int, err error) {
	for part := range slices.Chunk(ids, changeBatch) {
		n, err := b.store.Cancel(ctx, b.info.ID, part, changeBatch)
		if sum += n; err != nil {
			return sum, err
		}
	}
	return sum, nil
}

// CancelAll ends all requests that no worker has, and returns how many.
func (b *Backlog) CancelAll(ctx context.Context) (int, error) {
	return untilFew(func() (int, error) { return b.store.Cancel(ctx, b.info.ID, nil, changeBatch) })
}

// RetryDead sends dead requests again: those of the classes, or all if there are none. It returns how
// many. Each has all its attempts before it again.
func (b *Backlog) RetryDead(ctx context.Context, classes ...string) (int, error) {
	return untilFew(func() (int, error) { return b.store.RetryDead(ctx, b.info.ID, classes, changeBatch) })
}

// untilFew calls f, which changes changeBatch requests at most, until it has changed fewer.
func untilFew(f func() (int, error)) (sum int, err error) {
	for n := changeBatch; n == changeBatch; sum += n {
		if n, err = f(); err != nil {
			return sum + n, err
		}
	}
	return sum, nil
}

// Remove deletes the backlog, with all its requests and results. Workers that are still there end with
// ErrNoBacklog, and what they have in flight is lost.
func (b *Backlog) Remove(ctx context.Context) error { return b.store.Remove(ctx, b.info.ID) }
