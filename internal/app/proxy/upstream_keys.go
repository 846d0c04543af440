package proxy

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/paceline-go/paceline/internal/core/dispatch"
	"github.com/paceline-go/paceline/internal/secret"
	"github.com/paceline-go/paceline/internal/text"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/provider"
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

// credentialOf returns the client's credential for the upstream of a request. It may be in the body. A form
// or JSON is then read as far as it may have one, before the request is in line.
func credentialOf(r *http.Request) string {
	v := visitOf(r.Context())
	if v == nil {
		return transport.CredentialOf(r)
	}
	found := v.upstream.KeyIn.Credential(r.Header, r.URL, func() []byte {
		said := r.Header.Get("Content-Type") != ""
		if r.ContentLength > secret.MostBody || !said && (r.ContentLength < 0 || r.Header.Get("Expect") != "") {
			return nil
		}
		return v.body.short(secret.MostBody)
	})
	v.upstream.mixture.note(v, found != "")
	return found
}

// mixture notes that a server gets requests with a credential and requests without.
type mixture struct{ with, without, told atomic.Bool }

// note logs once that there are both.
func (m *mixture) note(v *visit, has bool) {
	if m.told.Load() || v.upstream.KeyIn != nil || v.upstream.hasKeys() {
		return
	}
	one, other := &m.with, &m.without
	if !has {
		one, other = other, one
	}
	one.Store(true)
	if other.Load() && !m.told.Swap(true) {
		v.proxy.config.Log.Warn("some requests have a key, and some have none: each key counts apart, and the requests "+
			"without one count together. If these have one, too, --key-in (key_in) names its place", "upstream", v.upstream.Name)
	}
}

// ParseKeyIn reads the places of a client's credential: "header NAME", "parameter NAME" for the query or
// the body, or "none". No text means all places that are known.
func ParseKeyIn(texts []string) (*secret.Where, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	w := &secret.Where{}
	for _, text := range texts {
		kind, name, _ := strings.Cut(strings.TrimSpace(text), " ")
		name = strings.TrimSpace(name)
		one := name != "" && !strings.ContainsAny(name, " :=&")
		switch {
		case kind == "header" && one:
			w.Fields = append(w.Fields, http.CanonicalHeaderKey(name))
		case kind == "parameter" && one:
			w.Parameters = append(w.Parameters, strings.ToLower(name))
		case kind == "none" && name == "" && len(texts) == 1:
		default:
			return nil, fmt.Errorf("%q, expected header NAME, parameter NAME, or none alone", secret.SanitizeText(text))
		}
	}
	return w, nil
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

// braced is what looks like keyWord or nonceWord.
var braced = regexp.MustCompile(`\{[A-Za-z]+\}`)

// Slip returns what was most likely meant to be keyWord or nonceWord, and which of them.
func (f Field) Slip() (word, meant string) {
	for _, w := range braced.FindAllString(string(f.Value), -1) {
		if all := text.Suggest(w, []string{keyWord, nonceWord}); len(all) > 0 && all[0] != w {
			return w, all[0]
		}
	}
	return "", ""
}

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

// rename gives keys of an upstream other names, by the former ones.
func (n *numbers) rename(upstream string, names map[string]string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	next := map[numbered]*dispatch.Nonce{}
	for of, source := range n.all {
		if name, is := names[of.key]; is && of.upstream == upstream {
			of.key = name
		}
		next[of] = source
	}
	n.all = next
}

// lag notices keys whose last number at the server is above the numbers of the proxy.
type lag struct {
	some atomic.Bool // a number was refused
	mu   sync.Mutex
	rows map[string]int  // by key: refusals in a row of a number that was made after another refusal
	told map[string]bool // keys about which a line was logged
}

// lags is how many refusals in a row show that a key's numbers are too low.
const lags = 3

// note takes in an attempt. It logs once for each key that the server has had larger numbers.
func (l *lag) note(v *visit, a *transport.Attempt) {
	isRefused := a.Said.Refusal == provider.Misordered
	if !isRefused && !l.some.Load() || a.Key == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case !isRefused && a.Result == limit.Accepted:
		delete(l.rows, a.Key)
	case isRefused && a.Number > 1 && slices.ContainsFunc(v.upstream.Servers(), (*Upstream).Numbers):
		if l.rows == nil {
			l.rows, l.told = map[string]int{}, map[string]bool{}
		}
		l.rows[a.Key]++
	}
	l.some.Store(l.some.Load() || isRefused)
	if l.rows[a.Key] < lags || l.told[a.Key] {
		return
	}
	l.told[a.Key] = true
	v.proxy.config.Log.Warn("the server has had larger nonces of a key, and refuses those of the proxy. If they had a "+
		"smaller unit, nonce_unit (--nonce-unit) sets it, such as 1us; expected no other program with this key", "upstream", v.upstream.Name, "key", a.Key)
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
