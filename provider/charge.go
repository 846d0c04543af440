package provider

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Charge is what some requests to a provider cost, and the resource in which they count. The first
// Charge of a list that fits a request holds for it, and no other.
type Charge struct {
	// On says which requests: a method and the pattern of a path, "GET /search/*". A * stands for any
	// text, also for any method. GET stands for HEAD, too. A path with escapes keeps them: the pattern
	// is compared with what was sent. After a question mark follow one or two conditions on the query,
	// with & between them:
	//
	//	limit>1000        a number that is larger; < is smaller. A list, "A,B", counts as its length
	//	category=linear   the value; * stands for any text
	//	symbol=           there is no value
	On string
	// Cost is how much of each unit the request uses, besides the one request. It uses nothing of a
	// unit that is missing. Amounts are 1 … MaxCount.
	Cost map[Unit]int64
	// Body finds amounts in the body of the request, which must be JSON. Where one finds none, the amount
	// is that of Cost.
	Body map[Unit]Expression
	// Answer finds in the body of the answer what the request did cost. Until the answer has ended, the
	// request costs the amounts of Cost and Body, so they should be the most that it can cost. In a unit
	// that neither has, it costs all that the limits hold at once. An answer that states more than Cost
	// raises the cost of later requests of its route.
	Answer map[Unit]Expression
	// Learns lets GraphQL queries cost, until their answers, what the same query did cost last, in place
	// of Cost and Body. In a unit that neither has, they do so in any case. Other bodies never do.
	// Queries are the same if they have one text and operationName, and the same variables named first,
	// last and limit.
	Learns bool
	// Resource is the name of the part of the key's quota in which the request counts: "search".
	// Empty: none but the key's. These stand for parts of the request: {method}, {path}, {query:NAME}
	// for a parameter, and {1} … {9} for the text of the first … ninth * of the path. A name that
	// begins with "address " is a part of the address's quota: see OfAddress.
	Resource string
	// Keyless restricts the charge to requests without a key: see Charges.OfKeyless.
	Keyless bool
	// Source is the page that says so. AsOf is the year, or the year and month, of the last look at it.
	Source, AsOf string
}

// Expression finds a count in a JSON document. It is safe for concurrent use, and takes 10 ms at most.
type Expression interface {
	// Count returns the count, 0 … MaxCount. The error says why the document has none.
	Count(document []byte) (n int64, err error)
}

// maxConditions is how many conditions a charge has at most.
const maxConditions = 2

// Charges is a list of Charge, ready to be looked up. The zero Charges, and nil, have none. It does
// not change, and is safe for concurrent use.
type Charges struct {
	list  []Charge
	rows  []chargeRow
	exact map[string][]int // the rows of paths without a *
	loose []int            // the other rows
}

// chargeRow is a Charge, parsed.
type chargeRow struct {
	method     string // empty: any
	path       Pattern
	head, tail string // of the path, before its first * and after its last
	conditions []condition
	resource   []part // nil: the name is a constant, or there is none
}

// condition is a condition on one parameter of a query.
type condition struct {
	name string
	op   byte // one of = > <
	text Pattern
	n    int64
}

// part is a part of a resource's name: a text, or a place of the request.
type part struct {
	kind byte   // t: text, m: method, p: path, q: a parameter, or the digit of a *
	text string // or the name of the parameter
}

// NewCharges returns the charges of a list. Its errors name the charge and the part that is wrong.
func NewCharges(list []Charge) (*Charges, error) {
	c := &Charges{list: slices.Clone(list), exact: map[string][]int{}}
	for i := range c.list {
		c.list[i] = c.list[i].own()
		row, err := parseCharge(&c.list[i])
		if err != nil {
			return nil, fmt.Errorf("provider: charge %d, on %q: %w", i+1, clip(list[i].On), err)
		}
		c.rows = append(c.rows, row)
		if strings.Contains(string(row.path), "*") {
			c.loose = append(c.loose, i)
		} else {
			c.exact[string(row.path)] = append(c.exact[string(row.path)], i)
		}
	}
	return c, nil
}

