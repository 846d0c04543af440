package transport

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/paceline-go/paceline/internal/core/keyring"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/observe"
	"github.com/paceline-go/paceline/provider"
)

// Key is one of the Transport's own credentials: see Config.Keys.
type Key struct {
	// Name distinguishes keys. Logs, errors and Partition.Key show it, so it must not be the
	// secret.
	Name string
	// Target is the Name of the one of Config.Targets to which the key belongs. If empty, the key goes
	// to every Target.
	Target string
	// Account names the organization, project or account of the key. Keys of one Account count in
	// the same limits, and Partition.Key is then the Account. If empty, the Name.
	Account string
	// Limit is Config.Limit for this key's account, for the scopes provider.Key, provider.Model and
	// provider.Route. If nil, Config.Limit. Of several keys of an account, the first key's Limit
	// counts.
	Limit func(p Partition) limit.Limiter
	// Apply puts the credential on a request, which is a clone that only the Base sees. The
	// request's own credential is sent too, unless Apply removes it. Several goroutines may call
	// Apply at once.
	Apply func(r *http.Request)
	// Ordered means that Apply puts a number on each request that must rise at the server, such as a
	// nonce. Then one request of the account is in flight at each host at a time. A request that is
	// refused for its number was not processed, and goes again, within Attempts.
	Ordered bool
	// Gap lets several Ordered requests be in flight: it is the least time between two sends. It must
	// cover the difference between the largest and the smallest one-way latency, and the longest delay
	// from the permit to the write. After a refusal for its number, requests go one at a time for a
	// while. Of several keys of an account, the largest Gap counts; if one is Ordered without a Gap,
	// none. With a Gap, Fill must be 0. If zero, one is in flight.
	Gap time.Duration
}

// ErrKeys: all keys are out of use, or the server denies requests with every key, so the request was not
// sent. The Error that wraps it gives the reason for each key, or the server's words and, as Ready, when
// a request asks again.
var ErrKeys = errors.New("transport: no key is left")

// errRedirect is the error of a request that a server redirected to another host.
var errRedirect = errors.New("transport: redirected to another host, which is to have none of the Keys")

// key is a Key and its counts, which the Transport's lock guards.
type key struct {
	Key
	in      keyring.Key // its place in the Ring, and in Transport.keys
	account *account
	since   time.Time // when it went out
	sent    int64
	tally   limit.Tally
}

// account is the keys that count in the same limits. Each leaf has one way for it.
type account struct {
	name   string
	target string // the only one that it is for; empty: all
	limit  func(Partition) limit.Limiter
	keys   []keyring.Key
	turn   int // see keyring.Ring.Pick

	ordered bool          // see Key.Ordered
	alone   bool          // and without a Gap
	gap     time.Duration // the largest
}

// order returns the account whose requests at a partition must arrive in order; nil: there is none.
func (t *Transport) order(p Partition) *account {
	for _, a := range t.accounts {
		if p.Scope == provider.Key && a.ordered && a.owns(p) {
			return a
		}
	}
	return nil
}

// owns reports whether the limits of a partition are the account's.
func (a *account) owns(p Partition) bool {
	return p.Key == a.name && (a.target == "" || a.target == p.Target)
}

// takeKeys groups the keys by account.
func (t *Transport) takeKeys(keys []Key) error {
	names := map[string]bool{}
	for i, k := range keys {
		switch {
		case k.Name == "":
			return fmt.Errorf("transport: Keys[%d] has no Name", i)
		case names[k.Name]:
			return fmt.Errorf("transport: Keys[%d]: another has the Name %q, too", i, k.Name)
		case k.Apply == nil:
			return fmt.Errorf("transport: Keys[%d]: %q has no Apply", i, k.Name)
		case k.Gap < 0:
			return fmt.Errorf("transport: Keys[%d]: Gap %v is negative", i, k.Gap)
		case k.Gap > 0 && !k.Ordered:
			return fmt.Errorf("transport: Keys[%d]: %q has a Gap and is not Ordered", i, k.Name)
		case k.Gap > 0 && t.config.Fill > 0:
			return fmt.Errorf("transport: Keys[%d]: Fill %d: a Gap does not foresee", i, t.config.Fill)
		}
		names[k.Name] = true
		name := cmp.Or(k.Account, k.Name)
		at := slices.IndexFunc(t.accounts, func(a *account) bool { return a.name == name && a.target == k.Target })
		if at < 0 {
			at = len(t.accounts)
			t.accounts = append(t.accounts, &account{name: name, target: k.Target})
		}
		a := t.accounts[at]
		if a.limit == nil {
			a.limit = k.Limit
		}
		a.ordered, a.alone, a.gap = a.ordered || k.Ordered, a.alone || k.Ordered && k.Gap == 0, max(a.gap, k.Gap)
		a.keys, t.keys = append(a.keys, keyring.Key(i)), append(t.keys, &key{Key: k, in: keyring.Key(i), account: a})
	}
	if len(keys) > 0 && t.config.Organization != nil {
		return errors.New("transport: Keys and Organization are set: whose a key is says its Account")
	}
	return nil
}

