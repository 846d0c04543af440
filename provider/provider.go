package provider

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Response is the part of an answer that a reading needs.
type Response struct {
	Status int
	Header http.Header
	// Body is the beginning of the body, at most MaxBody of it; the rest is not read. It may be
	// nil. The status alone then decides between kinds of refusal that only the body distinguishes.
	Body []byte
}

// Dialect reads the responses of one provider. Those of this package have no state.
type Dialect interface {
	// Name is the name for Lookup.
	Name() string
	// Read returns what the response, read at now, states about limits.
	Read(now time.Time, r Response) Observation
}

// Provider is all known facts about a provider: a row of the table. It is a copy, so a change of it
// changes nothing else.
type Provider struct {
	// Name is the name for Lookup, if the provider's answers can be read. Title is for people.
	Name, Title string
	// Kind is what it provides. The table is grouped by it.
	Kind string
	// Hosts are names of hosts, or, with a dot in front, endings of such names.
	Hosts []string
	// SDKs are the names of packages and errors of its client libraries, as in traces: "openai.*"
	// stands for openai.RateLimitError. Some servers are used with the library of another provider.
	SDKs []Pattern
	// Docs is where its limits are documented. AsOf is the last check of that page: a year, or a
	// year and month.
	Docs, AsOf string
	// Silent means that it documents limits, but states nothing about them before it refuses.
	Silent bool
	// Limited is the scope of a refusal by a limit, if neither a name nor the used-up limit decides
	// it. Banned is the scope of a ban.
	Limited, Banned Scope
	// Refusers are all names that Observation.RefusedBy may have: the provider's own, and patterns
	// for the names of its servers.
	Refusers []Refuser
	// Published are the limits that it publishes.
	Published []Preset
	// Charges are what its requests cost, and in which resources they count: see ChargesOf. The
	// policies of Published with the Scope Resource are of these resources.
	Charges []Charge
	// Examples are requests with the costs that Charges give them, one for each resource of Published:
	// "GET /api/v3/depth?limit=5000 = 250 weight", "GET /search/issues = 1 request of search". A body
	// follows the path. The one request is stated where nothing else is. "; without a key, of …" is the
	// resource of the same request without a key.
	Examples []string
	// PerSecond means that its limits per minute may also hold per second, according to the
	// provider.
	PerSecond bool
	// Tokens is how it counts tokens, by its documentation: the name of a tokens.Counting. Empty: it
	// counts none, or how is unknown.
	Tokens string
	// Organization is the header field of answers that names the organization, project or account
	// whose keys share limits.
	Organization string
	// Pages are the members of JSON bodies with the absolute address of another page, by their names from the
	// outermost: "paging/next/link".
	Pages []string
	// Shares are the models that share limits.
	Shares []Family
	// Models are the models with published prices and sizes, as of ModelsAsOf.
	Models     []ModelInfo
	ModelsAsOf string
	// Batch is its API for many requests at once, if it has one.
	Batch *BatchAPI
}

// Refuser is a name in refusals, and the scope of such a refusal. With the zero Scope, the scope is
// that of the policy of this name, or of the used-up limit, as if there were no name.
type Refuser struct {
	// Pattern is the name. "*" stands for any name of the server's, and comes last.
	Pattern Pattern
	Scope   Scope
}

// Names of tokens.Counting, for Provider.Tokens.
const (
	countsReserved = "reserved" // on arrival: the larger of its input and the most that it may output
	countsSum      = "sum"      // on arrival: the sum of both
	countsUsed     = "used"     // at the end: the real usage
	countsProduced = "produced" // its input on arrival, its output as it is produced
	countsInput    = "input"    // its input alone
)

// Family is models whose requests count in the same limits.
type Family struct {
	// Name is the name of the limits; "*" means the text for the * of the model's pattern. Models
	// are names of models, with * for any text and ? for a digit.
	Name   string
	Models []Pattern
}

// row is a Provider and the way to read its answers: by tables, or by a function where no table
// fits.
type row struct {
	Provider
	// is reports whether the header, or the body of a refusal, is surely this provider's. Nil: that
	// never shows.
	is func(*Response) bool
	// inBody means that the provider refuses with status 200, or states only in the body what is
	// left.
	inBody bool
	stated []stated
	refuse []refused
	worded []worded
	parsed func() *Charges // Charges, at the first use
	// read does what the tables cannot. Retry-After has been read before. If read sets no refusal,
	// the status decides.
	read func(*reading)
}

func (d *row) Name() string { return d.Provider.Name }

