package provider

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
)

// jsonPath is an Expression: the number at a path of members, rounded up.
type jsonPath string

// String returns the path in the form of jq.
func (p jsonPath) String() string { return "." + string(p) }

// Count implements Expression.
func (p jsonPath) Count(document []byte) (int64, error) {
	for name := range strings.SplitSeq(string(p), ".") {
		var members map[string]json.RawMessage
		if json.Unmarshal(document, &members) != nil || members[name] == nil {
			return 0, errors.New("there is no " + p.String())
		}
		document = members[name]
	}
	var f *float64
	if json.Unmarshal(document, &f) != nil || f == nil || !(*f >= 0 && *f <= MaxCount) {
		return 0, errors.New(p.String() + " is no number of 0 or more")
	}
	return int64(math.Ceil(*f)), nil
}

// queryBound is an Expression: the most that a GraphQL request can cost, by the rule that a provider
// documents. It reads the text of the query, and first and last of its lists.
type queryBound struct {
	name string
	rule *func(*graphQuery) float64 // a pointer, so that expressions can be compared
}

// String describes it.
func (b queryBound) String() string { return "the bound of its query, by the rule of " + b.name }

// Count implements Expression.
func (b queryBound) Count(document []byte) (int64, error) {
	var ask struct {
		Query     string
		Variables map[string]any
	}
	if json.Unmarshal(document, &ask) != nil || ask.Query == "" {
		return 0, errors.New("there is no query")
	}
	q, err := readQuery(ask.Query, ask.Variables)
	if err != nil {
		return 0, err
	}
	return int64(math.Ceil(max(1, min((*b.rule)(q), MaxCount)))), nil
}

// shopifyBound is the rule of Shopify: an object costs one point, a list two and those of its objects, a
// mutation ten.
var shopifyBound = queryBound{"Shopify", new(func(q *graphQuery) (cost float64) {
	for _, o := range q.operations {
		for _, f := range o.fields {
			if o.mutates {
				cost += 10
			}
			cost += q.shopify(f, 0)
		}
	}
	return cost
})}

func (q *graphQuery) shopify(f *graphField, depth int) (cost float64) {
	for _, inner := range q.inside(f, &depth) {
		cost += q.shopify(inner, depth)
	}
	switch {
	case f.size > 0:
		return 2 + f.size*max(1, cost)
	case f.fields == nil || f.isSpread || f.name == "edges" || f.name == "pageInfo":
		return cost
	}
	return 1 + cost
}

// githubBound is the rule of GitHub: the requests that would fetch all lists, of which a hundred are a
// point, rounded to the nearest.
var githubBound = queryBound{"GitHub", new(func(q *graphQuery) (requests float64) {
	for _, o := range q.operations {
		for _, f := range o.fields {
			requests += q.github(f, 1, 0)
		}
	}
	return math.Round(requests / 100)
})}

func (q *graphQuery) github(f *graphField, times float64, depth int) (requests float64) {
	if f.size > 0 {
		requests, times = times, times*f.size
	}
	for _, inner := range q.inside(f, &depth) {
		requests += q.github(inner, times, depth)
	}
	return requests
}

// mondayBound is the rule of monday.com: a value costs one point, and an object ten and those of its fields.
// Each entry of a list costs that. A mutation costs 30,000 points and those of its fields.
var mondayBound = queryBound{"monday.com", new(func(q *graphQuery) (cost float64) {
	for _, o := range q.operations {
		for _, f := range o.fields {
			switch {
			case f.name == "complexity" && !f.isSpread: // it is free to ask what the query costs
			case o.mutates:
				cost += 30_000 + q.monday(&graphField{isSpread: true, fields: f.fields}, 1, 0)
			default:
				cost += q.monday(f, 1, 0)
			}
		}
	}
	return cost
})}

// monday is the cost of a field, of as many objects.
func (q *graphQuery) monday(f *graphField, times float64, depth int) (cost float64) {
	if f.fields == nil && !f.isSpread {
		return times
	}
	if !f.isSpread {
		times *= f.entries()
		cost = 10 * times
	}
	isPage := strings.HasSuffix(f.name, "_page") && !f.isSpread
	for _, inner := range q.inside(f, &depth) {
		if isPage && inner.name == "items" { // the page has their number
			inner = &graphField{name: "item", fields: inner.fields}
		}
		cost += q.monday(inner, times, depth)
	}
	return cost
}

// entries is how many objects a field of monday.com has at most. Without a number, a list counts as 1,000
// objects, updates and pages as 25.
func (f *graphField) entries() float64 {
	switch {
	case f.ids > 0: // before the limit
		return f.ids
	case f.limit > 0:
		return f.limit
	case f.name == "updates", strings.HasSuffix(f.name, "_page"):
		return 25
	case strings.HasSuffix(f.name, "s"):
		return 1000
	}
	return 1
}

// graphQuery is a document of GraphQL, as far as its cost needs it.
type graphQuery struct {
	text       string
	variables  map[string]any
	fields     int // how many were read or visited, to bound fragments that multiply
	operations []graphOperation
	fragments  map[string]*graphField
}

type graphOperation struct {
	mutates bool
	fields  []*graphField
}

// graphField is a field with its selection. A spread stands for the fields of a fragment.
type graphField struct {
	name     string // of a spread, the fragment; empty: it has the fields itself
	isSpread bool
	graphSizes
	fields []*graphField
}

// graphSizes are arguments of a field that say how many objects it has. 0: there is none, or its variable has no
// value.
type graphSizes struct {
	size  float64 // first or last
	limit float64
	ids   float64 // how many there are
}

const (
	mostGraphDepth  = 30
	mostGraphFields = 20000
)

