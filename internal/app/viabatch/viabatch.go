package viabatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/paceline-go/paceline/internal/app/run"
	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/text"
)

// Config describes the batches of one input.
type Config struct {
	// Run has checked the input, and is not open. It judges answers, and writes their results.
	Run *run.Run
	// Each passes the requests of the input, from the first one on. It is called more than once.
	Each func(func(*format.Request) error) error
	// Rows says that results have parts of the requests, which are then read once more for each batch.
	Rows bool
	// Provider is the one whose batch API takes the requests, at API: the address before /v1.
	Provider format.Provider
	API      *url.URL
	// Seller names the provider whose prices apply.
	Seller string
	// Ledger is the path of the record of all batches.
	Ledger string
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
	// Notice gets a line at a time for the user, and Progress how far the batches are. If nil, none does.
	Notice   func(string)
	Progress func(Progress)
}

// Progress is how far the batches are that have not ended.
type Progress struct {
	Batches, Requests int
	Done              int       // of the requests, as the provider counts
	Next              time.Time // of the next question to the provider; zero: one is under way
	Silent            string    // why the provider does not answer; empty: it does
}

// Brought is what the batches have brought.
type Brought struct {
	Told       bool // Notice got a summary of it
	Unselected int  // answers of which --select could not make a whole row
}

// ErrRefused says that the provider refuses batches. Nothing more can be done without a change.
var ErrRefused = errors.New("the provider takes no batch")

// batches is one Run.
type batches struct {
	Config
	api      api
	remote   *remote
	ledger   *ledger
	results  *run.Outside
	served   served
	progress Progress
	done     map[*entry]int // of the requests of each batch, at the last look
}

// Run makes batches of all requests without a result, waits for their ends, and writes their results.
// The error is nil if no batch is left. After any error, also that of ctx, the same Config goes on.
func Run(ctx context.Context, c Config) (is Brought, err error) {
	c.Poll = cmp.Or(c.Poll, 30*time.Second)
	if c.Notice == nil {
		c.Notice = func(string) {}
	}
	if c.Progress == nil {
		c.Progress = func(Progress) {}
	}
	b := &batches{Config: c, done: map[*entry]int{}}
	b.remote = newRemote(b)
	b.api = apiOf(b.remote, c.Provider)
	most, size := b.api.bounds()
	b.MostLines, b.MostBytes = cmp.Or(c.MostLines, most), cmp.Or(c.MostBytes, size)
	if b.results, err = c.Run.Outside(); err != nil {
		return is, err
	}
	if b.ledger, err = openLedger(c.Ledger); err == nil {
		is.Told, err = b.run(ctx)
		err = errors.Join(err, b.ledger.file.Close())
	}
	unselected, cerr := b.results.Close()
	is.Unselected = unselected
	return is, errors.Join(err, cerr)
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
		if err := b.rest(ctx, rests*b.Poll); err != nil {
			return false, err
		}
	}
	return b.tell(), nil
}

// give reads the input, and makes batches of all that has neither a result nor a batch.
func (b *batches) give(ctx context.Context) error {
	parts := map[string]*chunk{}
	defer func() {
		for _, c := range parts {
			c.drop()
		}
	}()
	if err := b.Each(func(q *format.Request) error {
		if b.results.Has(q.ID) || b.ledger.taken[q.ID] {
			return context.Cause(ctx)
		}
		kind := q.Estimate.Model + " " + q.URL.Path
		if c := parts[kind]; c != nil && c.isFull(&b.Config, q) {
			delete(parts, kind)
			if err := b.submit(ctx, c); err != nil {
				return err
			}
		}
		if parts[kind] == nil {
			c, err := newChunk(b.api, q)
			if err != nil {
				return err
			}
			parts[kind] = c
		}
		return parts[kind].add(q)
	}); err != nil {
		return err
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
		if err = b.rest(ctx, b.Poll); err == nil {
			if id, err = b.api.find(ctx, &c.entry, b.ledger); err == nil && id == "" {
				id, err = b.api.create(ctx, c)
			}
		}
	}
	if err != nil {
		if _, refused := errors.AsType[*Refusal](err); refused {
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
	if err := b.rest(ctx, b.Poll); err != nil {
		return err
	}
	for _, e := range b.ledger.open() {
		s, err := b.api.look(ctx, e.Batch)
		if err != nil {
			return err
		}
		switch b.done[e] = s.done; {
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

// rest waits before the next question to the provider.
func (b *batches) rest(ctx context.Context, d time.Duration) error {
	p := &b.progress
	p.Batches, p.Requests, p.Done = 0, 0, 0
	if b.ledger != nil {
		for _, e := range b.ledger.open() {
			p.Batches++
			p.Requests += len(e.Requests)
			p.Done += min(b.done[e], len(e.Requests))
		}
	}
	p.Next = time.Now().Add(d)
	b.Progress(*p)
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		p.Next = time.Time{}
		b.Progress(*p)
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
