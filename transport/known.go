package transport

import (
	"net/http"

	"github.com/paceline-go/paceline/provider"
)

// known is the provider that is known to run a host: a row of quota's table.
type known struct {
	row provider.Provider
	// sure says that the provider is configured, or known by the host, or that an answer had what only this provider sends. Header
	// fields that others send as well prove nothing: they show how a server speaks, not how it counts.
	sure bool
}

// lookup returns the row of a dialect, if it is not nil and one of quota's.
func lookup(d provider.Dialect) (row provider.Provider, ok bool) {
	if d == nil {
		return row, false
	}
	return provider.LookupProvider(d.Name())
}

// runs returns who runs a host, as far as the configuration and the host's name say; nil: they do not.
func (t *Transport) runs(host string) *known {
	named, _ := provider.ForHost(host)
	for _, d := range []provider.Dialect{t.config.Provider, named} { // what is configured goes before what the host is known by
		if row, ok := lookup(d); ok {
			return &known{row: row, sure: true}
		}
	}
	if t.config.Preset != "" {
		return &known{row: t.publisher, sure: true}
	}
	return nil
}

// learn notes what a server was said to be (d, unless that is nil), and what an answer shows it to be.
func (n *node) learn(d provider.Dialect, h http.Header) {
	k := n.known.Load()
	if row, ok := lookup(d); ok && (k == nil || k.row.Name != row.Name) {
		k = &known{row: row, sure: row.Organization == ""}
		n.known.Store(k)
	}
	if k != nil && !k.sure && h.Get(k.row.Organization) != "" {
		n.known.Store(&known{row: k.row, sure: true})
	}
}

// counts returns how the server counts tokens, as tokens.Counting.Of takes it.
func (n *node) counts() string {
	if k := n.known.Load(); k != nil && k.sure {
		return string(k.row.Tokens)
	}
	return ""
}
