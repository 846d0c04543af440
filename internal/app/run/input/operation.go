package input

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Operation makes requests of rows by the description of an API. A column belongs to the parameter,
// or the member of the body, that has its name. Other columns are data. An empty cell, or null, is
// left out.
type Operation struct {
	Method     string
	base, path string
	params     []apiParam // of path, query and header
	members    []apiParam // of the body
	bodyType   string     // empty: no body
	whole      bool       // the column "body" has the whole body
	bodyNeeded bool
	schemas    int // that were read for the body
}

// apiParam is a parameter of an operation, or a member of its body.
type apiParam struct {
	name, in string // in: path, query, header, body
	needed   bool
	explode  bool // elements of an array are parameters of their own
	schema   apiSchema
}

// apiSchema is what is checked of a value.
type apiSchema struct {
	kind   string // the only type; empty: any
	format string
	enum   []string
}

// Plan makes an Operation of an operation. server, if not empty, is its address.
func (a *API) Plan(o *APIOperation, server string) (*Operation, error) {
	p := &Operation{Method: o.Method, path: o.Path, base: server}
	if server == "" {
		var err error
		if p.base, err = a.base(o); err != nil {
			return nil, err
		}
	}
	p.base = strings.TrimRight(p.base, "/")
	if !isURL(p.base) || strings.ContainsAny(p.base, "{}?#") {
		return nil, fmt.Errorf("%s has no complete address of a server (servers: %q), expected --server https://…",
			o.Name, p.base)
	}
	if err := a.params(o, p); err != nil {
		return nil, err
	}
	if err := a.body(o, p); err != nil {
		return nil, err
	}
	return p, nil
}

// params reads the parameters. Those of the operation go before those of its path.
func (a *API) params(o *APIOperation, p *Operation) error {
	for _, in := range []map[string]any{o.op, o.item} {
		list, _ := in["parameters"].([]any)
		for i, v := range list {
			at := fmt.Sprintf("%s, parameter %d", o.Name, i+1)
			text, err := a.object(v, at)
			if err != nil {
				return err
			}
			q := apiParam{explode: text["explode"] != false}
			q.name, _ = text["name"].(string)
			q.in, _ = text["in"].(string)
			q.needed = text["required"] == true || q.in == "path"
			if q.name == "" || !slices.Contains([]string{"path", "query", "header", "cookie"}, q.in) {
				return fmt.Errorf("%s: expected a name, and in: path, query, header or cookie", at)
			}
			if q.schema, err = a.schema(text["schema"], at); err != nil {
				return err
			}
			style, _ := text["style"].(string)
			odd := q.in == "cookie" || text["content"] != nil || q.schema.kind == "object" ||
				style != "" && style != map[string]string{"path": "simple", "query": "form", "header": "simple"}[q.in]
			switch {
			case slices.ContainsFunc(p.params, func(was apiParam) bool { return was.name == q.name && was.in == q.in }):
			case q.in == "header" && slices.Contains([]string{"accept", "content-type", "authorization"},
				strings.ToLower(q.name)):
			case odd && q.needed:
				return fmt.Errorf("%s: %s, in %s, has a form that is not supported; "+
					"expected --url and --body for this operation", at, q.name, q.in)
			case odd:
			default:
				p.params = append(p.params, q)
			}
		}
	}
	for _, m := range inURL.FindAllStringSubmatch(o.Path, -1) {
		if !slices.ContainsFunc(p.params, func(q apiParam) bool { return q.in == "path" && q.name == m[1] }) {
			return fmt.Errorf("%s: its path has {%s}, which no parameter describes", o.Name, m[1])
		}
	}
	return nil
}

// body reads the form of the body: JSON, or a form.
func (a *API) body(o *APIOperation, p *Operation) error {
	at := o.Name + ", requestBody"
	body, err := a.object(o.op["requestBody"], at)
	if body == nil || err != nil {
		return err
	}
	p.bodyNeeded = body["required"] == true
	content, err := a.object(body["content"], at+".content")
	if err != nil {
		return err
	}
	for _, kind := range slices.Sorted(maps.Keys(content)) {
		plain, _, _ := strings.Cut(strings.ToLower(kind), ";")
		if isJSON := plain == "application/json" || strings.HasSuffix(plain,
			"+json"); isJSON || plain == "application/x-www-form-urlencoded" && p.bodyType == "" {
			p.bodyType = kind
			if plain == "application/json" {
				break
			}
		}
	}
	if p.bodyType == "" {
		if !p.bodyNeeded {
			return nil
		}
		return fmt.Errorf("%s: it is %s, expected application/json or application/x-www-form-urlencoded", at,
			strings.Join(slices.Sorted(maps.Keys(content)), " or "))
	}
	media, err := a.object(content[p.bodyType], at)
	if err != nil {
		return err
	}
	if err := a.properties(media["schema"], at, p, 0); err != nil {
		return err
	}
	p.whole = len(p.members) == 0
	return nil
}

