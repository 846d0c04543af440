package model

import (
	"encoding/json"
	"maps"
	"math"
	"regexp/syntax"
	"slices"
	"strings"
)

// maker makes a value that fits a JSON schema. It knows the keywords that SDKs write. It bounds its
// work, since a schema may refer to itself.
type maker struct {
	root map[string]any
	all  bool // optional properties and one item of each array are there, too
	draw int  // which value of an enum comes first
	left int  // values that may still be made
}

const (
	mostValues = 5000
	mostDepth  = 20
	fullDepth  = 6 // below it only what is required
	mostItems  = 100
	mostLength = 1000
)

// example returns a value of a schema: with all properties, or the minimum. draw decides between the values of
// an enum. It is nil if the schema cannot be read.
func example(raw json.RawMessage, all bool, draw int) any {
	var root map[string]any
	if json.Unmarshal(raw, &root) != nil {
		return nil
	}
	g := maker{root: root, all: all, draw: draw, left: mostValues}
	return g.value(root, 0, 0)
}

// value returns the value number nth of a schema. Values of different numbers differ where they
// can, for arrays of unique items.
func (g *maker) value(of any, depth, nth int) any {
	s, ok := of.(map[string]any)
	if g.left--; !ok || depth > mostDepth || g.left < 0 {
		return nil
	}
	if ref, ok := s["$ref"].(string); ok {
		return g.value(g.lookup(ref), depth+1, nth)
	}
	if v, ok := s["const"]; ok {
		return v
	}
	if list, _ := s["enum"].([]any); len(list) > 0 {
		return list[(g.draw+nth)%len(list)]
	}
	for _, name := range []string{"anyOf", "oneOf"} {
		if list, _ := s[name].([]any); len(list) > 0 {
			s = g.merged(s, name, []any{g.choose(list)})
		}
	}
	if list, _ := s["allOf"].([]any); len(list) > 0 {
		s = g.merged(s, "allOf", list)
	}
	if s["const"] != nil || s["enum"] != nil || s["$ref"] != nil || s["anyOf"] != nil || s["oneOf"] != nil {
		return g.value(s, depth+1, nth)
	}
	switch kindOf(s) {
	case "object":
		return g.object(s, depth)
	case "array":
		return g.array(s, depth)
	case "string":
		return written(s, nth)
	case "number", "integer":
		return number(s, nth)
	case "boolean":
		return nth%2 == 0
	}
	return nil
}

// kindOf returns the type of a schema, in lower case, since Gemini's types are in upper case. It is
// "" if there is none.
func kindOf(s map[string]any) string {
	kind, _ := s["type"].(string)
	if several, _ := s["type"].([]any); len(several) > 0 {
		kind, _ = several[0].(string)
		if second := several[len(several)-1]; kind == "null" && second != "null" {
			kind, _ = second.(string)
		}
	}
	switch {
	case kind != "":
		return strings.ToLower(kind)
	case s["properties"] != nil || s["required"] != nil:
		return "object"
	case s["items"] != nil || s["prefixItems"] != nil:
		return "array"
	}
	return ""
}

// lookup returns the schema at a reference within the document.
func (g *maker) lookup(ref string) any {
	path, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil
	}
	var at any = g.root
	for name := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
		if name == "" {
			continue
		}
		at, _ = at.(map[string]any)[strings.NewReplacer("~1", "/", "~0", "~").Replace(name)].(map[string]any)
	}
	return at
}

// choose returns the first alternative that is more than null.
func (g *maker) choose(list []any) any {
	for _, one := range list {
		if s, ok := one.(map[string]any); ok && kindOf(s) != "null" {
			return one
		}
	}
	return list[0]
}

// merged returns a schema without the keyword, and with what its parts ask for.
func (g *maker) merged(s map[string]any, keyword string, parts []any) map[string]any {
	all := map[string]any{}
	add := func(from map[string]any) {
		for name, v := range from {
			switch old, both := all[name]; {
			case both && name == "required":
				first, _ := old.([]any)
				second, _ := v.([]any)
				all[name] = slices.Concat(first, second)
			case both && name == "properties":
				first, _ := old.(map[string]any)
				second, _ := v.(map[string]any)
				properties := map[string]any{}
				maps.Copy(properties, first)
				maps.Copy(properties, second)
				all[name] = properties
			default:
				all[name] = v
			}
		}
	}
	rest := maps.Clone(s)
	delete(rest, keyword)
	add(rest)
	for _, part := range parts {
		part, _ := part.(map[string]any)
		if ref, ok := part["$ref"].(string); ok {
			part, _ = g.lookup(ref).(map[string]any)
		}
		add(part)
	}
	return all
}

func (g *maker) object(s map[string]any, depth int) any {
	properties, _ := s["properties"].(map[string]any)
	names := []string{}
	required, _ := s["required"].([]any)
	for _, name := range required {
		if name, ok := name.(string); ok {
			names = append(names, name)
		}
	}
	if g.all && depth < fullDepth {
		for name := range properties {
			names = append(names, name)
		}
	}
	slices.Sort(names) // so that the same schema has the same value
	all := map[string]any{}
	for _, name := range slices.Compact(names) {
		of, ok := properties[name]
		if !ok {
			of = s["additionalProperties"]
		}
		all[name] = g.value(of, depth+1, 0)
	}
	for n := 1; float64(len(all)) < min(limit(s, "minProperties", 0), mostItems); n++ {
		all["fig"+strings.Repeat("s", n)] = g.value(s["additionalProperties"], depth+1, 0)
	}
	return all
}