var errQuery = errors.New("the query cannot be read")

// inside returns the fields of a field, and counts the depth.
func (q *graphQuery) inside(f *graphField, depth *int) []*graphField {
	*depth++
	if q.fields++; q.fields > mostGraphFields || *depth > mostGraphDepth {
		return nil
	}
	if !f.isSpread || f.name == "" {
		return f.fields
	}
	if of := q.fragments[f.name]; of != nil {
		return of.fields
	}
	return nil
}

// readQuery reads a document. All of its operations count, since it may not say which one is meant.
func readQuery(text string, variables map[string]any) (*graphQuery, error) {
	q := &graphQuery{text: text, variables: variables, fragments: map[string]*graphField{}}
	for {
		word, fragment := q.next(), ""
		switch word {
		case "":
			if q.operations == nil {
				return nil, errQuery
			}
			return q, nil
		case "fragment":
			fragment = q.next()
		}
		for t := word; t != "{"; t = q.next() {
			if t == "" {
				return nil, errQuery
			}
			if t == "(" { // the variables of the operation, whose defaults may have braces
				q.arguments()
			}
		}
		fields, err := q.selection(0)
		if err != nil {
			return nil, err
		}
		if fragment != "" {
			q.fragments[fragment] = &graphField{fields: fields}
		} else {
			q.operations = append(q.operations, graphOperation{word == "mutation", fields})
		}
	}
}

// selection reads fields up to the closing brace.
func (q *graphQuery) selection(depth int) (all []*graphField, err error) {
	all = []*graphField{}
	for {
		word := q.next()
		f := &graphField{name: word}
		if q.fields++; word == "" || depth > mostGraphDepth || q.fields > mostGraphFields {
			return nil, errQuery
		}
		switch {
		case word == "}":
			return all, nil
		case word == "...":
			f.isSpread, f.name = true, ""
			if t := q.peek(); t == "on" {
				q.next()
				q.next()
			} else if t != "{" && t != "@" {
				f.name = q.next()
			}
		case !isLetter(word[0]):
			return nil, errQuery
		}
		if q.peek() == ":" { // an alias
			q.next()
			f.name = q.next()
		}
		if q.peek() == "(" {
			q.next()
			if f.graphSizes, err = q.arguments(); err != nil {
				return nil, err
			}
		}
		for q.peek() == "@" {
			q.next()
			q.next()
			if q.peek() == "(" {
				q.next()
				q.arguments() // of a directive: none is a size
			}
		}
		if q.peek() == "{" {
			q.next()
			if f.fields, err = q.selection(depth + 1); err != nil {
				return nil, err
			}
		}
		all = append(all, f)
	}
}

// arguments reads arguments up to the closing parenthesis. An error means that first or last is not known.
func (q *graphQuery) arguments() (sizes graphSizes, err error) {
	for depth, name := 1, ""; ; {
		word := q.next()
		switch word {
		case "":
			return sizes, errQuery
		case "(", "[", "{":
			depth++
		case ")", "]", "}":
			if depth--; depth == 0 {
				return sizes, err
			}
		case ":":
			if depth != 1 {
				break
			}
			switch name {
			case "first", "last":
				n, known := q.number()
				if !known {
					err = errors.New("first or last of a list is not known")
				}
				sizes.size = max(sizes.size, n)
			case "limit":
				sizes.limit, _ = q.number()
			case "ids":
				sizes.ids = q.length()
			}
		}
		name = word
	}
}

// number reads the number that is an argument, or that of the variable.
func (q *graphQuery) number() (n float64, known bool) {
	value := q.next()
	n, bad := strconv.ParseFloat(value, 64)
	known = bad == nil
	if variable, is := strings.CutPrefix(value, "$"); is {
		n, known = q.variables[variable].(float64)
	}
	return n, known && n >= 0 && n <= MaxCount
}

// length reads an argument that is a list, or one entry, and returns how many entries it has.
func (q *graphQuery) length() (n float64) {
	value := q.next()
	if variable, is := strings.CutPrefix(value, "$"); is {
		list, isList := q.variables[variable].([]any)
		if !isList && q.variables[variable] != nil {
			return 1
		}
		return float64(len(list))
	}
	if value != "[" {
		return 1
	}
	for word := q.next(); word != "]" && word != ""; word = q.next() {
		n++
	}
	return n
}

// peek returns the next token without taking it: a word, a variable with its $, a text, or a sign.
func (q *graphQuery) peek() string {
	rest := q.text
	for rest != "" {
		switch c := rest[0]; {
		case c == '#':
			_, rest, _ = strings.Cut(rest, "\n")
			continue
		case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == ',' || c == 0xEF || c == 0xBB || c == 0xBF: // or a byte order mark
			rest = rest[1:]
			continue
		}
		break
	}
	q.text = rest
	switch {
	case rest == "":
		return ""
	case strings.HasPrefix(rest, "..."):
		return "..."
	case strings.HasPrefix(rest, `"""`):
		inside, _, _ := strings.Cut(rest[3:], `"""`)
		return rest[:min(len(inside)+6, len(rest))]
	case rest[0] == '"':
		after, _ := afterString(rest[1:])
		return rest[:len(rest)-len(after)]
	}
	n := 0
	if rest[0] == '$' || rest[0] == '-' {
		n = 1
	}
	for n < len(rest) && (isLetter(rest[n]) || rest[n] == '.' && n > 0 && rest[0] != '$' && !strings.HasPrefix(rest[n:], "...")) {
		n++
	}
	return rest[:max(n, 1)]
}

func (q *graphQuery) next() string {
	word := q.peek()
	q.text = q.text[len(word):]
	return word
}