func (d *row) Read(now time.Time, resp Response) Observation {
	return d.reading(now, resp, nil).Observation
}

// reading reads a response. A refusal with a status of success is read as with the status that it
// should have. looked, if not nil, collects the fields that are looked up.
func (d *row) reading(now time.Time, resp Response, l *looked) *reading {
	r := d.plain(now, resp, l)
	if resp.Status/100 != 2 {
		return r
	}
	in := inside(&resp)
	if r.Refusal == None && in.status != 0 {
		as := resp
		as.Status, as.Body = in.status, []byte(in.body)
		r = d.plain(now, as, l)
		r.Notes = append(r.Notes, Unusual(resp.Status))
	}
	if r.Refusal != None && (in.some || len(resp.Body) > MaxBody) {
		r.Partly, r.Parts = true, in.Parts
	}
	return r
}

// plain reads a response by its status.
func (d *row) plain(now time.Time, resp Response, l *looked) *reading {
	r := newReading(d, now, resp)
	r.looked = l
	r.retryAfter()
	for i := range d.stated {
		r.state(&d.stated[i])
	}
	if d.read != nil {
		d.read(r)
	}
	r.refusals(d.refuse)
	r.unpaid()
	if !r.other {
		r.refuse(r.byStatus())
	}
	r.tooManyAtOnce()
	r.surged()
	r.wordings(d.worded)
	r.ratesInWords(d.Limited)
	r.comeBack()
	if age := r.Header.Get("Age"); len(r.Limits) > 0 && age != "" && strings.Trim(age, "0 ") != "" {
		r.Limits = nil
		r.note("the response comes from a cache (Age: %s): what was left is out of date", clip(age))
	}
	if served := r.Status >= 200 && r.Status < 300; served && r.RetryAfter > 0 && r.Refusal == None {
		r.note("it was served, and yet asks to wait")
	}
	r.finish()
	return r
}

// table has all rows. It is made at the first use, since most programs need no row before their
// first answer.
type table struct {
	rows  []*row // in the order for Detect: rows with their own fields before those that borrow another's
	named map[string]*row
}

var (
	makes sync.Once
	made  *table
)

func theTable() *table {
	makes.Do(func() { made = makeTable() })
	return made
}

func makeTable() *table {
	t, example := table{named: map[string]*row{}}, examples()
	for _, group := range []struct {
		kind string
		rows []*row
	}{
		{"Language models", inference()}, {"Language models", llms()}, {"Exchanges", exchanges()}, {"Business", businesses()},
		{"Commons", opens()}, {"Web", webs()}, {"Anybody", anybodys()},
	} {
		for _, d := range group.rows {
			d.Kind = cmp.Or(d.Kind, group.kind)
			d.parsed = sync.OnceValue(d.parse)
			d.Examples = example[d.Provider.Name]
			if len(d.Models) > 0 {
				d.ModelsAsOf = modelsAsOf
			}
			if t.named[d.Provider.Name] == nil {
				t.named[d.Provider.Name] = d
			}
		}
		t.rows = append(t.rows, group.rows...)
	}
	return &t
}

// charges returns the charges of a row; nil: it has none.
func (d *row) charges() *Charges { return d.parsed() }

func (d *row) parse() *Charges {
	if len(d.Charges) == 0 {
		return nil
	}
	c, err := NewCharges(d.Charges)
	if err != nil {
		panic(d.Provider.Name + ": " + err.Error()) // a test makes all of them
	}
	return c
}

// rows returns all rows, in the order for Detect.
func rows() []*row { return theTable().rows }

// rowOf returns the row of a provider; nil: there is none.
func rowOf(name string) *row { return theTable().named[name] }

// Providers returns the table, sorted by name.
func Providers() []Provider {
	all := make([]Provider, len(rows()))
	for i, d := range rows() {
		all[i] = d.Provider.own()
	}
	return order(all, func(p Provider) string { return p.Name })
}

// LookupProvider returns the row of a name.
func LookupProvider(name string) (Provider, bool) {
	if d := rowOf(name); d != nil {
		return d.Provider.own(), true
	}
	return Provider{}, false
}

