package quota

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// Response is what a reading needs of a response.
type Response struct {
	Status int
	Header http.Header
	// Body is its beginning, MaxBody of it at most; more is not looked at. It may be nil: then kinds of refusal that only
	// the body tells are read by their status.
	Body []byte
}

// Dialect reads the responses of one provider. Those of this package have no state.
type Dialect interface {
	// Name is what Lookup finds it by.
	Name() string
	// Read says what the response, read at now, says about limits.
	Read(now time.Time, r Response) Observation
}

// dialect is an entry of the registry.
type dialect struct {
	name string
	// hosts are names of hosts, or, with a dot in front, what they end in.
	hosts []string
	// is reports whether the headers, or the body of a refusal, are this provider's and nobody else's. Nil: they never show.
	is func(*Response) bool
	// inBody says that it refuses with status 200, or says only in the body what is left.
	inBody bool
	// refusers are all names that it may give in RefusedBy: its own, and patterns of its server's.
	refusers []Pattern
	// read fills in the reading; Retry-After is there already, and what it does not refuse is refused by status.
	read func(*reading)
}

func (d *dialect) Name() string { return d.name }

func (d *dialect) Read(now time.Time, resp Response) Observation {
	r := newReading(d, now, resp)
	r.retryAfter()
	d.read(r)
	r.refuse(r.byStatus())
	if age := r.Header.Get("Age"); len(r.Limits) > 0 && age != "" && strings.Trim(age, "0 ") != "" {
		r.Limits = nil
		r.note("the response comes from a cache (Age: %s): what was left is out of date", clip(age))
	}
	if served := r.Status >= 200 && r.Status < 300; served && r.RetryAfter > 0 && r.Refusal == None {
		r.note("it was served, and yet asks to wait")
	}
	r.finish()
	return r.Observation
}

// dialects are all, in the order in which Detect asks them: who has fields of its own comes before who borrows another's.
var dialects []*dialect

func init() {
	dialects = []*dialect{
		anthropic, stripe, shopify, binance, binanceSpot, binanceFutures, bybit, github, discord, groq, azure, openai, notion, slack, okta, atlassian,
		x, gemini, kraken, okx, coinbase, cloudflare, heroku, ietf, reddit, epochDialect, secondsDialect, generic,
	}
}

// Names returns the names of all dialects, sorted.
func Names() []string {
	names := make([]string, len(dialects))
	for i, d := range dialects {
		names[i] = d.name
	}
	slices.Sort(names)
	return names
}

// Lookup returns the dialect of a name.
func Lookup(name string) (Dialect, bool) {
	for _, d := range dialects {
		if d.name == name {
			return d, true
		}
	}
	return nil, false
}

// InBody reports whether a dialect wants the body of answers that were served too: its provider refuses with status 200, or
// says only there what is left. A Dialect of your own says so by a method InBody() bool.
func InBody(d Dialect) bool {
	switch d := d.(type) {
	case *dialect:
		return d.inBody
	case interface{ InBody() bool }:
		return d.InBody()
	}
	return false
}

// Refusers returns the names that the dialect of a name may give in Observation.RefusedBy: no others come. "*" stands for
// whatever the server says, after the names of its that are documented.
func Refusers(dialect string) []Pattern {
	for _, d := range dialects {
		if d.name == dialect {
			return slices.Clone(d.refusers)
		}
	}
	return nil
}

// Pattern is a name in which * stands for any text: "global", "endpoint-*", "*-quota-*".
type Pattern string

// Match reports whether a name is the pattern's.
func (p Pattern) Match(name string) bool {
	head, rest, more := strings.Cut(string(p), "*")
	name, ok := strings.CutPrefix(name, head)
	for ok && more {
		var piece string
		if piece, rest, more = strings.Cut(rest, "*"); !more {
			return strings.HasSuffix(name, piece)
		}
		_, name, ok = strings.Cut(name, piece)
	}
	return ok && name == ""
}

// ForHost returns the dialect of a provider by the host of its API, with or without a port.
func ForHost(host string) (Dialect, bool) {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		host = host[:i]
	}
	host = strings.TrimSuffix(host, ".")
	for _, d := range dialects {
		for _, h := range d.hosts {
			if host == h || h[0] == '.' && strings.HasSuffix(host, h) {
				return d, true
			}
		}
	}
	return nil, false
}

// Detect returns the dialect of a response whose server is not known, by fields that only one provider sends. Where nothing
// shows, it is "generic". Prefer ForHost: behind a gateway the fields may be another's.
func Detect(r Response) Dialect {
	r.Body = r.Body[:min(len(r.Body), MaxBody)]
	for _, d := range dialects {
		if d.is != nil && d.is(&r) {
			return d
		}
	}
	return generic
}

// sends reports whether any of the fields is there.
func sends(names ...string) func(*Response) bool {
	return func(r *Response) bool {
		return slices.ContainsFunc(names, func(n string) bool { return r.Header.Get(n) != "" })
	}
}

// sendsPrefix reports whether a field begins like this. The prefix is in canonical form.
func sendsPrefix(h http.Header, prefix string) bool {
	for name := range h {
		if strings.HasPrefix(http.CanonicalHeaderKey(name), prefix) {
			return true
		}
	}
	return false
}

// mentions reports whether a body that may be an error's holds the text.
func mentions(r *Response, text string) bool {
	return strings.Contains(string(r.Body), text)
}
