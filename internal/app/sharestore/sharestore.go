// Package sharestore has the limits that run and proxy share with other processes by a store: what each is called there, and which can be
// shared at all. Package share does the rest.
package sharestore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
	"weak"

	"github.com/paceline-go/paceline/internal/core/node"
	"github.com/paceline-go/paceline/internal/secret"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/share"
)

// DefaultName is what limits are called if nobody says.
const DefaultName = "default"

// Config says where limits are shared, and how.
type Config struct {
	// Store has no default. Address is what it was opened by, without secrets.
	Store   share.Store
	Address string
	// Closer closes the store, with the Limits. If nil, it is the caller's.
	Closer io.Closer
	// Name is what the names of the limits begin with in the store, for all who share them. If empty, DefaultName.
	Name string
	// Fallback is what becomes of them while the store is away.
	Fallback share.Fallback
	// Weight and Least are the part of each of them that this process has where there is not enough for all, as in share.Config.
	Weight, Least float64
	// Logger is told when the store is away. If nil, nobody.
	Logger *slog.Logger
}

// WrongPart says whether a Weight (0: none is said) or a Least makes no sense, and why; nil: both do.
func WrongPart(weight, least float64) (field string, err error) {
	if weight != 0 {
		if err := share.CheckWeight(weight); err != nil {
			return "Weight", err
		}
	}
	return "Least", share.CheckLeast(least)
}

// Limits are the shared limits of one process. Safe for concurrent use.
type Limits struct {
	config Config

	mu      sync.Mutex
	members []weak.Pointer[share.Member] // those of partitions that are forgotten go by themselves
}

// New returns Limits of which there is none yet. It asks the store for nothing.
func New(c Config) *Limits {
	if c.Name == "" {
		c.Name = DefaultName
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return &Limits{config: c}
}

// Place is what a limit is of: whatever is not empty.
type Place struct {
	// Upstream is the server, where a process speaks to several.
	Upstream string
	// Model, Route and Client are what of it has the limit for itself; All: everything that goes there.
	Model, Route, Client string
	All                  bool
	// Key says whose limit it is, as Limits.Key has it and not in the clear.
	Key string
}

// Name is what the limit of a place is called in the store: the same in each process that has the same limits.
func (l *Limits) Name(p Place) string {
	name := l.config.Name
	for _, part := range []struct{ what, is string }{{"", p.Upstream}, {"model ", p.Model}, {"route ", p.Route}, {"client ", p.Client}, {"", p.Key}} {
		if part.is != "" {
			name += "/" + part.what + part.is
		}
	}
	if p.All {
		name += "/all"
	}
	if len(name) > longest || share.CheckName(name) != nil { // clients say of which model they are
		h := sha256.Sum256([]byte(name))
		start := strings.ReplaceAll(name[:min(len(name), longest-20)], "\x00", "")
		name = strings.ToValidUTF8(start, "") + "…" + hex.EncodeToString(h[:8])
	}
	return name
}

// Key stands for a secret in names: the same wherever the limits are called the same, and worth nothing to whoever reads it.
func (l *Limits) Key(secret string) string {
	if secret == "" {
		return ""
	}
	h := sha256.Sum256([]byte("paceline share\x00" + l.config.Name + "\x00" + secret))
	return "key-" + hex.EncodeToString(h[:6])
}

// KeyOf is Key of what in a request says who asks, without the word before it in Authorization: as a run has a key that it is given, which
// does not know where it will stand.
func (l *Limits) KeyOf(header map[string][]string, u *url.URL) string {
	key := secret.Credential(header, u)
	if a := header["Authorization"]; len(a) > 0 && a[0] != "" {
		if _, rest, ok := strings.Cut(key, " "); ok {
			key = rest
		}
	}
	return l.Key(key)
}

// divided are the parts of a limiter: those that are shared, in an order that does not depend on how they were written down, and those that
// each process has for itself, as a bound on what it has in flight.
func divided(l limit.Limiter) (all []limit.Limiter, own []limit.Limiter, err error) {
	for _, part := range limit.Parts(l) {
		switch part.(type) {
		case *limit.Concurrency, *limit.Adaptive:
			own = append(own, part)
		default:
			if err := share.Shareable(part); err != nil {
				return nil, nil, err
			}
			all = append(all, part)
		}
	}
	slices.SortStableFunc(all, func(a, b limit.Limiter) int { return strings.Compare(says(a), says(b)) })
	return all, own, nil
}

// says is the configuration of a limiter that can be shared, and so is a Keeper.
func says(l limit.Limiter) string {
	k, _ := limit.AsKeeper(l)
	return k.Configuration()
}

func together(all []limit.Limiter) limit.Limiter {
	if len(all) == 1 {
		return all[0]
	}
	return limit.NewAll(all...)
}

// Shareable says why what is limited so cannot be shared; nil: it can, or there is nothing to share.
func Shareable(l limit.Limiter) error {
	_, _, err := divided(l)
	return err
}

// Of returns the limiter under that name: a Member of what made returns, and what of that each process has for itself. made is called
// again and again, and has to return the same each time, or nil: then there is no limit.
func (l *Limits) Of(name string, made func() limit.Limiter) (limit.Limiter, error) {
	all, own, err := divided(made())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(all) == 0 {
		if len(own) == 0 {
			return nil, nil
		}
		return together(own), nil
	}
	m, err := share.New(share.Config{
		Store: l.config.Store, Name: name, Fallback: l.config.Fallback, Weight: l.config.Weight, Least: l.config.Least, Logger: l.config.Logger,
		Own: func() limit.Keeper {
			all, _, _ := divided(made())
			k, _ := limit.AsKeeper(together(all))
			return k
		},
	})
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.members = slices.DeleteFunc(l.members, func(p weak.Pointer[share.Member]) bool { return p.Value() == nil })
	l.members = append(l.members, weak.Make(m))
	return together(append([]limit.Limiter{m}, own...)), nil
}

// Join is Check and Of. Where there is no such limit yet, it is this one from now on: of two that begin at once with different limits one is
// refused.
func (l *Limits) Join(ctx context.Context, name string, made func() limit.Limiter) (limit.Limiter, error) {
	if err := l.Check(ctx, name, made); err != nil {
		return nil, err
	}
	all, err := l.Of(name, made)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, reach)
	defer cancel()
	for _, part := range limit.Parts(all) {
		if m, ok := part.(*share.Member); ok {
			var other *node.ConfigurationError
			if err := m.Join(ctx); errors.As(err, &other) { // whatever else it is will be told when there are requests, if it lasts
				return nil, l.wrong(name, other)
			}
		}
	}
	return all, nil
}

