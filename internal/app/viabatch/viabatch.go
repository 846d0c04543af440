package viabatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/paceline-go/paceline/internal/app/durable"
	"github.com/paceline-go/paceline/internal/app/journal"
	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/output"
	"github.com/paceline-go/paceline/internal/text"
)

// Config describes the batches of one input.
type Config struct {
	// Format is the form of the input and of the results.
	Format *format.LLM
	// Input is the path of the input. It must be a file, since it is read more than once.
	Input string
	// Limits bound the lines of the input.
	Limits format.InputLimits
	// Out and Dead are the files of the run that follows.
	Out, Dead string
	// Key and Header are for each request to the provider.
	Key    format.Key
	Header []format.Template
	// Enqueued is how many tokens of input batches of a model may have that have not ended. If zero,
	// there is no bound.
	Enqueued int64
	// MostLines and MostBytes bound a batch. If zero, they are those of the provider.
	MostLines int
	MostBytes int64
	// Poll is the time between two looks at the batches. If zero, 30 s.
	Poll time.Duration
	// Base sends the requests. If nil, an http.Transport does.
	Base http.RoundTripper
	// Judge judges the answer to a request, of which it knows the id, the model and the address.
	Judge func(q *format.Request, status int, body []byte) Verdict
	// Notice gets a line at a time for the user. If nil, none does.
	Notice func(string)
}

// Verdict is what an answer proves. If it is neither done nor dead, its request is left to the run.
type Verdict struct {
	Done, Dead bool
	Cut        bool // at the bound of its output
	Class      format.DeadClass
	Reason     string
}

// ErrRefused says that the provider refuses batches. Nothing more can be done without a change.
var ErrRefused = errors.New("the provider takes no batch")

// batches is one Run.
type batches struct {
	Config
	api    api
	remote *remote
	ledger *ledger
	done   map[string]bool // requests with a result
	out    *durable.File
	dead   *durable.File
	served served
}

// Run makes batches of all requests without a result, waits for their ends, and writes their results.
// The error is nil if no batch is left; told says that Notice got a summary. After any error, also that of ctx, the
// same Config goes on.
func Run(ctx context.Context, c Config) (told bool, err error) {
	c.Poll = cmp.Or(c.Poll, 30*time.Second)
	if c.Notice == nil {
		c.Notice = func(string) {}
	}
	b := &batches{Config: c, done: map[string]bool{}}
	b.remote = newRemote(&b.Config)
	b.api = apiOf(b.remote, c.Format.Form())
	most, size := b.api.bounds()
	b.MostLines, b.MostBytes = cmp.Or(c.MostLines, most), cmp.Or(c.MostBytes, size)
	if err := b.open(); err != nil {
		return false, err
	}
	told, err = b.run(ctx)
	return told, errors.Join(err, b.close())
}

// open opens the files, and reads what earlier commands left.
func (b *batches) open() (err error) {
	for _, f := range []struct {
		path   string
		isDead bool
		to     **durable.File
	}{{b.Out, false, &b.out}, {b.Dead, true, &b.dead}} {
		if *f.to, err = opened(f.path, func(line []byte) error {
			e, ok := b.Format.Entry(line, f.isDead)
			if !ok {
				return errors.New("not a result of paceline: is this the right file?")
			}
			b.done[e.ID] = true
			return nil
		}); err != nil {
			return errors.Join(err, b.close())
		}
	}
	// Without a journal the run would take every window to be full, since there are results. It is written under
	// the lock of the results.
	j, _, err := journal.Open(journal.Config{Path: output.JournalOf(b.Out), Keep: time.Minute}, time.Now())
	if err == nil {
		err = j.Close()
	}
	if err != nil {
		return errors.Join(err, b.close())
	}
	b.ledger, err = openLedger(b.Out + ".batches")
	if err != nil {
		return errors.Join(err, b.close())
	}
	return nil
}

// opened opens a file of lines, and passes those that are there. It cuts off half a line, which a
// crash left.
func opened(path string, each func(line []byte) error) (*durable.File, error) {
	f, err := durable.Open(path)
	if err != nil {
		return nil, err
	}
	end, err := durable.Lines(f.Reader(), path, func(line []byte, end durable.End) error {
		if err := each(line); err != nil {
			return fmt.Errorf("%s:%d: %w", path, end.Lines, err)
		}
		return nil
	})
	if err == nil {
		err = f.SetSize(end.Size)
	}
	if err != nil {
		f.Discard()
		return nil, err
	}
	return f, nil
}