// properties adds the members of a body, with those of allOf.
func (a *API) properties(v any, at string, p *Operation, depth int) error {
	schema, err := a.object(v, at)
	if p.schemas++; err == nil && (depth > mostRefs || p.schemas > mostSchemas) {
		err = fmt.Errorf("%s: schemas within schemas, more than %d deep or %d in all", at, mostRefs, mostSchemas)
	}
	if err != nil {
		return err
	}
	all, _ := schema["allOf"].([]any)
	for _, one := range all {
		if err := a.properties(one, at, p, depth+1); err != nil {
			return err
		}
	}
	needed, _ := schema["required"].([]any)
	properties, err := a.object(schema["properties"], at)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		text, err := a.object(properties[name], at+"."+name)
		if err != nil {
			return err
		}
		if text["readOnly"] == true || slices.ContainsFunc(p.members, func(m apiParam) bool { return m.name == name }) {
			continue
		}
		m := apiParam{name: name, in: "body", explode: true}
		if m.schema, err = a.schema(text, at+"."+name); err != nil {
			return err
		}
		p.members = append(p.members, m)
	}
	for i := range p.members {
		p.members[i].needed = p.members[i].needed || slices.Contains(needed, any(p.members[i].name))
	}
	return nil
}

// schema reads what is checked of a value.
func (a *API) schema(v any, at string) (s apiSchema, err error) {
	text, err := a.object(v, at)
	if err != nil {
		return s, err
	}
	s.kind, _ = text["type"].(string)
	if several, is := text["type"].([]any); is { // 3.1: [string, "null"]
		several = slices.DeleteFunc(slices.Clone(several), func(t any) bool { return t == "null" })
		if len(several) == 1 {
			s.kind, _ = several[0].(string)
		}
	}
	s.format, _ = text["format"].(string)
	enum, _ := text["enum"].([]any)
	for _, one := range enum {
		if one != nil {
			s.enum = append(s.enum, fmt.Sprint(one))
		}
	}
	return s, nil
}

// Needs returns the columns that each input must have.
func (p *Operation) Needs() (all []string) {
	for _, q := range p.params {
		if q.needed {
			all = append(all, q.name)
		}
	}
	if p.bodyNeeded && p.whole {
		all = append(all, "body")
	}
	for _, m := range p.members {
		if m.needed && p.bodyNeeded {
			all = append(all, m.name)
		}
	}
	return all
}

// fill makes the request of a row.
func (p *Operation) fill(row *Row) (made Made, err error) {
	path, query := p.path, url.Values{}
	made.Header = http.Header{}
	for _, q := range p.params {
		c, _ := row.Get(q.name)
		values, err := q.values(c)
		if err != nil {
			return made, err
		}
		switch {
		case len(values) == 0 && q.needed:
			return made, q.missing(c)
		case len(values) == 0:
		case q.in == "path":
			if v := strings.Join(values, ","); v == "." || v == ".." {
				return made, &badCell{c, fmt.Sprintf("column %s is %q, which would lead to another path", q.name, v)}
			}
			for i := range values {
				values[i] = url.PathEscape(values[i])
			}
			path = strings.ReplaceAll(path, "{"+q.name+"}", strings.Join(values, ","))
		case q.in == "query" && q.explode:
			query[q.name] = values
		case q.in == "query":
			query.Set(q.name, strings.Join(values, ","))
		default:
			made.Header.Set(q.name, strings.Join(values, ","))
		}
	}
	if made.URL = p.base + path; len(query) > 0 {
		made.URL += "?" + query.Encode()
	}
	if made.Body, err = p.fillBody(row); made.Body != nil {
		made.Header.Set("Content-Type", p.bodyType)
	}
	return made, err
}