// own returns a copy that belongs to the caller.
func (p Provider) own() Provider {
	p.Hosts, p.SDKs, p.Refusers, p.Shares = slices.Clone(p.Hosts), slices.Clone(p.SDKs), slices.Clone(p.Refusers), slices.Clone(p.Shares)
	p.Published, p.Models, p.Pages = slices.Clone(p.Published), slices.Clone(p.Models), slices.Clone(p.Pages)
	p.Charges, p.Examples = slices.Clone(p.Charges), slices.Clone(p.Examples)
	for i := range p.Charges {
		p.Charges[i] = p.Charges[i].own()
	}
	if p.Batch != nil {
		b := *p.Batch
		p.Batch = &b
	}
	for i := range p.Published {
		p.Published[i] = p.Published[i].own()
	}
	return p
}

// Names returns the names of all dialects, sorted.
func Names() []string {
	var names []string
	for _, d := range rows() {
		if d.reads() {
			names = append(names, d.Provider.Name)
		}
	}
	slices.Sort(names)
	return names
}

// Lookup returns the dialect of a name.
func Lookup(name string) (Dialect, bool) {
	if d := rowOf(name); d != nil && d.reads() {
		return d, true
	}
	return nil, false
}

// reads reports whether the provider answers over HTTP.
func (d *row) reads() bool { return d.read != nil || len(d.stated) > 0 || len(d.refuse) > 0 }

// InBody reports whether a dialect needs the body of served answers too. Its provider refuses with
// status 200, or states only in the body what is left. A Dialect of another package has a method
// InBody() bool for this.
func InBody(d Dialect) bool {
	switch d := d.(type) {
	case *row:
		return d.inBody
	case interface{ InBody() bool }:
		return d.InBody()
	}
	return false
}

// Whom returns the scopes of refusals that a dialect reads. For a Dialect of another package, a
// refusal concerns the key.
func Whom(dialect string) (limited, banned Scope, names []Refuser) {
	if d := rowOf(dialect); d != nil {
		return d.Limited, d.Banned, d.Refusers
	}
	return Key, Key, theirOwn
}

// theirOwn stands for any names that a server gives its policies.
var theirOwn = []Refuser{{"*", ""}}

// Pattern is a name in which * stands for any text: "global", "endpoint-*", "*-quota-*".
type Pattern string

// Match reports whether the pattern fits a name.
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
	whole := host // on a general host, the port decides: localhost:11434
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		host = host[:i]
	}
	host = strings.TrimSuffix(host, ".")
	for _, d := range rows() {
		for _, h := range d.Hosts {
			if host == h || whole == h || h[0] == '.' && strings.HasSuffix(host, h) {
				return d, true
			}
		}
	}
	return nil, false
}

// Detect returns the dialect of a response from an unknown server, by fields that only one provider
// sends. Without such fields it is "generic". Prefer ForHost: behind a gateway the fields may be
// those of another provider.
func Detect(r Response) Dialect {
	r.Body = r.Body[:min(len(r.Body), MaxBody)]
	for _, d := range rows() {
		if d.is != nil && d.is(&r) {
			return d
		}
	}
	return rowOf("generic")
}

// Speaks reports whether a header may state limits in any dialect; this is cheaper than reading it.
// The names of the header must be in canonical form.
func Speaks(h http.Header) bool {
	for name := range h {
		if len(name) < 9 {
			continue
		}
		switch name[0] {
		case 'X':
			if strings.Contains(name, "imit") || name[:6] == "X-Mbx-" || name[:7] == "X-Sapi-" || strings.HasSuffix(name, "-Usage") {
				return true
			}
		case 'R':
			if name[:4] == "Rate" || name[:5] == "Retry" {
				return true
			}
		case 'A', 'D', 'F', 'M', 'S', 'Z':
			if slices.ContainsFunc(theirs, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
				return true
			}
		}
	}
	return false
}

// theirs are the beginnings of field names that do not look like limits.
var theirs = []string{"Anthropic-Ratelimit", "Docker-Ratelimit", "Fastly-Ratelimit", "Maximum-Concurrent", "Mediawiki-Api-Error", "Sforce-Limit", "Stripe-Rate-Limited", "Zendesk-Ratelimit"}

// sends returns a function that reports whether a response has any of the fields.
func sends(names ...string) func(*Response) bool {
	return func(r *Response) bool {
		return slices.ContainsFunc(names, func(n string) bool { return r.Header.Get(n) != "" })
	}
}

// sendsPrefix reports whether a field begins with the prefix, which must be in canonical form.
func sendsPrefix(h http.Header, prefix string) bool {
	for name := range h {
		if strings.HasPrefix(http.CanonicalHeaderKey(name), prefix) {
			return true
		}
	}
	return false
}

// mentions reports whether a body that may be an error's contains the text.
func mentions(r *Response, text string) bool {
	return strings.Contains(string(r.Body), text)
}