func (g *maker) array(s map[string]any, depth int) any {
	first, _ := s["prefixItems"].([]any)
	n := int(min(limit(s, "minItems", 0), mostItems))
	if n == 0 && g.all && depth < fullDepth && s["items"] != nil {
		n = int(min(limit(s, "maxItems", 1), 1))
	}
	n = max(n, len(first))
	list := []any{}
	for i := range n {
		of := s["items"]
		if i < len(first) {
			of = first[i]
		}
		list = append(list, g.value(of, depth+1, i))
	}
	return list
}

// limit returns a number of the schema, or the default.
func limit(s map[string]any, name string, usual float64) float64 {
	if n, ok := s[name].(float64); ok {
		return n
	}
	return usual
}

// number returns the smallest number from 1 that the schema allows, or else its largest.
func number(s map[string]any, nth int) any {
	step := limit(s, "multipleOf", 1)
	if step <= 0 {
		step = 1
	}
	least := limit(s, "minimum", math.Inf(-1))
	if above, ok := s["exclusiveMinimum"].(float64); ok {
		least = max(least, above+step/2)
	}
	most := limit(s, "maximum", math.Inf(1))
	if below, ok := s["exclusiveMaximum"].(float64); ok {
		most = min(most, below-step/2)
	}
	n := math.Ceil(max(least, min(1, most))/step) * step
	if n > most {
		n = math.Floor(most/step) * step
	}
	if n < least || math.IsInf(n, 0) || math.IsNaN(n) { // no multiple is within, or there are none so large
		n = max(least, min(1, most))
	}
	if more := n + float64(nth)*step; more <= most {
		n = more
	}
	if n == math.Trunc(n) && math.Abs(n) < 1<<53 {
		return int64(n)
	}
	return n
}

// formats has an example of each format that SDKs write.
var formats = map[string]string{
	"date-time": "2026-01-15T12:00:00Z", "date": "2026-01-15", "time": "12:00:00Z", "duration": "PT1H",
	"email": "fig@example.com", "hostname": "example.com", "ipv4": "192.0.2.1", "ipv6": "2001:db8::1",
	"uri": "https://example.com/fig", "url": "https://example.com/fig",
	"uuid": "00000000-0000-4000-8000-000000000000",
}

// written returns a string that the schema allows.
func written(s map[string]any, nth int) string {
	name, _ := s["format"].(string)
	if text, ok := formats[name]; ok {
		return text
	}
	if pattern, ok := s["pattern"].(string); ok {
		if re, err := syntax.Parse(pattern, syntax.Perl); err == nil {
			var b strings.Builder
			match(&b, re)
			return b.String()
		}
	}
	text := "fig" + strings.Repeat("s", nth)
	if least := int(min(limit(s, "minLength", 0), mostLength)); len(text) < least {
		text += strings.Repeat("s", least-len(text))
	}
	if most := int(max(limit(s, "maxLength", mostLength), 0)); len(text) > most {
		text = text[:most]
	}
	return text
}

// match writes a short text that an expression matches.
func match(b *strings.Builder, re *syntax.Regexp) {
	if b.Len() > mostLength {
		return
	}
	switch re.Op {
	case syntax.OpLiteral:
		b.WriteString(string(re.Rune))
	case syntax.OpCharClass:
		b.WriteRune(member(re.Rune))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteByte('a')
	case syntax.OpCapture, syntax.OpPlus:
		match(b, re.Sub[0])
	case syntax.OpRepeat:
		for range re.Min {
			match(b, re.Sub[0])
		}
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			match(b, sub)
		}
	case syntax.OpAlternate:
		match(b, re.Sub[0])
	}
}

// member returns a character of a class: a letter if it has one.
func member(class []rune) rune {
	for _, wish := range "aA0_ " {
		for i := 0; i+1 < len(class); i += 2 {
			if class[i] <= wish && wish <= class[i+1] {
				return wish
			}
		}
	}
	if len(class) == 0 {
		return 'a'
	}
	return class[0]
}

// format is a field that says which form the answer's text has.
type format struct {
	Type   string
	Schema json.RawMessage
	Inner  *format `json:"json_schema"`
	Format *format
}

// anyObject is an object, for a request without a schema.
var anyObject = []byte(`{"answer":"the cat sat"}`)

// structured reads a field with the form of the answer's text. JSON is a value of the schema, or
// any object.
func (a *Ask) structured(f *form, name string) *Problem {
	var r format
	if !f.read(name, &r) {
		return nil
	}
	param := name + ".type"
	for r.Format != nil {
		r, param = *r.Format, name+".format.type"
	}
	switch {
	case r.Type == "json_object" && a.API != "messages":
		a.Value = anyObject
	case r.Type == "json_schema" && r.Inner != nil:
		a.Value = Encode(example(r.Inner.Schema, true, f.draw()))
	case r.Type == "json_schema":
		a.Value = Encode(example(r.Schema, true, f.draw()))
	case r.Type == "", r.Type == "text" && a.API != "messages":
	case a.API == "messages":
		return badField(param, "%s: Input should be 'json_schema'", param)
	default:
		p := badField(param, "Invalid value: '%.50s'. Supported values are: 'json_object', 'json_schema', and 'text'.", r.Type)
		p.Code = "invalid_value"
		return p
	}
	return nil
}

// draw is a number that is the same for the same prompt. Prompts of a batch get different labels by it.
func (f *form) draw() int {
	h := uint32(2166136261) // FNV-1a
	for _, name := range []string{"messages", "input", "contents"} {
		for _, c := range f.fields[name] {
			h = (h ^ uint32(c)) * 16777619
		}
	}
	return int(h >> 1)
}
