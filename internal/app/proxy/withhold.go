package proxy

import (
	"encoding/base64"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/paceline-go/paceline/internal/secret"
)

// withhold removes from a request what the upstream must not get: keys of clients for the proxy,
// wherever they stand, the client's credentials, if the proxy has keys of its own, and what a server in
// front says of the client.
func (v *visit) withhold(out *http.Request) {
	out.Header.Del(FieldKey)
	if !v.whole {
		maps.DeleteFunc(out.Header, func(name string, _ []string) bool { return fromServerInFront(name) })
	}
	if v.upstream.hasKeys() {
		for _, name := range keyFields {
			out.Header.Del(name)
		}
	}
	if !v.proxy.clients.keyed {
		return
	}
	for name, values := range out.Header {
		switch {
		case name == "Cookie" || name == "Sec-Websocket-Protocol":
			values = v.withholdParts(values, map[string]string{"Cookie": ";", "Sec-Websocket-Protocol": ","}[name])
		case slices.ContainsFunc(values, func(value string) bool { return v.hasClientKey(name, value) }):
			values = slices.DeleteFunc(slices.Clone(values), func(value string) bool { return v.hasClientKey(name, value) })
		default:
			continue
		}
		if out.Header[name] = values; len(values) == 0 {
			delete(out.Header, name)
		}
	}
	if out.URL.RawQuery != "" {
		parts := v.withholdParts([]string{out.URL.RawQuery}, "&")
		out.URL.RawQuery = strings.Join(parts, "")
	}
}

// withholdForm removes the parameters from a form that the upstream gets in the query, with a key of the
// proxy. Most servers would read those of the form.
func (v *visit) withholdForm(out *http.Request) {
	all := v.upstream.Query
	for _, g := range v.upstream.Targets {
		all = slices.Concat(all, g.Query)
	}
	all = slices.DeleteFunc(slices.Clone(all), func(f Field) bool { return !f.perKey() })
	kind, _, _ := strings.Cut(out.Header.Get("Content-Type"), ";")
	if len(all) == 0 || v.body == nil || out.ContentLength > secret.MostBody || out.Header.Get("Content-Encoding") != "" ||
		!strings.EqualFold(strings.TrimSpace(kind), "application/x-www-form-urlencoded") {
		return
	}
	form := string(v.body.short(secret.MostBody))
	pairs := strings.Split(form, "&")
	pairs = slices.DeleteFunc(pairs, func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		plain, err := url.QueryUnescape(name)
		return err == nil && slices.ContainsFunc(all, func(f Field) bool { return f.Name == plain })
	})
	if rest := strings.Join(pairs, "&"); len(rest) < len(form) {
		v.body.replace([]byte(rest))
		out.ContentLength = int64(len(rest))
	}
}

// fromServerInFront reports whether servers and content networks set this field, to name the client to the
// server behind them. The provider is not their server: such a field would give it addresses, host names and
// users of one's own network. A program that uses a forward proxy has no such server in front.
func fromServerInFront(name string) bool {
	switch name {
	case "Forwarded", "X-Forwarded", "X-Real-Ip", "X-Client-Ip", "X-Cluster-Client-Ip", "X-Original-Forwarded-For",
		"X-Original-For", "X-Original-Host", "X-Envoy-External-Address", "True-Client-Ip", "Cf-Connecting-Ip",
		"Cf-Connecting-Ipv6", "Cf-Pseudo-Ipv4", "Cf-Ipcountry", "Fastly-Client-Ip", "Fly-Client-Ip", "X-Azure-Clientip",
		"X-Azure-Socketip", "X-Appengine-User-Ip":
		return true
	}
	return strings.HasPrefix(name, "X-Forwarded-") || strings.HasPrefix(name, "X-Auth-Request-")
}

// withholdParts removes the parts with a key of a client from a cookie, a query, or a list of
// protocols. It drops values of which nothing is left.
func (v *visit) withholdParts(values []string, separator string) (kept []string) {
	for _, value := range values {
		parts := strings.Split(value, separator)
		all := len(parts)
		parts = slices.DeleteFunc(parts, func(part string) bool {
			name, value, named := strings.Cut(part, "=")
			if !named { // a protocol of OpenAI's Realtime API: openai-insecure-api-key.KEY
				name, value, _ = strings.Cut(part, ".")
			}
			if plain, err := url.QueryUnescape(value); err == nil && v.hasClientKey("Authorization", plain) {
				return true
			}
			return v.hasClientKey("Authorization", value) || v.hasClientKey("Authorization", name)
		})
		if len(parts) < all {
			value = strings.TrimLeft(strings.Join(parts, separator), " ")
		}
		if value != "" {
			kept = append(kept, value)
		}
	}
	return kept
}

// hasClientKey reports whether the value of a field has a key of a client in it. It looks for the
// key of this request in every field, and for keys of any client where keys may stand.
func (v *visit) hasClientKey(name, value string) bool {
	if value == "" {
		return false
	}
	if v.repeats(value) {
		return true
	}
	if !secret.PrivateField(name) {
		return false
	}
	key := keyIn(value)
	if key == "" {
		return false
	}
	if v.proxy.clients.owner(key) >= 0 {
		return true
	}
	// Of a name and a password, either may be a key.
	scheme, rest, _ := strings.Cut(strings.TrimSpace(value), " ")
	if !strings.EqualFold(scheme, "Basic") {
		return false
	}
	pair, err := base64.StdEncoding.DecodeString(strings.TrimSpace(rest))
	if err != nil {
		return false
	}
	user, password, _ := strings.Cut(string(pair), ":")
	return v.repeats(string(pair)) || v.proxy.clients.owner(user) >= 0 || v.proxy.clients.owner(password) >= 0
}

// repeats reports whether a text has the client's key in it. A short key has to be all of it.
func (v *visit) repeats(text string) bool {
	if len(v.clientKey) < secret.MinLen {
		return v.clientKey != "" && text == v.clientKey
	}
	return strings.Contains(text, v.clientKey)
}
