package tokens

import (
	"encoding/json"
)

// ModelIn returns the model that a body names at its top, as Body.Model has it, and whether the body is
// a JSON object. It reads bodies of any API.
func ModelIn(raw []byte) (model string, ok bool) {
	if first(raw) != '{' || !json.Valid(raw) {
		return "", false
	}
	return str(field(raw, "model")), true
}

// Renamed returns a copy of a body with another model at its top. All else stays, byte by byte. A body
// that names no model at its top, or is no JSON object, is returned itself.
func Renamed(raw []byte, model string) []byte {
	if name, ok := ModelIn(raw); !ok || name == "" {
		return raw
	}
	quoted, err := json.Marshal(model)
	if err != nil {
		return raw // cannot happen: a string has a form in JSON
	}
	out := make([]byte, 0, len(raw)+len(quoted))
	rest := raw
	each(raw, func(key, v []byte) {
		if string(key) == "model" { // if there are several, servers differ in which one counts
			at := cap(rest) - cap(v)
			out = append(append(out, rest[:at]...), quoted...)
			rest = rest[at+len(v):]
		}
	})
	return append(out, rest...)
}