func parseCharge(c *Charge) (row chargeRow, err error) {
	method, rest, ok := strings.Cut(c.On, " ")
	path, query, more := strings.Cut(rest, "?")
	switch {
	case !ok || path == "":
		return row, fmt.Errorf(`want a method and a path, such as "GET /search/*"`)
	case method == "" || method != "*" && strings.Trim(method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-") != "":
		return row, fmt.Errorf("the method %q; want capital letters, or * for any", clip(method))
	case method == http.MethodHead:
		return row, fmt.Errorf("the method HEAD, which a charge of GET fits; want GET")
	case path[0] != '/' && path[0] != '*':
		return row, fmt.Errorf("the path %q; want one that begins with / or *", clip(path))
	case strings.ContainsFunc(rest, func(r rune) bool { return r <= ' ' || r == '#' || r == 0x7f }):
		return row, fmt.Errorf("%q has a space, a # or a control character; want a path as in URL.Path", clip(rest))
	}
	if method != "*" {
		row.method = method
	}
	row.path = Pattern(path)
	if head, _, loose := strings.Cut(path, "*"); loose {
		row.head, row.tail = head, path[strings.LastIndexByte(path, '*')+1:]
	}
	if more {
		if row.conditions, err = parseConditions(query); err != nil {
			return row, err
		}
	}
	if err = c.checkCosts(); err != nil {
		return row, err
	}
	row.resource, err = parseResource(c.Resource, strings.Count(path, "*"))
	return row, err
}

// checkCosts returns an error in the amounts and expressions.
func (c *Charge) checkCosts() error {
	for unit, n := range c.Cost {
		if err := checkUnit(unit); err != nil {
			return err
		}
		if n < 1 || n > MaxCount {
			return fmt.Errorf("a cost of %d %s; want 1 to %d", n, unit, int64(MaxCount))
		}
	}
	for _, all := range []map[Unit]Expression{c.Body, c.Answer} {
		for unit, e := range all {
			if err := checkUnit(unit); err != nil {
				return err
			}
			if e == nil {
				return fmt.Errorf("the expression of %s is nil", unit)
			}
		}
	}
	return nil
}

func checkUnit(u Unit) error {
	if !slices.Contains([]Unit{Weight, Orders, Input, Output, Tokens, Money, Bytes, Other}, u) {
		return fmt.Errorf("a cost in %q; want one in weight, orders, tokens or another unit but requests",
			clip(string(u)))
	}
	return nil
}

// own returns a copy that belongs to the caller.
func (c Charge) own() Charge {
	c.Cost, c.Body, c.Answer = maps.Clone(c.Cost), maps.Clone(c.Body), maps.Clone(c.Answer)
	return c
}

func parseConditions(query string) (all []condition, err error) {
	for text := range strings.SplitSeq(query, "&") {
		i := strings.IndexAny(text, "=<>")
		if i < 1 {
			return nil, fmt.Errorf("the condition %q; want NAME=VALUE, NAME>NUMBER or NAME<NUMBER", clip(text))
		}
		c := condition{name: text[:i], op: text[i], text: Pattern(text[i+1:])}
		if c.op != '=' {
			if c.n, err = strconv.ParseInt(text[i+1:], 10, 64); err != nil {
				return nil, fmt.Errorf("the condition %q; want a whole number after %c", clip(text), c.op)
			}
		}
		for _, o := range all {
			above, below := o, c
			if o.op == '<' {
				above, below = c, o
			}
			if o.name == c.name && above.op == '>' && below.op == '<' && below.n-above.n < 2 {
				return nil, fmt.Errorf("the conditions %q; want two that one number can meet", clip(query))
			}
		}
		all = append(all, c)
	}
	if len(all) > maxConditions {
		return nil, fmt.Errorf("%d conditions; want at most %d", len(all), maxConditions)
	}
	return all, nil
}

// parseResource returns the parts of a name; nil: it is a constant. stars is how many * the path has.
func parseResource(name string, stars int) (all []part, err error) {
	rest, changes := name, false
	for rest != "" {
		text, inner, open := strings.Cut(rest, "{")
		if strings.Contains(text, "}") {
			return nil, fmt.Errorf("the resource %q has a } without {", clip(name))
		}
		if text != "" {
			all = append(all, part{kind: 't', text: text})
		}
		if !open {
			break
		}
		place, after, closed := strings.Cut(inner, "}")
		parameter, isQuery := strings.CutPrefix(place, "query:")
		switch {
		case !closed:
			return nil, fmt.Errorf("the resource %q has a { without }", clip(name))
		case place == "method" || place == "path":
			all = append(all, part{kind: place[0]})
		case isQuery && parameter != "":
			all = append(all, part{kind: 'q', text: parameter})
		case len(place) == 1 && place[0] >= '1' && place[0] <= '9':
			if int(place[0]-'0') > stars {
				return nil, fmt.Errorf("the resource %q has {%s}, and the path has %d *", clip(name), place, stars)
			}
			all = append(all, part{kind: place[0]})
		default:
			return nil, fmt.Errorf("the resource %q has {%s}; want {method}, {path}, {query:NAME} or {1} to {9}", clip(name), clip(place))
		}
		rest, changes = after, true
	}
	if !changes {
		return nil, nil
	}
	return all, nil
}

// Usual returns the resource of the requests that no other charge fits: that of the charge on "* *",
// if it is a constant. Empty: there is none.
func (c *Charges) Usual() string {
	if c == nil {
		return ""
	}
	for i := range c.rows {
		row := &c.rows[i]
		all := row.method == "" && row.path == "*" && row.conditions == nil && !c.list[i].Keyless
		if all && row.resource == nil {
			return c.list[i].Resource
		}
	}
	return ""
}

// Hidden returns the first charge that no request can reach, since an earlier one takes all of its
// requests. Both are indices of the list. ok is false if there is none.
func (c *Charges) Hidden() (hidden, by int, ok bool) {
	for hidden = range c.rows {
		for by = range c.rows[:hidden] {
			some := c.list[by].Keyless && !c.list[hidden].Keyless // it takes those without a key alone
			if !some && c.rows[by].covers(&c.rows[hidden]) {
				return hidden, by, true
			}
		}
	}
	return 0, 0, false
}

// covers reports whether a row fits each request that another one fits. A * of the other stands for
// itself here: only a * fits it.
func (row *chargeRow) covers(other *chargeRow) bool {
	if row.method != "" && row.method != other.method || !row.path.Match(string(other.path)) {
		return false
	}
	for _, c := range row.conditions {
		if !slices.Contains(other.conditions, c) {
			return false
		}
	}
	return true
}

// Names reports whether a request can count in a resource that a pattern fits. A place of a resource's
// name stands for any text.
func (c *Charges) Names(resource Pattern) bool {
	if c == nil {
		return false
	}
	for i := range c.rows {
		name := c.list[i].Resource
		if c.rows[i].resource == nil && name != "" && resource.Match(name) {
			return true
		}
		if head, _, changes := strings.Cut(name, "{"); changes {
			fixed, _, _ := strings.Cut(string(resource), "*")
			if strings.HasPrefix(head, fixed) || strings.HasPrefix(fixed, head) {
				return true
			}
		}
	}
	return false
}

// Of returns the charge of a request, and the name of its resource; nil: no charge fits. The charge
// must not be changed.
func (c *Charges) Of(r *http.Request) (charge *Charge, resource string) {
	return c.find(r, false)
}

// OfKeyless is Of for a request without a key. Of finds no charge that is for those alone.
func (c *Charges) OfKeyless(r *http.Request) (charge *Charge, resource string) {
	return c.find(r, true)
}

// OfAddress reports whether a resource is a part of its address's quota. There the requests of all
// keys count together, and those without a key, too.
func OfAddress(resource string) bool { return strings.HasPrefix(resource, "address ") }

func (c *Charges) find(r *http.Request, keyless bool) (charge *Charge, resource string) {
	if c == nil || len(c.rows) == 0 || r.URL == nil {
		return nil, ""
	}
	method, path := r.Method, r.URL.Path
	if method == "" || method == http.MethodHead {
		method = http.MethodGet
	}
	if r.URL.RawPath != "" {
		path = r.URL.RawPath
	}
	exact, loose := c.exact[path], c.loose
	for len(exact) > 0 || len(loose) > 0 {
		i := 0
		if len(loose) == 0 || len(exact) > 0 && exact[0] < loose[0] {
			i, exact = exact[0], exact[1:]
		} else {
			i, loose = loose[0], loose[1:]
		}
		row := &c.rows[i]
		if (keyless || !c.list[i].Keyless) && row.fits(method, path, r.URL.RawQuery) {
			return &c.list[i], row.name(c.list[i].Resource, method, path, r.URL.RawQuery)
		}
	}
	return nil, ""
}

func (row *chargeRow) fits(method, path, query string) bool {
	if row.method != "" && row.method != method || !strings.HasPrefix(path, row.head) || !strings.HasSuffix(path, row.tail) ||
		row.path != "*" && !row.path.Match(path) {
		return false
	}
	for i := range row.conditions {
		if !row.conditions[i].holds(query) {
			return false
		}
	}
	return true
}

func (c *condition) holds(query string) bool {
	value := parameter(query, c.name)
	if c.op == '=' {
		return c.text.Match(value)
	}
	if value == "" {
		return false
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		n = int64(strings.Count(value, ",")) + 1
	}
	return c.op == '>' && n > c.n || c.op == '<' && n < c.n
}

// parameter returns the first value of a parameter, without the escapes of a query.
func parameter(query, name string) string {
	for query != "" {
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		key, value, _ := strings.Cut(pair, "=")
		if key == name || unescaped(key) == name {
			return unescaped(value)
		}
	}
	return ""
}

// unescaped returns a part of a query without escapes. It is as it was sent if they are malformed.
func unescaped(s string) string {
	if strings.IndexByte(s, '%') < 0 && strings.IndexByte(s, '+') < 0 {
		return s
	}
	if plain, err := url.QueryUnescape(s); err == nil {
		return plain
	}
	return s
}

// name returns the name of the resource. constant is the name if it has no places.
func (row *chargeRow) name(constant, method, path, query string) string {
	if row.resource == nil {
		return constant
	}
	var b strings.Builder
	b.Grow(len(constant) + len(path))
	for _, p := range row.resource {
		switch p.kind {
		case 't':
			b.WriteString(p.text)
		case 'm':
			b.WriteString(method)
		case 'p':
			b.WriteString(path)
		case 'q':
			b.WriteString(parameter(query, p.text))
		default:
			b.WriteString(row.path.star(path, int(p.kind-'0')))
		}
	}
	return strings.TrimRight(b.String(), " ") // a parameter at the end may be missing
}

// star returns the text for the nth * of a pattern that fits a name.
func (p Pattern) star(name string, n int) string {
	head, rest, _ := strings.Cut(string(p), "*")
	name = name[len(head):]
	for ; ; n-- {
		piece, after, more := strings.Cut(rest, "*")
		if !more {
			return name[:len(name)-len(piece)]
		}
		text, left, _ := strings.Cut(name, piece)
		if n == 1 {
			return text
		}
		name, rest = left, after
	}
}

// ChargesOf returns the charges of a provider, by the name of its row. It is nil if the row has none.
func ChargesOf(name string) *Charges {
	if d := rowOf(name); d != nil {
		return d.charges()
	}
	return nil
}

// Covers reports whether a policy holds for the requests that count in a resource. A policy of
// another scope than Resource does.
func (p Policy) Covers(resource string) bool {
	return p.Scope != Resource || resource != "" && Pattern(p.Resource).Match(resource)
}

// from gives charges the page that says so.
func from(source, asOf string, lists ...[]Charge) []Charge {
	all := slices.Concat(lists...)
	for i := range all {
		all[i].Source, all[i].AsOf = source, asOf
	}
	return all
}

// cost makes a Charge in one unit, or in none if the amount is 0.
func cost(on string, n int64, unit Unit) Charge {
	c := Charge{On: on}
	if n > 0 {
		c.Cost = map[Unit]int64{unit: n}
	}
	return c
}

// weighs makes charges of weight: a row for each line "WEIGHT ON …".
func weighs(prefix, lines string) (all []Charge) {
	return rowsOf(prefix, lines, func(n, on string) Charge {
		weight, err := strconv.ParseInt(n, 10, 64)
		if err != nil {
			panic("provider: " + err.Error())
		}
		return cost(on, weight, Weight)
	})
}

// each makes charges with a resource of their own for each endpoint: a row for each line "RESOURCE
// METHOD PATH …". Its resource is named after the line's first word, and after rest.
func each(prefix, rest, lines string) []Charge {
	return rowsOf(prefix, lines, func(class, on string) Charge {
		return Charge{On: on, Resource: class + " " + rest}
	})
}

// rowsOf reads lines of the form "CLASS METHOD PATH PATH …".
func rowsOf(prefix, lines string, row func(class, on string) Charge) (all []Charge) {
	for line := range strings.Lines(lines) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		for _, path := range words[2:] {
			all = append(all, row(words[0], words[1]+" "+prefix+path))
		}
	}
	return all
}
