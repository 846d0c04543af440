package main

import (
	"encoding/json"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/paceline-go/paceline/internal/app/explain"
	"github.com/paceline-go/paceline/provider"
)

// answerer is the probable provider of an answer, and the evidence for it.
type answerer struct {
	provider.Dialect
	by     string   // the part of the text that names the provider; empty if --provider, host or fields do
	others []string // other providers that refuse with the same body
	blank  bool     // the text is a body without status and header fields, and no provider refuses with such a body
}

// who finds the provider of an answer. It goes by --provider, the host of the request, the fields
// and the body, and an address in the body. For a body alone it looks for a provider that reads a
// refusal in it, and for the status. It gives the body that status.
func (e *explanation) who(now time.Time, a *explain.Answer) (w answerer) {
	if d, ok := provider.Lookup(e.provider); ok {
		w.Dialect = d
	} else if d, ok = provider.ForHost(a.Host); ok {
		w.Dialect = d
	} else if d, ok = looksLike(a); ok {
		w.Dialect = d
	} else if d, address := addressed(a); d != nil {
		w.Dialect, w.by = d, address
	}
	if a.Bare && !a.Said {
		w.alone(now, a)
	}
	if w.Dialect == nil {
		w.Dialect = provider.Detect(a.Response)
	}
	return w
}

// looksLike returns the dialect of an answer by its form. For a body alone it tries every possible
// status.
func looksLike(a *explain.Answer) (provider.Dialect, bool) {
	d := provider.Detect(a.Response)
	for i := 0; a.Bare && !a.Said && i < len(refusing) && anybodys(d); i++ {
		d = provider.Detect(provider.Response{Status: refusing[i], Header: a.Header, Body: a.Body})
	}
	return d, !anybodys(d)
}

func anybodys(d provider.Dialect) bool {
	p, ok := provider.LookupProvider(d.Name())
	return !ok || p.Kind == "Anybody"
}

// refusing are the possible statuses of a body alone, the likeliest first. Many readings take any
// answer with 429 for a refusal.
var refusing = []int{429, 400, 403, 503, 200, 402, 413, 529}

// alone finds the status of a body alone. If the provider is not known, it also finds the possible
// providers. Only codes in the body are evidence: its words could come from any server.
func (w *answerer) alone(now time.Time, a *explain.Answer) {
	generic, _ := provider.Lookup("generic")
	if w.Dialect != nil {
		if status, _, ok := refusedBy(now, w.Dialect, a.Body); ok {
			a.Status = status
			return
		}
	} else if body, ok := wordless(a.Body); ok {
		refusal := provider.None
		for _, name := range provider.Names() {
			d, _ := provider.Lookup(name)
			status, o, ok := refusedBy(now, d, body)
			switch {
			case !ok || anybodys(d):
			case refusal == provider.None:
				w.Dialect, w.by, a.Status, refusal = d, "what the body is like", status, o.Refusal
			default:
				w.others = append(w.others, name)
			}
		}
		if w.Dialect != nil {
			return
		}
	}
	text := strings.ToLower(string(a.Body))
	if slices.ContainsFunc([]string{"rate limit", "ratelimit", "rate_limit", "too many", "throttl", "quota"},
		func(s string) bool { return strings.Contains(text, s) }) {
		a.Status = http.StatusTooManyRequests
	} else {
		a.Status, w.blank = http.StatusBadRequest, true
	}
	if w.Dialect == nil {
		w.Dialect = generic
	}
}

// refusedBy returns a status for which the provider reads a refusal in this body, and another
// meaning without the body. A status with the same refusal in both cases goes first.
func refusedBy(now time.Time, d provider.Dialect, body []byte) (status int, o provider.Observation, ok bool) {
	read := func(status int, body string) provider.Observation {
		return d.Read(now, provider.Response{Status: status, Header: http.Header{}, Body: []byte(body)})
	}
	for _, status := range refusing {
		o, plain := read(status, string(body)), read(status, "{}")
		if o.Refusal == provider.None || len(o.Problems) > 0 || slices.Contains(o.Notes, provider.Unusual(status)) {
			continue
		}
		plain.Problems, plain.Notes = o.Problems, o.Notes
		if reflect.DeepEqual(o, plain) {
			continue
		}
		for _, usual := range refusing {
			if read(usual, "{}").Refusal == o.Refusal && read(usual, string(body)).Refusal == o.Refusal {
				return usual, read(usual, string(body)), true
			}
		}
		return status, o, true
	}
	return 0, o, false
}

// wordless returns JSON without the strings in it that are sentences.
func wordless(body []byte) ([]byte, bool) {
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		return nil, false
	}
	var strip func(v any)
	strip = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for key, inner := range v {
				if s, is := inner.(string); is && strings.Contains(s, " ") {
					delete(v, key)
				}
				strip(inner)
			}
		case []any:
			for _, inner := range v {
				strip(inner)
			}
		}
	}
	strip(v)
	body, err := json.Marshal(v)
	return body, err == nil
}

// addressed finds an address of a provider in the body of a refusal. It may be a host of its API,
// of its documentation, or of the same domain. Header fields are not searched, since proxies before
// the server put addresses there, too.
func addressed(a *explain.Answer) (provider.Dialect, string) {
	if a.Status < 400 && !a.Bare {
		return nil, ""
	}
	for _, word := range strings.FieldsFunc(string(a.Body),
		func(r rune) bool { return r <= ' ' || strings.ContainsRune(`"'<>()[]{},\`, r) }) {
		i := strings.Index(word, "://")
		if i < 0 {
			continue
		}
		u, err := url.Parse(strings.TrimRight("https"+word[i:], ".:;!?"))
		if err != nil || u.Hostname() == "" {
			continue
		}
		if d := ofHost(u.Hostname()); d != nil {
			return d, u.Hostname()
		}
	}
	return nil, ""
}

// ofHost returns the dialect of a host. The host is a server, or a site of documentation, or in a
// domain of only one provider.
func ofHost(host string) provider.Dialect {
	if d, ok := provider.ForHost(host); ok {
		return d
	}
	var same []string
	for _, p := range provider.Providers() {
		docs, err := url.Parse(p.Docs)
		if _, reads := provider.Lookup(p.Name); err != nil || !reads {
			continue
		}
		if docs.Hostname() == host && host != "github.com" {
			d, _ := provider.Lookup(p.Name)
			return d
		}
		if slices.ContainsFunc(p.Hosts, func(h string) bool { return domain(h) == domain(host) }) {
			same = append(same, p.Name)
		}
	}
	if len(same) != 1 {
		return nil
	}
	d, _ := provider.Lookup(same[0])
	return d
}

// domain is the last two labels of a host.
func domain(host string) string {
	labels := strings.Split(strings.TrimPrefix(host, "."), ".")
	return strings.Join(labels[max(0, len(labels)-2):], ".")
}
