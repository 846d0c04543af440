package yamlfile

import (
	"encoding/json"
	"maps"
	"strings"
)

// Form is what a value looks like, written as a JSON schema.
type Form map[string]any

// Forms of values.
var (
	AText   = Form{"type": []string{"string", "number", "boolean"}}
	ACount  = Form{"type": "integer", "minimum": 1}
	ANumber = Form{"type": "number"}
	ASwitch = Form{"type": "boolean"}
	ARate   = Form{"type": "string", "pattern": `^\s*[0-9]`, "examples": []string{"20/s", "4500/h", "300/5m"}}
	ASpan   = Form{
		"anyOf": []Form{
			{"type": "string", "pattern": `^\+?(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$|^\+?([0-9]+(\.[0-9]*)?|\.[0-9]+)d$`},
			{"const": 0},
		},
		"examples": []string{"500ms", "30s", "1h30m", "2d"},
	}
)

// Object is the form of a mapping with these keys.
func Object(fields []Field) Form {
	properties, must := map[string]Form{}, []string{}
	for _, f := range fields {
		p := Form{"description": f.About}
		maps.Copy(p, f.Kind.As)
		properties[f.Key] = p
		if f.Kind.must {
			must = append(must, f.Key)
		}
	}
	o := Form{"type": "object", "properties": properties, "additionalProperties": false}
	if len(must) > 0 {
		o["required"] = must
	}
	return o
}

// ListOf is the form of a list of such values.
func ListOf(items Form) Form { return Form{"type": "array", "items": items} }

// Schema writes the form of a file as a JSON schema (draft 2020-12).
func Schema(title string, root Form) []byte {
	s := maps.Clone(root)
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = title
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(s); err != nil {
		panic(err) // the tables are ours
	}
	return []byte(b.String())
}
