package transport

import (
	"cmp"
	"hash/maphash"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"unicode"

	"github.com/paceline-go/paceline/internal/secret"
	"github.com/paceline-go/paceline/internal/send/costs"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/tokens"
)

// Partition names what a request counts in, or one of the scopes of it. A request to Host with Key,
// for Model, to Route, of Resource counts in up to five scopes:
//
//   - provider.IP: Host
//   - provider.Key: Host and Key
//   - provider.Model: Host, Key and Model
//   - provider.Resource: Host, Key and Resource; or Host and Resource (see provider.OfAddress)
//   - provider.Route: Host, Key and Route
type Partition struct {
	// Scope is empty if the fields are those of a whole request.
	Scope provider.Scope
	// Target is the Name of one of Config.Targets. Its Host is then that of Host. Empty: there are none,
	// or the request is not sent yet.
	Target string
	// Host is the server's name, in lower case, with its port unless that is the scheme's default.
	Host string
	// Key stands for the credential and never contains it. If several keys share limits, one stands
	// for all. Empty: none.
	Key string
	// Model is a language model. For a request it is the common name of models that share limits:
	// gpt-4o for gpt-4o-2024-08-06. Empty: none, or unknown.
	Model string
	// Route is the method and the path, without the parts that differ from object to object: "GET
	// /users/*/posts".
	Route string
	// Resource is a named part of the key's quota: "search". If the configuration does not set it, it
	// is that of the request's charge: see Config.Charges. Empty: none but the key's.
	Resource string
	// Client is the client's name, which Config.Client sets. A client's own limit (ScopeClient) has
	// no other field.
	Client string
}

// String describes the partition for people.
func (p Partition) String() string {
	s := p.Host
	if p.Scope == provider.All {
		return "all requests"
	}
	if p.Target != "" {
		s = "target " + p.Target + " " + s
	}
	if p.Key != "" {
		s += " key " + p.Key
	}
	if p.Model != "" {
		s += " model " + p.Model
	}
	if p.Resource != "" && p.Scope != "" {
		s += " resource " + p.Resource
	}
	if p.Route != "" {
		s += " " + p.Route
	}
	if p.Scope == ScopeClient {
		s = "client " + p.Client
	} else if p.Client != "" {
		s += " client " + p.Client
	}
	// Paths and models come from strangers. They must not begin a line of a log.
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
}

// maxField is how much of a field is kept, so that strangers cannot fill the memory. A few further
// bytes distinguish longer fields.
const maxField = 256

// bounded returns p with short fields.
func (p Partition) bounded() Partition {
	for _, f := range [...]*string{&p.Target, &p.Host, &p.Key, &p.Model, &p.Resource, &p.Route, &p.Client} {
		if len(*f) > maxField {
			*f = (*f)[:maxField] + "…" + hash(*f)
		}
	}
	return p
}

// own returns p with copies of its fields, which keep nothing larger alive, such as a whole URL.
func (p Partition) own() Partition {
	for _, f := range [...]*string{&p.Target, &p.Host, &p.Key, &p.Model, &p.Resource, &p.Route, &p.Client} {
		*f = strings.Clone(*f)
	}
	return p
}

// LogValue is a group of the fields that are set.
func (p Partition) LogValue() slog.Value {
	attrs := make([]slog.Attr, 0, 8)
	for _, f := range [...]struct{ name, value string }{{"scope", string(p.Scope)}, {"target", p.Target}, {"host", p.Host},
		{"key", p.Key}, {"model", p.Model}, {"resource", p.Resource}, {"route", p.Route}, {"client", p.Client}} {
		if f.value != "" {
			attrs = append(attrs, slog.String(f.name, f.value))
		}
	}
	return slog.GroupValue(attrs...)
}

// at returns the part of p in a scope, and whether there is one.
func (p Partition) at(s provider.Scope) (Partition, bool) {
	has, q := s.Info(), Partition{Scope: s, Target: p.Target, Host: p.Host}
	if has.Key {
		q.Key = p.Key
	}
	if has.Model {
		q.Model = p.Model
	}
	if has.Resource {
		if q.Resource = p.Resource; provider.OfAddress(p.Resource) {
			q.Key = ""
		}
	}
	if has.Route {
		q.Route = p.Route
	}
	return q, !(has.Model && q.Model == "" || has.Resource && q.Resource == "" || has.Route && q.Route == "")
}

