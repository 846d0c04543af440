package service

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// selection is a field of a GraphQL query.
type selection struct {
	alias, name string
	arguments   map[string]any // numbers, strings, variables, and how long lists are; others are left out
	fields      []selection    // nil: the field is a value
	fragment    string         // the field stands for the fields of a fragment
}

type variable string

// length is the argument that is a list.
type length int

// graph is a query that is being read.
type graph struct {
	text      string
	at        int
	depth     int
	fragments map[string][]selection
}

var errGraph = errors.New("syntax error")

const mostGraphDepth = 30

// readGraph returns the fields of the first operation, and those of the fragments.
func readGraph(text string) (fields []selection, fragments map[string][]selection, err error) {
	g := &graph{text: text, fragments: map[string][]selection{}}
	for {
		switch token := g.next(); token {
		case "":
			if fields == nil {
				return nil, nil, errGraph
			}
			return fields, g.fragments, nil
		case "fragment":
			name := g.next()
			g.until("{")
			if g.fragments[name], err = g.set(); err != nil {
				return nil, nil, err
			}
		default:
			if token != "{" {
				g.until("{")
			}
			read, err := g.set()
			if err != nil {
				return nil, nil, err
			}
			if fields == nil {
				fields = read
			}
		}
	}
}

// peek returns the next token without taking it: a name, a number, a string with its quotes, a
// variable with its $, or one other character. It is "" at the end.
func (g *graph) peek() string {
	for g.at < len(g.text) {
		switch c := g.text[g.at]; {
		case c == '#':
			line, _, _ := strings.Cut(g.text[g.at:], "\n")
			g.at += len(line)
		case strings.IndexByte(" \t\r\n,", c) >= 0:
			g.at++
		default:
			return g.token()
		}
	}
	return ""
}

func (g *graph) token() string {
	rest := g.text[g.at:]
	switch {
	case strings.HasPrefix(rest, "..."):
		return "..."
	case strings.HasPrefix(rest, `"""`):
		inside, _, _ := strings.Cut(rest[3:], `"""`)
		return rest[:min(len(inside)+6, len(rest))]
	case rest[0] == '"':
		for i := 1; i < len(rest); i++ {
			if rest[i] == '\\' {
				i++
			} else if rest[i] == '"' {
				return rest[:i+1]
			}
		}
		return rest
	}
	n := 0
	for n < len(rest) && (rest[n] == '_' || rest[n] == '-' || rest[n] == '.' || n == 0 && rest[n] == '$' ||
		'0' <= rest[n] && rest[n] <= '9' || 'a' <= rest[n]|0x20 && rest[n]|0x20 <= 'z') {
		n++
	}
	return rest[:max(n, 1)]
}

func (g *graph) next() string {
	token := g.peek()
	g.at += len(token)
	return token
}

// until takes the tokens up to and with one of them.
func (g *graph) until(token string) {
	for t := g.next(); t != "" && t != token; {
		t = g.next()
	}
}

// set reads fields up to the closing brace.
func (g *graph) set() ([]selection, error) {
	if g.depth++; g.depth > mostGraphDepth {
		return nil, fmt.Errorf("%w: the query is nested too deeply", errGraph)
	}
	defer func() { g.depth-- }()
	all := []selection{}
	for {
		token := g.next()
		switch {
		case token == "}":
			return all, nil
		case token == "...":
			more, err := g.spread()
			if err != nil {
				return nil, err
			}
			all = append(all, more...)
			continue
		case token == "" || strings.ContainsAny(token[:1], `{()[]:!$@="`):
			return nil, fmt.Errorf("%w at %d: %.20q", errGraph, g.at, token)
		}
		s := selection{alias: token, name: token}
		if g.peek() == ":" {
			g.next()
			s.name = g.next()
		}
		if g.peek() == "(" {
			g.next()
			s.arguments = g.arguments()
		}
		g.directives()
		if g.peek() == "{" {
			g.next()
			var err error
			if s.fields, err = g.set(); err != nil {
				return nil, err
			}
		}
		all = append(all, s)
	}
}

// spread reads what follows three dots.
func (g *graph) spread() ([]selection, error) {
	if token := g.peek(); token != "{" && token != "on" && token != "@" {
		g.next()
		g.directives()
		return []selection{{fragment: token}}, nil
	}
	g.until("{")
	return g.set()
}

func (g *graph) directives() {
	for g.peek() == "@" {
		g.next()
		g.next()
		if g.peek() == "(" {
			g.next()
			g.arguments()
		}
	}
}

