package format

import (
	"encoding/json"
	"reflect"
	"testing"
)

// An expression sees JSON with its numbers as they are written, null for an empty body, and any other body as text.
func TestParsed(t *testing.T) {
	for body, want := range map[string]any{
		"":                     nil,
		"null":                 nil,
		`{"n":1.50}`:           map[string]any{"n": json.Number("1.50")},
		" [1] \n":              []any{json.Number("1")},
		`{"n":1} {"n":2}`:      `{"n":1} {"n":2}`,
		"no JSON":              "no JSON",
		"\xff is not UTF-8":    "\ufffd is not UTF-8",
		`"a text"`:             "a text",
		"12345678901234567890": json.Number("12345678901234567890"),
	} {
		if got := Parsed([]byte(body)); !reflect.DeepEqual(got, want) {
			t.Errorf("%q is %#v, want %#v", body, got, want)
		}
	}
}
