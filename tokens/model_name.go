package tokens

import (
	"encoding/json"
)

// ModelIn returns the model that a body names at its top, as Body.Model has it, and whether the body is
// a JSON object. It reads bodies of any API.
func ModelIn(raw []byte) (model string, ok bool) { return TextIn(raw, "model") }

// TextIn returns the text of a member at the top of a body, empty if there is none, and whether the body
// is a JSON object.
func TextIn(raw []byte, member string) (text string, ok bool) {
	if first(raw) != '{' || !json.Valid(raw) {
		return "", false
	}
	return str(field(raw, member)), true
}

// prompts are the members of bodies that have the prompt, in the order in which models read them.
var prompts = [...]string{"tools", "system", "instructions", "messages", "input", "contents", "prompt"}

// Beginning returns the first n bytes of the prompt in a body: of its tools, its system prompt and its
// messages, as they are written. It is nil if the prompt is shorter. Requests with one beginning may
// share a cache of prompts.
func Beginning(raw []byte, n int) []byte {
	if first(raw) != '{' || !json.Valid(raw) {
		return nil
	}
	var all []byte
	for _, name := range prompts {
		v := field(raw, name)
		if all = append(all, v[:min(len(v), n-len(all))]...); len(all) == n {
			return all
		}
	}
	return nil
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