// arguments reads arguments up to the closing parenthesis. It leaves out objects, and what lists have.
func (g *graph) arguments() map[string]any {
	all, depth, name, list := map[string]any{}, 0, "", ""
	for {
		token := g.next()
		switch {
		case token == "" || token == ")" && depth == 0:
			return all
		case token == "{" || token == "[" || token == "(":
			if depth++; depth == 1 && token == "[" {
				list, all[name] = name, length(0)
			}
			continue
		case token == "}" || token == "]" || token == ")":
			depth--
			list = ""
		case depth > 0:
			if n, is := all[list].(length); is && depth == 1 {
				all[list] = n + 1
			}
		case token == ":":
		case name == "":
			if name = token; g.peek() != ":" {
				name = ""
			}
			continue
		case token[0] == '$':
			all[name] = variable(token[1:])
		case token[0] == '"':
			all[name] = strings.Trim(token, `"`)
		default:
			if n, err := strconv.ParseFloat(token, 64); err == nil {
				all[name] = n
			}
		}
		if token != ":" {
			name = ""
		}
	}
}

// asksGraph reads the query of a request.
func asksGraph(body []byte) (g *graphMaker, fields []selection, mutates bool) {
	var ask struct {
		Query     string
		Variables map[string]any
	}
	json.Unmarshal(body, &ask) // a body that is none has no query
	fields, fragments, err := readGraph(ask.Query)
	if err != nil {
		return &graphMaker{}, nil, false
	}
	return &graphMaker{fragments: fragments, variables: ask.Variables}, fields, strings.HasPrefix(strings.TrimSpace(ask.Query), "mutation")
}

// calledLists are the points of GitHub: one for each hundred calls that would fetch the lists of a query one by
// one, for each object that has them.
func calledLists(body []byte) int64 {
	g, fields, _ := asksGraph(body)
	return max((g.calls(fields, 1, 0)+50)/100, 1)
}

func (g *graphMaker) calls(fields []selection, times int64, depth int) (n int64) {
	if depth > mostGraphDepth {
		return 0
	}
	for _, f := range fields {
		inner, each := f.fields, times
		if f.fragment != "" {
			inner = g.fragments[f.fragment]
		}
		for _, name := range [...]string{"first", "last"} {
			if size, is := g.argument(&f, name).(float64); is {
				n += times
				each *= int64(size)
			}
		}
		n += g.calls(inner, each, depth+1)
	}
	return n
}

// complexity is what monday.com counts for a query: for each object ten points, and one for each of its values.
// The number of objects is that of the ids, or else the limit. Without both, a list counts as a thousand. A
// mutation counts 30,000 points, and the values of what it returns.
func complexity(body []byte) (points int64, mutates bool) {
	g, fields, mutates := asksGraph(body)
	for _, f := range fields {
		switch {
		case f.name == "complexity":
		case mutates:
			points += 30_000 + g.values(f.fields, 0)
		default:
			points += g.values([]selection{f}, 0)
		}
	}
	return max(points, 1), mutates
}

// values are the points of fields of one object.
func (g *graphMaker) values(fields []selection, depth int) (points int64) {
	if depth > mostGraphDepth {
		return 0
	}
	for _, f := range fields {
		switch {
		case f.fragment != "":
			points += g.values(g.fragments[f.fragment], depth+1)
		case f.fields == nil:
			points++
		default:
			points += g.objects(&f) * (10 + g.values(f.fields, depth+1))
		}
	}
	return points
}

// mondayLists are lists of monday.com, with the number of objects as which they count. The items of a page are
// as many as the page has.
var mondayLists = map[string]int64{"boards": 1000, "groups": 1000, "columns": 1000, "column_values": 1000, "users": 1000, "teams": 1000,
	"tags": 1000, "workspaces": 1000, "docs": 1000, "assets": 1000, "subitems": 1000, "replies": 1000, "updates": 25, "items_page": 25,
	"next_items_page": 25, "items_page_by_column_values": 25}

// objects is how many objects of monday.com a field stands for.
func (g *graphMaker) objects(f *selection) int64 {
	switch ids := g.argument(f, "ids").(type) {
	case length:
		return max(int64(ids), 1)
	case []any:
		return max(int64(len(ids)), 1)
	case float64, string:
		return 1
	}
	if n, is := g.argument(f, "limit").(float64); is {
		return max(int64(n), 1)
	}
	return cmp.Or(mondayLists[f.name], 1)
}

// graphMaker makes data that a query asks for.
type graphMaker struct {
	fragments map[string][]selection
	variables map[string]any
	left      int // objects that may still be made
}

const (
	mostGraphObjects = 5000
	mostPage         = 250
)