// take returns the key for an attempt, and its era: see keyring.Ring.
func (t *Transport) take(a *account, denied *keyring.Denials) (k *key, era uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k = t.keys[t.ring.Pick(a.keys, &a.turn, denied)]
	k.sent++
	return k, t.ring.Era(k.in)
}

// asks reports whether an account has a key in use that has not denied the request.
func (t *Transport) asks(a *account, denied *keyring.Denials) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.asksLocked(a, denied)
}

func (t *Transport) asksLocked(a *account, denied *keyring.Denials) bool {
	return slices.ContainsFunc(a.keys, func(k keyring.Key) bool { return t.ring.Asks(k, denied) })
}

// ownedLocked returns the limits of an account at all hosts.
func (t *Transport) ownedLocked(a *account) (all []*node) {
	for p, n := range t.nodes {
		if p.Scope == provider.Key && a.owns(p) {
			all = append(all, n)
		}
	}
	return all
}

// keyState returns the state of a key for Snapshots.
func (t *Transport) keyState(k *key) observe.KeyState {
	t.mu.Lock()
	state := observe.KeyState{
		Name: k.Name, State: observe.KeyOK, InFlight: int(k.sent - k.tally.Sum()), Counts: observe.StatsOf(k.sent, &k.tally).Counts(),
	}
	if why, out := t.ring.Out(k.in); out {
		state.State, state.Why = why, k.why(why)
	}
	nodes := t.ownedLocked(k.account)
	t.mu.Unlock()
	for _, n := range nodes {
		if state.State == observe.KeyOK {
			t.tellState(&state, n)
		}
	}
	return state
}

// why returns in words why a key is out.
func (k *key) why(out string) string {
	return map[string]string{
		observe.KeyBanned: "the server has banned it", observe.KeyNoCredit: "it has no credit",
		observe.KeyDenied: "the server denies it",
	}[out] + ", since " + k.since.Format(time.RFC3339)
}

// Readmit puts a key back into use, for example after a payment or the end of a ban. Where a server
// denies requests with every key, one request asks again at once. Readmit reports whether the key was
// out, or denied in this way.
func (t *Transport) Readmit(name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.IndexFunc(t.keys, func(k *key) bool { return k.Name == name })
	if i < 0 {
		return false
	}
	denied := false
	for p, n := range t.nodes {
		if to := t.keys[i].account.target; to == "" || to == p.Target {
			ended := n.row.Return()
			n.keysServe(ended)
			denied = denied || ended
		}
	}
	if !t.ring.Return(t.keys[i].in) {
		return denied
	}
	t.closeAccountLocked(t.keys[i].account)
	t.log.Info("key is used again", "key", name)
	t.note(observe.EventBack, Partition{Key: name}, "the key is used again, as told")
	return true
}

// outLocked takes a key out of use until Readmit, by the answer to an attempt of that era.
func (t *Transport) outLocked(k *key, era uint64, why string) {
	if !t.ring.Ban(k.in, era, why) {
		return
	}
	k.since = time.Now()
	t.closeAccountLocked(k.account)
	t.log.Warn("key is out", "key", k.Name, "why", why)
	kind := map[bool]string{true: observe.EventDenied, false: observe.EventBanned}[why == observe.KeyDenied]
	t.note(kind, Partition{Key: k.Name}, "no request goes with the key any more: "+k.why(why))
}

// closeAccountLocked closes or opens the limits of an account at all hosts.
func (t *Transport) closeAccountLocked(a *account) {
	for _, n := range t.ownedLocked(a) {
		t.closeLocked(n, a)
	}
}

// closeLocked closes the limit of an account at one host while none of its keys is in use. Another
// reason to close it stays.
func (t *Transport) closeLocked(n *node, a *account) {
	if out := !t.asksLocked(a, &keyring.Denials{}); n.out != out {
		t.group.Update(func(mono.Time) {
			n.out = out
			n.shutIf(out)
		}, n.limit)
	}
}

// noKeys returns the reasons why all keys are out.
func (t *Transport) noKeys() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var why []string
	for _, k := range t.keys {
		if out, ok := t.ring.Out(k.in); ok {
			why = append(why, k.Name+": "+k.why(out))
		}
	}
	return fmt.Errorf("%w: %s", ErrKeys, strings.Join(why, "; "))
}