func (b *batches) close() (err error) {
	for _, f := range []*durable.File{b.out, b.dead} {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	if b.ledger != nil {
		err = errors.Join(err, b.ledger.file.Close())
	}
	if b.dead != nil && b.dead.Size() == 0 { // the run makes it when there is something to write
		_ = os.Remove(b.Dead)
	}
	return err
}

// run gives requests away until each has been in a batch that has ended.
func (b *batches) run(ctx context.Context) (told bool, err error) {
	if err := b.adopt(ctx); err != nil {
		return false, err
	}
	for {
		if err := b.give(ctx); err != nil {
			return false, err
		}
		for len(b.ledger.open()) > 0 {
			if err := b.look(ctx); err != nil {
				return false, err
			}
		}
		if !b.ledger.later {
			break
		}
		b.ledger.later = false
		const rests = 10 // of looks: what was enqueued elsewhere has to end
		if err := sleep(ctx, rests*b.Poll); err != nil {
			return false, err
		}
	}
	return b.tell(), nil
}

// give reads the input, and makes batches of all that has neither a result nor a batch.
func (b *batches) give(ctx context.Context) error {
	in, err := os.Open(b.Input)
	if err != nil {
		return err
	}
	defer in.Close()
	r := format.NewReader(b.Format, b.Input, in, b.Limits)
	r.Pass = format.Checking // an estimate of the tokens is enough
	parts := map[string]*chunk{}
	defer func() {
		for _, c := range parts {
			c.drop()
		}
	}()
	for {
		q, err := r.Next()
		if err == io.EOF {
			break
		}
		if _, invalid := errors.AsType[*format.InputError](err); invalid {
			continue // the run names it
		}
		if err != nil {
			return err
		}
		if b.done[q.ID] || b.ledger.taken[q.ID] {
			continue
		}
		kind := q.Estimate.Model + " " + q.URL.Path
		if c := parts[kind]; c != nil && c.isFull(&b.Config, q) {
			delete(parts, kind)
			if err := b.submit(ctx, c); err != nil {
				return err
			}
		}
		c := parts[kind]
		if c == nil {
			if c, err = newChunk(b.api, q); err != nil {
				return err
			}
			parts[kind] = c
		}
		if err := c.add(q); err != nil {
			return err
		}
	}
	for kind, c := range parts {
		delete(parts, kind)
		if err := b.submit(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// submit makes a batch of a chunk, once there is room for its tokens.
func (b *batches) submit(ctx context.Context, c *chunk) error {
	defer c.drop()
	for b.Enqueued > 0 && b.ledger.enqueued(c.Model) > 0 && b.ledger.enqueued(c.Model)+c.Tokens > b.Enqueued {
		if err := b.look(ctx); err != nil {
			return err
		}
	}
	if err := c.end(); err != nil {
		return err
	}
	if err := b.ledger.note(&c.entry); err != nil {
		return err
	}
	id, err := b.api.create(ctx, c)
	for errors.Is(err, errUnclear) { // it may have been made: only the provider knows
		if err = sleep(ctx, b.Poll); err == nil {
			if id, err = b.api.find(ctx, &c.entry, b.ledger); err == nil && id == "" {
				id, err = b.api.create(ctx, c)
			}
		}
	}
	if err != nil {
		if _, refused := errors.AsType[*refusal](err); refused {
			err = errors.Join(b.ledger.over(&c.entry, true), fmt.Errorf("%w: %w", ErrRefused, err))
		}
		return err
	}
	b.Notice(fmt.Sprintf("%s of model %s went to the provider as batch %s, with about %s tokens of input",
		text.Count(len(c.Requests), "request", "requests"), text.Sanitize(c.Model), text.Sanitize(id),
		text.Thousands(c.Tokens)))
	return b.ledger.made(&c.entry, id)
}

// adopt finds the batches that were made, and whose ids could not be noted.
func (b *batches) adopt(ctx context.Context) error {
	for _, e := range b.ledger.entries {
		if e.isOver || e.Batch != "" {
			continue
		}
		id, err := b.api.find(ctx, e, b.ledger)
		switch {
		case err != nil:
			return err
		case id != "":
			err = b.ledger.made(e, id)
		default: // it was not made: its requests are given away again
			err = b.ledger.over(e, true)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// look looks at all batches that have not ended, and takes in those that have by now. It begins with
// a rest.
func (b *batches) look(ctx context.Context) error {
	if err := sleep(ctx, b.Poll); err != nil {
		return err
	}
	for _, e := range b.ledger.open() {
		s, err := b.api.look(ctx, e.Batch)
		if err != nil {
			return err
		}
		switch {
		case s.isFull:
			b.ledger.later = true
			b.Notice(fmt.Sprintf("%s waits for others: %s", text.Sanitize(e.Batch), b.remote.shown(s.why)))
		case s.why != "":
			b.Notice(fmt.Sprintf("%s failed: %s; its requests are sent one by one", text.Sanitize(e.Batch),
				b.remote.shown(s.why)))
		case !s.ended:
			continue
		default:
			if err := b.merge(ctx, e, s); err != nil {
				return err
			}
		}
		if err := b.ledger.over(e, s.isFull); err != nil {
			return err
		}
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