// PartitionOf returns the Partition of a request, where the configuration has no function for it.
//
// Key is a hash of the credential that is valid in this process alone. CredentialOf says what that is.
// Model is read from paths like Azure's and Google's. Route has "*" for each piece of the path that
// looks like an identifier. Such a piece has a digit, other than a version such as v1, or is longer
// than 40 bytes.
func PartitionOf(r *http.Request) Partition { return PartitionBy(r, CredentialOf(r)) }

// PartitionBy is PartitionOf for a server whose requests have their credential elsewhere. An empty
// credential means that the request has none.
func PartitionBy(r *http.Request, credential string) Partition {
	p := Partition{Host: hostOf(r), Model: tokens.ModelOf(r.URL), Route: costs.Route(r.Method, r.URL.Path)}
	if credential != "" {
		p.Key = hash(credential)
	}
	return p
}

func hostOf(r *http.Request) string {
	host := r.URL.Host
	switch r.URL.Scheme {
	case "http":
		host = strings.TrimSuffix(host, ":80")
	case "https":
		host = strings.TrimSuffix(host, ":443")
	}
	return strings.ToLower(host)
}

// seed makes a logged hash useless to its readers.
var seed = maphash.MakeSeed()

func hash(s string) string { return strconv.FormatUint(maphash.String(seed, s), 36) }

// CredentialOf returns the text that PartitionOf hashes: a secret, or the key's name in a
// signature. Empty: there is none.
//
// The credential is the Authorization header, a provider's header for API keys, or a parameter such as
// api_key in the query or in the body. If an Authorization signs each request, only its part that names
// the key counts, and so it is with a JWT that lives for an hour or less. A body counts if it is a form or JSON, is at most 64 KiB long, and the request has a
// GetBody.
func CredentialOf(r *http.Request) string {
	return (*secret.Where)(nil).Credential(r.Header, r.URL, func() []byte { return copyOf(r) })
}

// copyOf returns a copy of a short body. It returns nil if there is no copy to be had, also by a GetBody
// that panics.
func copyOf(r *http.Request) (all []byte) {
	if r.GetBody == nil || r.ContentLength <= 0 || r.ContentLength > secret.MostBody {
		return nil
	}
	defer func() {
		if recover() != nil {
			all = nil
		}
	}()
	body, err := r.GetBody()
	if err != nil {
		return nil
	}
	defer body.Close()
	if all, err = io.ReadAll(io.LimitReader(body, secret.MostBody+1)); err != nil {
		return nil
	}
	return all
}

func routeOf(r *http.Request) string { return costs.Route(r.Method, r.URL.Path) }

// sharedLocked returns p with the model's name for limits. For a gateway, the models count as those
// of the provider that shares the most.
func (t *Transport) sharedLocked(p Partition) Partition {
	host := t.config.Provider
	if host == nil {
		if n := t.nodes[Partition{Scope: provider.IP, Host: p.Host}]; n != nil {
			host = n.provider
		} else if d, ok := provider.ForHost(p.Host); ok {
			host = d
		}
	}
	vendor := cmp.Or(t.publisher.Name, "anthropic")
	if host != nil {
		vendor = host.Name()
	}
	p.Model = provider.SharedModel(vendor, p.Model)
	return p
}

// In reports whether requests of p count in the limits of scope, whose Scope is set. A request without
// a resource counts in each resource of its key: earlier versions recorded none.
func (p Partition) In(scope Partition) bool {
	switch scope.Scope {
	case provider.All:
		return true
	case ScopeClient:
		return p.Client == scope.Client
	}
	if scope.Scope == provider.Resource && p.Resource == "" {
		p.Resource = scope.Resource
	}
	q, ok := p.at(scope.Scope)
	return (ok || scope.Scope == provider.Model) && q == scope // requests without a model count together
}
