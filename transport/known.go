package transport

import (
	"net/http"

	"github.com/paceline-go/paceline/provider"
)

// known is the provider of a host: a row of the table in package provider.
type known struct {
	row provider.Provider
	// sure means that the provider is configured, known by the host, or proven by an answer with
	// something that only this provider sends. Header fields that others send too prove nothing:
	// they show the server's format, not how it counts.
	sure bool
}

// lookup returns the row of a dialect, if it is not nil and in the table of package provider.
func lookup(d provider.Dialect) (row provider.Provider, ok bool) {
	if d == nil {
		return row, false
	}
	return provider.LookupProvider(d.Name())
}

// runs returns the provider of a host, by the configuration and the host's name; nil: unknown.
func (t *Transport) runs(host string) *known {
	named, _ := provider.ForHost(host)
	for _, d := range []provider.Dialect{t.config.Provider, named} { // the configuration goes before the host's name
		if row, ok := lookup(d); ok {
			return &known{row: row, sure: true}
		}
	}
	if t.config.Preset != "" {
		return &known{row: t.publisher, sure: true}
	}
	return nil
}

// learn records a server's dialect (d, unless that is nil), and the evidence of an answer about its
// provider.
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

// counts returns how the server counts tokens, in the form for tokens.Counting.Of.
func (n *node) counts() string {
	if k := n.known.Load(); k != nil && k.sure {
		return k.row.Tokens
	}
	return ""
}
