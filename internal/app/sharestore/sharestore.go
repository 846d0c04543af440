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

// DefaultName is the default of Config.Name.
const DefaultName = "default"

// Config describes the shared limits and their store.
type Config struct {
	// Store has no default. Address is the store's address, without secrets.
	Store   share.Store
	Address string
	// Closer closes the store together with the Limits. If nil, the caller closes it.
	Closer io.Closer
	// Name is the beginning of the limits' names in the store, the same for all processes that
	// share them. If empty, DefaultName.
	Name string
	// Fallback says how the limits work while the store is away.
	Fallback share.Fallback
	// Weight and Least are this process's part of each limit when demand exceeds it: see
	// share.Config.
	Weight, Least float64
	// Logger gets a line when the store is away. If nil, none.
	Logger *slog.Logger
}

// WrongPart returns the field that is invalid, a Weight or a Least, and the reason; nil: both are
// valid. A Weight of 0 means that none is given.
func WrongPart(weight, least float64) (field string, err error) {
	if weight != 0 {
		if err := node.CheckWeight(weight); err != nil {
			return "Weight", err
		}
	}
	return "Least", node.CheckLeast(least)
}

// Limits are the shared limits of one process. They are safe for concurrent use.
type Limits struct {
	config Config
	isNew  func(context.Context) bool // see StateNew; asked once

	mu      sync.Mutex
	members []weak.Pointer[share.Member] // weak, so that those of forgotten partitions go by themselves
}

// New returns Limits, empty at first. It does not call the store.
func New(c Config) *Limits {
	if c.Name == "" {
		c.Name = DefaultName
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	l := &Limits{config: c}
	var once sync.Once
	var is bool
	l.isNew = func(ctx context.Context) bool {
		once.Do(func() { is = isNew(ctx, c.Store, c.Name) })
		return is
	}
	return l
}

// Place says what a limit applies to, by the fields that are not empty.
type Place struct {
	// Upstream is the server, if a process has several.
	Upstream string
	// Model, Resource, Route and Client are the part with a limit of its own; All: every request to
	// the server.
	Model, Resource, Route, Client string
	All                            bool
	// Key is the owner of the limit, as Limits.Key writes it and not in the clear.
	Key string
}

// Name is the name in the store of a place's limit: the same in each process with the same limits.
func (l *Limits) Name(p Place) string {
	var name strings.Builder
	name.WriteString(l.config.Name)
	for _, part := range []struct{ what, is string }{{"", p.Upstream}, {"model ", p.Model}, {"resource ", p.Resource}, {"route ", p.Route},
		{"client ", p.Client}, {"", p.Key}} {
		if part.is != "" {
			name.WriteString("/" + part.what + part.is)
		}
	}
	if p.All {
		name.WriteString("/all")
	}
	return fitting(name.String())
}

// fitting is a name, or a shorter or valid one in its place.
func fitting(name string) string {
	if len(name) > longest || node.CheckName(name) != nil { // clients choose the name of a model
		h := sha256.Sum256([]byte(name))
		start := strings.ReplaceAll(name[:min(len(name), longest-20)], "\x00", "")
		name = strings.ToValidUTF8(start, "") + "…" + hex.EncodeToString(h[:8])
	}
	return name
}

// Key stands for a secret in names. It is the same in every process with the same Name, and useless
// to a reader.
func (l *Limits) Key(secret string) string {
	if secret == "" {
		return ""
	}
	h := sha256.Sum256([]byte("paceline share\x00" + l.config.Name + "\x00" + secret))
	return "key-" + hex.EncodeToString(h[:6])
}

// KeyOf is Key of a request's credential, without the scheme before it in Authorization. So it
// equals the Key in a run, which does not know the field for its key.
func (l *Limits) KeyOf(header map[string][]string, u *url.URL) string {
	return l.KeyBy(header, secret.Credential(header, u))
}

// KeyBy is KeyOf of a request whose credential is known.
func (l *Limits) KeyBy(header map[string][]string, key string) string {
	if a := header["Authorization"]; len(a) > 0 && a[0] != "" {
		if _, rest, ok := strings.Cut(key, " "); ok {
			key = rest
		}
	}
	return l.Key(key)
}

// division is the parts of a limiter.
type division struct {
	// windows are the shared limits of windows, in an order that does not depend on the configuration's.
	windows []limit.Limiter
	// atOnce is the shared bound on requests in flight, the least of several; nil: there is none.
	atOnce *limit.Concurrency
	own    []limit.Limiter // what each process has for itself
}

// divided divides a limiter.
func divided(l limit.Limiter) (d division, err error) {
	for _, part := range limit.Parts(l) {
		switch part := part.(type) {
		case *limit.Concurrency:
			if d.atOnce == nil || part.Rules()[0].N < d.atOnce.Rules()[0].N {
				d.atOnce = part
			}
		case *limit.Adaptive:
			d.own = append(d.own, part)
		default:
			if err := share.Shareable(part); err != nil {
				return division{}, err
			}
			d.windows = append(d.windows, part)
		}
	}
	slices.SortStableFunc(d.windows, func(a, b limit.Limiter) int {
		return strings.Compare(limit.Configuration(a), limit.Configuration(b))
	})
	return d, nil
}

// kept is a limit in the store.
type kept struct {
	name string
	made func() limit.Limiter
}

// kept returns the limits of made that are in the store, under that name. A bound on requests in flight has a
// name of its own, since its requests count for as long as they last.
func (d *division) kept(name string, made func() limit.Limiter) (all []kept) {
	if len(d.windows) > 0 {
		all = append(all, kept{name, func() limit.Limiter { return shared(made()) }})
	}
	if d.atOnce != nil {
		all = append(all, kept{fitting(name + "/in flight"), func() limit.Limiter {
			d, _ := divided(made()) // it was divided before
			return d.atOnce
		}})
	}
	return all
}

func together(all []limit.Limiter) limit.Limiter {
	if len(all) == 1 {
		return all[0]
	}
	return limit.NewAll(all...)
}

// Shareable says why a limiter cannot be shared; nil: it can, or there is nothing to share.
func Shareable(l limit.Limiter) error {
	_, err := divided(l)
	return err
}

// Of returns the limiter under that name: Members for the shared parts of made, and the parts that
// each process has for itself. made is called repeatedly. It must return the same limiter each
// time, or nil: then there is no limit.
func (l *Limits) Of(name string, made func() limit.Limiter) (limit.Limiter, error) {
	d, err := divided(made())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	var all []limit.Limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	l.members = slices.DeleteFunc(l.members, func(p weak.Pointer[share.Member]) bool { return p.Value() == nil })
	for _, k := range d.kept(name, made) {
		m, err := share.New(l.share(k))
		if err != nil {
			return nil, err
		}
		l.members = append(l.members, weak.Make(m))
		all = append(all, m)
	}
	if all = append(all, d.own...); len(all) == 0 {
		return nil, nil
	}
	return together(all), nil
}

func (l *Limits) share(k kept) share.Config {
	return share.Config{
		Store: l.config.Store, Name: k.name, Fallback: l.config.Fallback, Weight: l.config.Weight, Least: l.config.Least,
		Logger: l.config.Logger, Own: k.made,
	}
}

// Begin is Check. If StateNew stated that the limits of this Name are new, Begin also creates a limit that the store does
// not have, and it grants at once.
func (l *Limits) Begin(ctx context.Context, name string, made func() limit.Limiter) error {
	if err := l.Check(ctx, name, made); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, reach)
	defer cancel()
	d, _ := divided(made()) // Check has divided it
	for _, k := range d.kept(name, made) {
		if l.isNew(ctx) {
			_, _ = share.Begin(ctx, l.share(k)) // an error shows at the first request, if it lasts
		}
	}
	return nil
}

