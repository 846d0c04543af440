package proxy

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/paceline-go/paceline/internal/core/dispatch"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/transport"
)

// keys are the keys in transport's form. Transport chooses the key of a request when the request
// goes.
func (u *Upstream) keys() (all []transport.Key) {
	for i, g := range u.Targets {
		for _, k := range u.at(i).keys() {
			k.Target = g.Name
			all = append(all, k)
		}
	}
	numbers := u.Numbers()
	for _, k := range u.Keys {
		all = append(all, transport.Key{Name: k.Name, Apply: func(r *http.Request) { u.apply(r, k, numbers) },
			Ordered: numbers, Gap: u.NonceGap})
	}
	return all
}

// hasKeys reports whether the upstream, or one of its targets, has keys in place of those of clients.
func (u *Upstream) hasKeys() bool {
	return len(u.Keys) > 0 || slices.ContainsFunc(u.Targets, func(g Target) bool { return len(g.Keys) > 0 })
}

// apply puts a key into a request and, if it numbers, the next number of the key. The sender of a Leave
// learns the key's name alone.
func (u *Upstream) apply(r *http.Request, k Key, numbers bool) {
	if l := leaveOf(r); l != nil {
		l.Key = k.Name
		return
	}
	fill := words{key: k.Secret}
	if numbers {
		v := visitOf(r.Context())
		fill.nonce = v.proxy.numbers.next(numbered{v.upstream.Name, k.Name, u.NonceUnit})
	}
	for _, f := range u.Header {
		if f.perKey() {
			r.Header.Set(f.Name, f.fill(fill))
		}
	}
	r.URL.RawQuery = setQuery(r.URL.RawQuery, u.Query, fill, true)
}

// The words in the value of a field: the secret of a key, and a number that rises with its attempts.
const (
	keyWord   = "{key}"
	nonceWord = "{nonce}"
)

// words are what stands for keyWord and nonceWord.
type words struct {
	key   Secret
	nonce uint64
}

func (f Field) usesKey() bool { return strings.Contains(string(f.Value), keyWord) }

func (f Field) usesNonce() bool { return strings.Contains(string(f.Value), nonceWord) }

// perKey reports whether the value of the field depends on the key of a request.
func (f Field) perKey() bool { return f.usesKey() || f.usesNonce() }

// fill returns the value with words in it.
func (f Field) fill(w words) string {
	if !f.usesNonce() {
		return strings.ReplaceAll(string(f.Value), keyWord, string(w.key))
	}
	return strings.NewReplacer(keyWord, string(w.key), nonceWord, strconv.FormatUint(w.nonce, 10)).Replace(string(f.Value))
}

// Numbers reports whether requests get a number that rises with their key.
func (u *Upstream) Numbers() bool {
	return slices.ContainsFunc(slices.Concat(u.Header, u.Query), Field.usesNonce)
}

// numbers are the sources of numbers, by upstream and key. They count by the wall clock, so numbers rise
// over a restart and over a suspended machine. A changed configuration goes on with them.
type numbers struct {
	mu  sync.Mutex
	all map[numbered]*dispatch.Nonce
}

// numbered is what a source is for: a key, and its unit.
type numbered struct {
	upstream, key string
	unit          time.Duration
}

// next returns a number above all before it for the same.
func (n *numbers) next(of numbered) uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.all == nil {
		n.all = map[numbered]*dispatch.Nonce{}
	}
	if n.all[of] == nil {
		source, err := dispatch.NewNonce(time.Time{}, dispatch.NonceConfig{Unit: of.unit})
		if err != nil {
			panic(err) // cannot fail: Checked has seen the unit
		}
		n.all[of] = source
	}
	return n.all[of].Next(mono.Time(time.Now().UnixNano()))
}

// Readmit puts all excluded keys back into use, for instance after a payment or the end of a ban.
// It returns their names, each with its upstream's. A key that is still bad is excluded again at
// its first request.
func (p *Proxy) Readmit() (again []string) {
	p.applying.Lock() // so that no transport is replaced meanwhile
	defer p.applying.Unlock()
	for _, u := range p.latest.Load().routes {
		for _, k := range u.keys() {
			if u.transport.Readmit(k.Name) {
				again = append(again, k.Name+" of "+u.Name)
			}
		}
	}
	return again
}
