package auth

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// Issuer gives tokens.
type Issuer interface {
	// Issue returns a token that is new as far as the Issuer knows. Its errors contain no secrets
	// but those of Secrets.
	Issue(ctx context.Context) (Token, error)
	// Secrets are the values that the Issuer uses to get tokens, by their names.
	Secrets() map[string]string
	// String names the source of the tokens.
	String() string
}

// Reasons why a Keeper gives up.
var (
	// ErrNone means that there never was a token.
	ErrNone = errors.New("no token")
	// ErrRefused means that the server refuses every token, or that the last token has ended and no
	// new one comes.
	ErrRefused = errors.New("no token that is accepted")
)

// Config describes a Keeper.
type Config struct {
	Issuer Issuer
	Life   LifeConfig
	// New is called with every token, before any request gets it.
	New func(value string)
	// Over is called once when no token will come any more, with an ErrNone or an ErrRefused.
	Over func(error)
	// Notice is called with news for the user.
	Notice func(string)
}

// Keeper keeps the token of a run. It asks the Issuer for the first token when a request needs it,
// and makes one call at a time. New makes it. It is safe for concurrent use.
type Keeper struct {
	c      Config
	base   time.Time
	ctx    context.Context // of the calls of the Issuer; it ends, under mu, with the last call
	cancel context.CancelFunc
	asking sync.WaitGroup

	mu      sync.Mutex
	life    *life
	changed chan struct{} // closed, and replaced, when life changes
	over    bool          // no more tokens come
	waiting int           // calls of Take that wait
}

// New returns a Keeper.
func New(c Config) *Keeper {
	k := &Keeper{c: c, base: time.Now(), life: newLife(c.Life), changed: make(chan struct{})}
	k.ctx, k.cancel = context.WithCancel(context.Background())
	return k
}

func (k *Keeper) now() mono.Time { return mono.Of(k.base, time.Now()) }

// Take returns the token for a request. If the request may not go at once, Take waits until that
// may have changed, or ctx ends, and then returns false. By then the request's permit is old, and
// the request must get another.
func (k *Keeper) Take(ctx context.Context) (Pass, bool) {
	k.mu.Lock()
	now := k.now()
	ready, ask, wake := k.life.Ready(now)
	if ask && k.ctx.Err() == nil {
		k.life.Asks(now)
		k.asking.Go(k.ask)
	}
	if ready {
		defer k.mu.Unlock()
		return k.life.Take(now), true
	}
	changed := k.changed
	k.waiting++
	k.mu.Unlock()
	defer func() {
		k.mu.Lock()
		k.waiting--
		k.mu.Unlock()
	}()
	select {
	case <-changed:
	case <-time.After(wake.Sub(now)): // centuries if only changed helps
	case <-ctx.Done():
	case <-k.ctx.Done():
	}
	return Pass{}, false
}

// ask gets a token from the Issuer.
func (k *Keeper) ask() {
	t, err := k.c.Issuer.Issue(k.ctx)
	if err == nil {
		k.c.New(t.Value)
	}
	k.mu.Lock()
	if k.ctx.Err() != nil { // Stop was called, or the Issuer is over
		k.mu.Unlock()
		return
	}
	now := k.now()
	since, lacked := k.life.Lacks(now)
	if err == nil {
		if c := k.life.Issued(now, t); c != fine {
			err = errors.New(string(c))
		}
	}
	var next mono.Time
	var over bool
	if err != nil {
		next, over = k.life.Failed(now)
		k.over = over
	}
	_, lacks := k.life.Lacks(now)
	none := !k.life.Any()
	k.changedLocked()
	if over {
		k.cancel()
	}
	k.mu.Unlock()
	switch {
	case err == nil && lacked:
		k.c.Notice(fmt.Sprintf("there is a token again after %v", now.Sub(since).Round(100*time.Millisecond)))
	case err == nil:
	case over && none:
		k.c.Over(fmt.Errorf("%w: %v: %w", ErrNone, k.c.Issuer, err))
	case over:
		k.c.Over(fmt.Errorf("%w: none for %v: %v: %w", ErrRefused, now.Sub(since).Round(time.Second), k.c.Issuer, err))
	default:
		meanwhile := "the one that is there is sent meanwhile"
		if lacks {
			meanwhile = "nothing is sent meanwhile"
		}
		k.c.Notice(fmt.Sprintf("no new token: %v: %v; asked again in %v, %s", k.c.Issuer, err, next.Sub(now), meanwhile))
	}
}

func (k *Keeper) changedLocked() {
	close(k.changed)
	k.changed = make(chan struct{})
}

// Refused notes that the server refused a request for its token; said is the text of the refusal.
// before means that the server had refused the request with another token, too.
func (k *Keeper) Refused(p Pass, before bool, said string) Verdict {
	k.mu.Lock()
	v := k.life.Refused(k.now(), p, before)
	over := v == Over && !k.over
	if over {
		k.cancel()
	}
	k.changedLocked()
	k.mu.Unlock()
	if over {
		k.c.Over(fmt.Errorf("%w: the server refuses new tokens, too: %s", ErrRefused, said))
	}
	return v
}

// Answered notes an answer that does not refuse the token.
func (k *Keeper) Answered(p Pass) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.life.Answered(p) {
		k.changedLocked()
	}
}

// Unanswered notes the end of a request without an answer.
func (k *Keeper) Unanswered(p Pass) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.life.Unanswered(p) {
		k.changedLocked()
	}
}

// Waits reports whether requests wait for a token. A request that waits for its limit does not need
// one yet.
func (k *Keeper) Waits() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.waiting > 0
}

// Stop breaks off the call of the Issuer, if there is one. No request waits for a token any more.
func (k *Keeper) Stop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.cancel()
}

// Close stops the Keeper, and returns when the call of the Issuer has ended.
func (k *Keeper) Close() {
	k.Stop()
	k.asking.Wait()
}
