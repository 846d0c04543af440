package classify

import (
	"bytes"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/paceline-go/paceline/provider"
)

// NeedsBody reports whether to read the beginning of the body before Of. It is needed for an answer
// that may be a refusal, and for answers of servers that refuse with status 200. It is not needed
// for an event stream, nor for a stream of documents that was not refused.
func (p *Policy) NeedsBody(a *Evidence) bool {
	return p.limitsInBody(a) || saysWhy(a.Status) && !isEvents(a)
}

// limitsInBody reports whether the body may speak of limits.
func (p *Policy) limitsInBody(a *Evidence) bool { return p.looks(a) && !isEvents(a) }

func isEvents(a *Evidence) bool { return strings.HasPrefix(contentType(a.Header), "text/event-stream") }

// Glances reports whether to read what comes at once of the body of a served answer: a refusal, or
// one of its parts, may be in it. It is cheap: Of reads no more where provider.MayRefuse is false.
// It holds up no answer that comes in pieces, and is needed only where NeedsBody is false.
func (p *Policy) Glances(a *Evidence) bool {
	if a.Status/100 != 2 {
		return false
	}
	kind := contentType(a.Header)
	return isJSON(kind) || provider.IsStream(kind)
}

// looks reports whether the body is to be read for statements about limits.
func (p *Policy) looks(a *Evidence) bool {
	switch {
	case a.Status/100 == 2:
		if !isJSON(contentType(a.Header)) {
			return false
		}
		d, _ := p.dialect(a)
		return d != nil && provider.InBody(d) || p.guesses(a, d)
	case mayRefuse(a.Status):
		return true
	}
	d, _ := p.dialect(a)
	return a.Status >= 400 && d != nil // some providers refuse with 401, 412 or 500
}

// guesses reports whether a served answer of an unknown server may be a refusal.
func (p *Policy) guesses(a *Evidence, d provider.Dialect) bool {
	return p.Guess && d == nil && a.Status/100 == 2
}

// refusalWords are parts of words in refusals. A code alone could come from any server.
var refusalWords = []string{"imit", "oo many", "hrottl", "lockout", "nonce"}

// guess returns the provider whose refusal a served answer is, by its body alone, or nil if it is
// no refusal. Only short bodies count, since longer ones may quote a refusal.
func guess(now time.Time, r provider.Response) provider.Dialect {
	const longest = 2 << 10
	if len(r.Body) > longest || !slices.ContainsFunc(refusalWords, func(w string) bool { return bytes.Contains(r.Body, []byte(w)) }) {
		return nil
	}
	d := provider.Detect(provider.Response{Status: r.Status, Body: r.Body})
	if !provider.InBody(d) || d.Read(now, r).Refusal == provider.None {
		return nil
	}
	return d
}

// dialect returns the dialect of the provider that is known to answer. believed means that it is
// used even if an answer looks like another provider's.
func (p *Policy) dialect(a *Evidence) (d provider.Dialect, believed bool) {
	switch {
	case p.Dialect != nil:
		return p.Dialect, true
	case a.Provider != nil:
		return a.Provider, true
	}
	return a.Shown, false
}

// read fills in the answer's statements about limits. Most answers of an unknown server state
// nothing, and finding that out costs less than a reading.
func (p *Policy) read(a *Evidence, v *Verdict) {
	d, believed := p.dialect(a)
	served, silent := a.Status/100 == 2, len(a.Body) == 0
	refuses := served && !silent && provider.MayRefuse(a.Body)
	if !believed && !refuses && !provider.Speaks(a.Header) && (served && silent || !p.looks(a)) {
		return
	}
	v.now = nowOf(a)
	r := provider.Response{Status: a.Status, Header: a.Header}
	needs := p.limitsInBody(a)
	if needs || refuses {
		r.Body = a.Body
	}
	if p.guesses(a, d) {
		if d = guess(v.now, r); d != nil {
			believed = true
		} else if needs = false; !refuses {
			if r.Body = nil; !provider.Speaks(a.Header) {
				return
			}
		}
	}
	detect := r
	if !needs {
		detect.Body = nil
	}
	p.observe(d, believed, r, detect, v)
	if v.Said.Refusal == provider.None && a.Nonce && a.Status >= 400 && a.Status < 500 && aboutNonce(r.Body) {
		v.Said.Refusal = provider.Misordered
	}
	v.hints(everybody, &v.Outcome)
	v.Sure = sure(v.now, &v.Said)
}

// observe reads an answer. by is the part of it by which an unknown provider is found out.
func (p *Policy) observe(d provider.Dialect, believed bool, r, by provider.Response, v *Verdict) {
	if d != nil {
		if v.Said = d.Read(v.now, r); believed || says(&v.Said) {
			return
		}
	}
	// Behind a gateway the next answer may come from another provider.
	seen := provider.Detect(by)
	name := seen.Name()
	anybody := name == "generic" || name == "ietf" // fields that any server may send do not identify it
	if d != nil && name == v.Said.Dialect {
		return
	}
	other := seen.Read(v.now, r)
	if anybody && d != nil && !says(&other) {
		return
	}
	v.Said = other
	// A body may quote another server, so it identifies the server for this answer only.
	if !anybody && (len(by.Body) == 0 || provider.Detect(provider.Response{Status: r.Status, Header: r.Header}).Name() == name) {
		v.Shown = seen
	}
}

func says(o *provider.Observation) bool { return len(o.Limits) > 0 || len(o.Policies) > 0 }

func nowOf(a *Evidence) time.Time {
	if a.Now.IsZero() {
		if date, err := http.ParseTime(a.Header.Get("Date")); err == nil {
			return date
		}
	}
	return a.Now
}

// mayRefuse reports whether a status can be that of a refusal with its reason in the body.
func mayRefuse(status int) bool {
	switch status {
	case http.StatusBadRequest, http.StatusPaymentRequired, http.StatusForbidden, http.StatusConflict, http.StatusRequestEntityTooLarge,
		http.StatusTeapot, http.StatusLocked, http.StatusTooManyRequests, 430, 498, http.StatusServiceUnavailable, 529:
		return true
	}
	return false
}

func contentType(h http.Header) string {
	if v := h["Content-Type"]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// isJSON reports whether a content type is that of one JSON document, not of a stream of them.
func isJSON(kind string) bool {
	kind, _, _ = strings.Cut(kind, ";")
	kind = strings.ToLower(strings.TrimSpace(kind))
	return kind != "application/stream+json" && (strings.HasSuffix(kind, "/json") || strings.HasSuffix(kind, "+json"))
}

// aboutNonce reports whether a body is a refusal because a number did not rise. Examples: "bad
// nonce: 7 is not above the last one", "Invalid nonce", "Nonce error". For instants: "Timestamp not
// increasing".
func aboutNonce(body []byte) bool {
	body = bytes.ToLower(body[:min(len(body), provider.MaxBody)])
	if !bytes.Contains(body, []byte("nonce")) {
		return bytes.Contains(body, []byte("timestamp")) && bytes.Contains(body, []byte("increas"))
	}
	for _, word := range [...]string{"invalid", "bad ", "small", "low", "above", "greater", "higher", "increas", "order", "used", "incorrect", "nonce error"} {
		if bytes.Contains(body, []byte(word)) {
			return true
		}
	}
	return false
}
