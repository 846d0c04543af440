package transport

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
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
	// Was is the Name that the key had before, for Transport.With: under its new Name it goes on as it was. If
	// empty, the key had this Name before, or is new.
	Was string
	// Like is the Name of another of the Keys, for Transport.With with a new key: it may have sent with this
	// credential, so what it has sent counts in the limits of both. If empty, nothing of the key counts yet.
	Like string
	// Away means that no request goes with the key, for Transport.With. What is known of it stays: whether it is
	// out of use, and what it has sent. An Away key that comes back goes on with that. It needs no Apply.
	Away bool
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

// key is a Key as one configuration has it. The next one has another key of the same use.
type key struct {
	Key
	*use
	account *account // nil: it is Away
}

// use is the use of a key, under all its names. The Transport's lock guards it, but for puts.
type use struct {
	in    keyring.Key // its place in the Ring
	since time.Time   // when it went out
	sent  int64
	tally limit.Tally
	puts  atomic.Pointer[func(*http.Request)] // the latest Apply
}

// account is the keys that count in the same limits. Each leaf has one way for it.
type account struct {
	name   string
	target string // the only one that it is for; empty: all
	limit  func(Partition) limit.Limiter
	keys   []*key
	turn   int // see keyring.Ring.Pick

	ordered bool          // see Key.Ordered
	alone   bool          // and without a Gap
	gap     time.Duration // the largest
}

// order returns the account whose requests at a partition must arrive in order; nil: there is none.
func (t *Transport) order(p Partition) *account {
	for _, a := range t.choice.Load().accounts {
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

// take returns the key for an attempt, and its era: see keyring.Ring.
func (t *Transport) take(a *account, denied *keyring.Denials) (k *key, era uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]keyring.Key, 0, 8)
	for _, k := range a.keys {
		all = append(all, k.in)
	}
	in := t.ring.Pick(all, &a.turn, denied)
	k = a.keys[slices.Index(all, in)]
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
	return slices.ContainsFunc(a.keys, func(k *key) bool { return t.ring.Asks(k.in, denied) })
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
	k := t.choice.Load().key(name)
	if k == nil {
		return false
	}
	denied := t.keysServeLocked(k.Target)
	if !t.ring.Return(k.in) {
		return denied
	}
	t.closeAccountLocked(k.account)
	t.log.Info("key is used again", "key", name)
	t.note(observe.EventBack, Partition{Key: name}, "the key is used again, as told")
	return true
}

// keysServeLocked ends the pauses of servers that deny requests with every key, and reports whether there was one. A
// key for this Target, or for all, may serve them.
func (t *Transport) keysServeLocked(target string) (denied bool) {
	for p, n := range t.nodes {
		if target == "" || target == p.Target {
			ended := n.row.Return()
			n.keysServe(ended)
			denied = denied || ended
		}
	}
	return denied
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
	if a == nil { // of a key that is Away
		return
	}
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
	for _, k := range t.choice.Load().keys {
		if out, ok := t.ring.Out(k.in); ok && !k.Away {
			why = append(why, k.Name+": "+k.why(out))
		}
	}
	return fmt.Errorf("%w: %s", ErrKeys, strings.Join(why, "; "))
}