// fillBody makes the body of a row; nil: none.
func (p *Operation) fillBody(row *Row) ([]byte, error) {
	if p.whole {
		c, err := row.Get("body")
		if err != nil || strings.TrimSpace(c.Text) == "" {
			if p.bodyNeeded {
				return nil, &badCell{c, "column body is empty, and the operation needs a body"}
			}
			return nil, nil
		}
		if p.isJSON() && !json.Valid([]byte(c.Text)) {
			return nil, &badCell{c, "column body is no JSON, expected a whole body of JSON"}
		}
		return []byte(c.Text), nil
	}
	form, object := url.Values{}, map[string]json.RawMessage{}
	var missing error
	for _, m := range p.members {
		c, _ := row.Get(m.name)
		values, err := m.values(c)
		switch {
		case err != nil:
			return nil, err
		case len(values) > 0:
			form[m.name], object[m.name] = values, m.json(c, values)
		case m.needed && missing == nil:
			missing = m.missing(c) // an error only if there is a body
		}
	}
	switch {
	case len(form) == 0 && !p.bodyNeeded:
		return nil, nil
	case missing != nil:
		return nil, missing
	case !p.isJSON():
		return []byte(form.Encode()), nil
	}
	return json.Marshal(object)
}

func (p *Operation) isJSON() bool { return strings.Contains(strings.ToLower(p.bodyType), "json") }

// missing is the error for a value that is needed and empty.
func (q *apiParam) missing(c Cell) error {
	return &badCell{c, fmt.Sprintf("column %s is empty, and the operation needs it (in: %s)", q.name, q.in)}
}

// values returns the values of a cell, checked: the elements of an array, or the one that it is. A
// text is an array with commas between.
func (q *apiParam) values(c Cell) (all []string, err error) {
	text := strings.TrimSpace(c.Text)
	if text == "" || c.JSON == "null" {
		return nil, nil
	}
	if q.schema.kind == "object" && !json.Valid([]byte(text)) {
		return nil, &badCell{c, fmt.Sprintf("column %s is %s, expected an object of JSON", q.name, shortly(text))}
	}
	if q.schema.kind == "array" {
		var elements []any
		switch d := json.NewDecoder(strings.NewReader(text)); {
		case !strings.HasPrefix(text, "["):
			all = strings.Split(text, ",")
		default:
			d.UseNumber()
			if err := d.Decode(&elements); err != nil {
				return nil, &badCell{c,
					fmt.Sprintf("column %s is %s, expected an array of JSON, or texts with commas between", q.name,
						shortly(text))}
			}
			for _, e := range elements {
				all = append(all, fmt.Sprint(e))
			}
		}
		return all, nil
	}
	if want := q.schema.wants(text); want != "" {
		return nil, &badCell{c, fmt.Sprintf("column %s is %s, expected %s (in: %s)", q.name, shortly(text), want, q.in)}
	}
	if q.schema.kind == "string" || q.schema.kind == "" {
		text = c.Text // with its spaces
	}
	return []string{text}, nil
}

// json returns a value as a member of a body.
func (q *apiParam) json(c Cell, values []string) json.RawMessage {
	switch {
	case q.schema.kind == "string":
		b, _ := json.Marshal(values[0]) // a text always has a form in JSON
		return b
	case c.JSON != "":
		return json.RawMessage(c.JSON)
	case q.schema.kind == "array" && !strings.HasPrefix(strings.TrimSpace(values[0]),
		"[") && !json.Valid([]byte(c.Text)):
		b, _ := json.Marshal(values)
		return b
	case q.schema.kind != "" && json.Valid([]byte(c.Text)):
		return json.RawMessage(c.Text)
	}
	b, _ := json.Marshal(c.Text)
	return b
}

// apiForms are the formats that are checked, with an example each.
var apiForms = map[string]struct {
	form    *regexp.Regexp
	example string
}{
	"date": {regexp.MustCompile(`^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])$`), "a date such as 2026-11-29"},
	"date-time": {regexp.MustCompile(`^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$`),
		"a time such as 2026-11-29T18:00:00Z"},
	"uuid": {regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`),
		"a UUID such as 123e4567-e89b-12d3-a456-426614174000"},
}

var (
	apiInteger = regexp.MustCompile(`^-?(0|[1-9]\d*)$`)
	apiNumber  = regexp.MustCompile(`^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$`)
)

// wants returns what is expected in place of a value; empty: the value will do.
func (s *apiSchema) wants(text string) string {
	form, known := apiForms[s.format]
	switch {
	case len(s.enum) > 0 && !slices.Contains(s.enum, text):
		return "one of " + strings.Join(s.enum, ", ")
	case s.kind == "integer" && !apiInteger.MatchString(text):
		return "an integer"
	case s.kind == "number" && !apiNumber.MatchString(text):
		return "a number"
	case s.kind == "boolean" && text != "true" && text != "false":
		return "true or false"
	case s.kind == "integer" && s.format == "int32":
		if _, err := strconv.ParseInt(text, 10, 32); err != nil {
			return "an integer of 32 bits"
		}
	case s.kind == "string" && known && !form.form.MatchString(text):
		return form.example
	}
	return ""
}