// Join is Begin and Of. If the store has no such limit yet, Join creates it. Of two processes that
// begin at once with different limits, one is refused.
func (l *Limits) Join(ctx context.Context, name string, made func() limit.Limiter) (limit.Limiter, error) {
	if err := l.Begin(ctx, name, made); err != nil {
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
			if err := m.Join(ctx); errors.As(err, &other) { // another error shows at the first request, if it lasts
				return nil, l.wrong(m.Rules()[0].Name, other)
			}
		}
	}
	return all, nil
}

// errSeen ends a turn that only reads.
var errSeen = errors.New("seen")

// Check reads the store, and compares the limit under that name, if there is one, with the limit
// from made. The error is the store's, or states the two different limits. If made is nil, Check
// only reads. Otherwise it also writes back the same bytes, or no bytes if there are none, which
// changes nothing. Without that write, a process that may read but not write would wait for ever.
func (l *Limits) Check(ctx context.Context, name string, made func() limit.Limiter) error {
	if made == nil {
		return l.check(ctx, name, "")
	}
	d, err := divided(made())
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	for _, k := range d.kept(name, made) {
		if err := l.check(ctx, k.name, limit.Configuration(k.made())); err != nil {
			return err
		}
	}
	return nil
}

// check is Check of one limit in the store, with its configuration; "": there is none.
func (l *Limits) check(ctx context.Context, name, here string) error {
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

// wrong is the error for a name whose limit in the store differs from the one here.
func (l *Limits) wrong(name string, why error) error {
	if e, ok := why.(*node.ConfigurationError); ok && worded(e.Here) != worded(e.There) {
		why = fmt.Errorf("%w", &node.ConfigurationError{Here: worded(e.Here), There: worded(e.There)})
	}
	return fmt.Errorf("%s in %s: %w; or, where nobody uses it any more: paceline share forget %s %s", name,
		l.config.Address, why, l.config.Address, name)
}

// tries is how often Check tries to write, if reading works. Another process may keep a file locked
// for seconds.
const tries = 3

var (
	errUnread    = errors.New("cannot be reached")
	errUnwritten = errors.New("can be read, and not written")
)

// compare returns two errors: wrong, if the limit in the store differs from the configuration here,
// and err, if the store itself fails.
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
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("no answer within %v", reach)
	}
	return nil, fmt.Errorf("%w: %w", failed, err)
}

// longest is the largest length of a name, in bytes.
const longest = 200

// reach is the longest time for the first answer of a store.
const reach = 10 * time.Second

// Close gives back the unused grants and closes the store. No request goes afterwards. On nil
// Limits it does nothing.
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