// errSeen ends a turn that is only to look.
var errSeen = errors.New("seen")

// Check reaches the store, and finds out whether the limit under that name, if there is one already, is what made returns. The error is the
// store's, or says what is there and what is here. Where made is nil it only looks; otherwise it puts what is there, or no bytes, which is as if
// there were nothing: who may read and not write would wait for ever.
func (l *Limits) Check(ctx context.Context, name string, made func() limit.Limiter) error {
	var here string
	if made != nil {
		all, _, err := divided(made())
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if len(all) > 0 {
			here = says(together(all))
		}
	}
	ctx, cancel := context.WithTimeout(ctx, reach)
	defer cancel()
	var wrong, err error
	for range tries {
		wrong, err = l.compare(ctx, name, here)
		if err == nil || !errors.Is(err, errUnwritten) {
			break
		}
	}
	switch {
	case err != nil:
		return fmt.Errorf("%s %w", l.config.Address, err)
	case wrong != nil:
		return l.wrong(name, wrong)
	}
	return nil
}

// wrong says that what is under a name is not what is here.
func (l *Limits) wrong(name string, why error) error {
	return fmt.Errorf("%s in %s: %w; or, where nobody uses it any more: paceline share forget %s %s", name, l.config.Address, why, l.config.Address, name)
}

// tries is how often a store that could be read is to fail to be written, as a file does that others keep for seconds.
const tries = 3

var (
	errUnread    = errors.New("cannot be reached")
	errUnwritten = errors.New("can be read, and not written")
)

// compare returns what is wrong with what a store has, beside a configuration here, and why the store itself fails.
func (l *Limits) compare(ctx context.Context, name, here string) (wrong, err error) {
	failed := errUnread
	err = l.config.Store.Turn(ctx, name, func(r share.Reading) ([]byte, error) {
		wrong, failed = nil, errUnwritten
		b, err := node.Decode(r.Blob)
		var version *node.VersionError
		switch {
		case errors.As(err, &version):
			wrong = err
		case err == nil && b.Incarnation == r.Incarnation && here != "" && b.Configuration != here:
			wrong = &node.ConfigurationError{Here: here, There: b.Configuration}
		case here != "":
			return append([]byte{}, r.Blob...), nil // not nil, which a database takes for no value
		}
		return nil, errSeen
	})
	if err == nil || errors.Is(err, errSeen) {
		return wrong, nil
	}
	return nil, fmt.Errorf("%w: %w", failed, err)
}

// longest is how long a name may be, in bytes.
const longest = 200

// reach is how long a store may take to answer at first.
const reach = 10 * time.Second

// Close gives back what was granted and not sent, ends, and closes the store. Nothing goes afterwards. Where there are no Limits (nil), it does nothing.
func (l *Limits) Close() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	members := l.members
	l.members = nil
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	var wg sync.WaitGroup
	errs := make([]error, len(members))
	for i, p := range members {
		if m := p.Value(); m != nil {
			wg.Go(func() { errs[i] = m.Close(ctx) })
		}
	}
	wg.Wait()
	if l.config.Closer != nil {
		errs = append(errs, l.config.Closer.Close())
	}
	return errors.Join(errs...)
}
