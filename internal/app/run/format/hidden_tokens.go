package format

import (
	"slices"
	"sync/atomic"

	"github.com/paceline-go/paceline/internal/secret"
)

// Finder finds the values of keys and tokens: a *secret.Set, or Tokens.
type Finder interface {
	Hide(text []byte, cut secret.Cut) (shown []byte, n int)
	HideBeginning(text []byte, cut secret.Cut) (shown []byte, used, hidden int)
	Beginning() int
	HideIn(text string) (shown string, n int)
	Holds(text string) (name string, ok bool)
	StaysHome(name, value string) bool
	WithoutKeys(query string) string
	Weak() []string
}

// mostTokens is how many tokens a Tokens looks for. If a server repeats a token in an answer, it is
// one that it received lately.
const mostTokens = 16

// Tokens is a secret.Set that learns new tokens. Safe for concurrent use, except for learn.
type Tokens struct {
	now    atomic.Pointer[secret.Set]
	all    atomic.Pointer[[]secret.Key]
	keys   []secret.Key // always looked for
	tokens []secret.Key // the latest last
}

// WithTokens looks for keys, and for the tokens that it learns.
func WithTokens(keys []secret.Key) *Tokens {
	h := &Tokens{keys: keys}
	h.store(keys)
	return h
}

// Learn adds a token to those that are looked for. It must not be called by two goroutines at once.
func (h *Tokens) Learn(token string) {
	one := secret.Key{Name: "token", Value: token}
	if slices.Contains(h.tokens, one) {
		return
	}
	h.tokens = append(h.tokens[max(0, len(h.tokens)-mostTokens+1):], one)
	h.store(append(slices.Clone(h.keys), h.tokens...))
}

func (h *Tokens) store(all []secret.Key) {
	h.all.Store(&all)
	h.now.Store(secret.New(all))
}

// Keys returns the keys and tokens that are looked for.
func (h *Tokens) Keys() []secret.Key { return *h.all.Load() }

func (h *Tokens) Hide(text []byte, cut secret.Cut) ([]byte, int) { return h.now.Load().Hide(text, cut) }

func (h *Tokens) HideIn(text string) (string, int) { return h.now.Load().HideIn(text) }

func (h *Tokens) Holds(text string) (string, bool) { return h.now.Load().Holds(text) }

func (h *Tokens) StaysHome(name, value string) bool { return h.now.Load().StaysHome(name, value) }

func (h *Tokens) WithoutKeys(query string) string { return h.now.Load().WithoutKeys(query) }

func (h *Tokens) Beginning() int { return h.now.Load().Beginning() }

func (h *Tokens) HideBeginning(text []byte, cut secret.Cut) ([]byte, int, int) {
	return h.now.Load().HideBeginning(text, cut)
}

func (h *Tokens) Weak() []string { return h.now.Load().Weak() }