// shopifyGraph answers a query. The row adds what the query cost.
func shopifyGraph(a *asked) *answer {
	var ask struct {
		Query     string
		Variables map[string]any
	}
	if strings.HasPrefix(a.Header.Get("Content-Type"), "application/graphql") {
		ask.Query = string(a.Body)
	} else {
		json.Unmarshal(a.Body, &ask) // a body that is none has no query
	}
	fields, fragments, err := readGraph(ask.Query)
	return &answer{status: http.StatusOK, body: func(r *reply) any {
		body, ok := r.body.(object)
		if !ok {
			return r.body
		}
		if err != nil {
			delete(body, "data")
			body["errors"] = []object{{"message": err.Error()}}
			return body
		}
		g := &graphMaker{fragments: fragments, variables: ask.Variables, left: mostGraphObjects}
		body["data"] = g.object(fields, "QueryRoot", 1, 0)
		return body
	}}
}

// object makes the object number n of a type.
func (g *graphMaker) object(fields []selection, kind string, n, depth int) object {
	all := object{}
	if g.left--; g.left < 0 || depth > mostGraphDepth {
		return all
	}
	for _, f := range fields {
		switch {
		case f.fragment != "":
			maps.Copy(all, g.object(g.fragments[f.fragment], kind, n, depth+1))
		case f.name == "userErrors":
			all[f.alias] = []object{}
		case f.fields != nil && g.pages(f.fields):
			all[f.alias] = g.connection(f, depth)
		case f.fields != nil:
			all[f.alias] = g.object(f.fields, typeOf(f.name), n, depth+1)
		default:
			all[f.alias] = leaf(f.name, kind, n)
		}
	}
	return all
}

// pages reports whether fields are those of a connection.
func (g *graphMaker) pages(fields []selection) bool {
	return slices.ContainsFunc(fields, func(f selection) bool {
		return f.name == "edges" || f.name == "nodes" || f.name == "pageInfo"
	})
}

// typeOf guesses the type of a field: Product for products.
func typeOf(name string) string {
	name = strings.TrimSuffix(name, "s")
	return strings.ToUpper(name[:min(1, len(name))]) + name[min(1, len(name)):]
}

// leaf makes a value.
func leaf(name, kind string, n int) any {
	lower := strings.ToLower(name)
	switch {
	case name == "__typename":
		return kind
	case name == "id":
		return fmt.Sprintf("gid://shopify/%s/%d", kind, n)
	case strings.HasPrefix(name, "has") || strings.HasPrefix(name, "is"):
		return false
	case strings.HasPrefix(lower, "total") || strings.Contains(lower, "count") || strings.Contains(lower, "quantity"):
		return n
	case strings.HasSuffix(name, "At"):
		return "2026-01-15T12:00:00Z"
	}
	return fmt.Sprintf("fig %d", n)
}

// argument returns an argument, or the variable that it names.
func (g *graphMaker) argument(f *selection, name string) any {
	v := f.arguments[name]
	if name, ok := v.(variable); ok {
		return g.variables[string(name)]
	}
	return v
}

// connection makes a page of a list.
func (g *graphMaker) connection(f selection, depth int) object {
	size, _ := g.argument(&f, "first").(float64)
	if size == 0 {
		size, _ = g.argument(&f, "last").(float64)
	}
	after, _ := g.argument(&f, "after").(string)
	from, _ := strconv.Atoi(after)
	from = min(max(from, 0), entries)
	to := min(from+int(min(max(size, 1), mostPage)), entries)
	kind, page := typeOf(f.name), object{}
	for _, part := range f.fields {
		list := []object{}
		for n := from + 1; n <= to && g.left > 0 && (part.name == "edges" || part.name == "nodes"); n++ {
			if part.name == "nodes" {
				list = append(list, g.object(part.fields, kind, n, depth+2))
				continue
			}
			edge := object{}
			for _, inner := range part.fields {
				if edge[inner.alias] = any(strconv.Itoa(n)); inner.name == "node" {
					edge[inner.alias] = g.object(inner.fields, kind, n, depth+2)
				}
			}
			list = append(list, edge)
		}
		switch part.name {
		case "edges", "nodes":
			page[part.alias] = list
		case "pageInfo":
			info := object{"hasNextPage": to < entries, "hasPreviousPage": from > 0, "startCursor": strconv.Itoa(from + 1),
				"endCursor": strconv.Itoa(to)}
			asked := object{}
			for _, inner := range part.fields {
				asked[inner.alias] = info[inner.name]
			}
			page[part.alias] = asked
		default:
			page[part.alias] = entries
		}
	}
	return page
}
