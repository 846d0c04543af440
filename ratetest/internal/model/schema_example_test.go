package model

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// A value fits its schema: with all properties where the answer is JSON, with the fewest in a call.
func TestExample(t *testing.T) {
	for _, c := range []struct{ schema, all, fewest string }{
		{`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"boolean"}},"required":["a"]}`, `{"a":"fig","b":true}`, `{"a":"fig"}`},
		{`{"properties":{"a":{"type":["null","integer"]}}}`, `{"a":1}`, `{}`},
		{`{"type":"OBJECT","properties":{"a":{"type":"STRING"}},"required":["a"]}`, `{"a":"fig"}`, `{"a":"fig"}`},
		{`{"type":"array","items":{"enum":["x","y"]},"minItems":2,"uniqueItems":true}`, `["x","y"]`, `["x","y"]`},
		{`{"type":"array","items":{"type":"number"}}`, `[1]`, `[]`},
		{`{"type":"array","items":{"type":"number"},"maxItems":0}`, `[]`, `[]`},
		{`{"type":"array","prefixItems":[{"const":"k"},{"type":"integer"}],"minItems":3,"items":{"type":"string"}}`, `["k",2,"figss"]`, `["k",2,"figss"]`},
		{`{"type":"integer","minimum":3}`, `3`, `3`},
		{`{"type":"integer","exclusiveMinimum":3,"maximum":4}`, `4`, `4`},
		{`{"type":"integer","minimum":-9,"maximum":-5}`, `-5`, `-5`},
		{`{"type":"number","multipleOf":0.5,"exclusiveMinimum":1}`, `1.5`, `1.5`},
		{`{"type":"integer","multipleOf":7,"minimum":8}`, `14`, `14`},
		{`{"type":"string","minLength":5}`, `"figss"`, `"figss"`},
		{`{"type":"string","maxLength":2}`, `"fi"`, `"fi"`},
		{`{"type":"string","pattern":"^[A-Z]{2}-\\d{3,}(x|y)?$"}`, `"AA-000"`, `"AA-000"`},
		{`{"type":"string","pattern":"(?=lookahead)"}`, `"fig"`, `"fig"`},
		{`{"type":"string","format":"date-time"}`, `"2026-01-15T12:00:00Z"`, `"2026-01-15T12:00:00Z"`},
		{`{"anyOf":[{"type":"null"},{"type":"string"}]}`, `"fig"`, `"fig"`},
		{`{"oneOf":[{"$ref":"#/$defs/a~1b"}],"$defs":{"a/b":{"const":7}}}`, `7`, `7`},
		{`{"allOf":[{"properties":{"a":{"const":1}},"required":["a"]},{"properties":{"b":{"const":2}},"required":["b"]}]}`, `{"a":1,"b":2}`, `{"a":1,"b":2}`},
		{`{"type":"object","additionalProperties":{"type":"integer"},"minProperties":2}`, `{"figs":1,"figss":1}`, `{"figs":1,"figss":1}`},
		{`{"type":"object","required":["a"],"additionalProperties":{"type":"integer"}}`, `{"a":1}`, `{"a":1}`},
		{`{"const":null}`, `null`, `null`},
		{`{}`, `null`, `null`},
		{`7`, `null`, `null`},
	} {
		for all, want := range map[bool]string{true: c.all, false: c.fewest} {
			if got := string(Encode(example(json.RawMessage(c.schema), all, 0))); got != want {
				t.Errorf("%s, all %t: %s, want %s", c.schema, all, got, want)
			}
		}
	}
}

// A schema that refers to itself ends, with every property that it asks for down to a depth.
func TestExampleRecurs(t *testing.T) {
	tree := `{"$defs":{"n":{"type":"object","properties":{"l":{"$ref":"#/$defs/n"},"r":{"$ref":"#/$defs/n"}}}},"$ref":"#/$defs/n"}`
	if n := len(Encode(example(json.RawMessage(tree), true, 0))); n < 50 || n > 10_000 {
		t.Errorf("%d bytes", n)
	}
	for _, loop := range []string{`{"$ref":"#"}`, `{"allOf":[{"$ref":"#"}]}`, `{"anyOf":[{"$ref":"#"}],"properties":{"a":{"$ref":"#"}},"required":["a"]}`} {
		example(json.RawMessage(loop), true, 0)
	}
}

// Prompts are labelled by their text: the same label again for the same prompt, and all labels among many prompts.
func TestLabels(t *testing.T) {
	const shape = `{"type":"json_schema","json_schema":{"schema":{"type":"object","properties":{"label":{"enum":["good","bad","so-so"]}}}}}`
	label := func(n int, api, fields string) string {
		a, p := Read(FamilyOpenAI, api, fmt.Appendf(nil, fields, n))
		if p != nil {
			t.Fatal(p.Text)
		}
		return string(a.Value)
	}
	for api, fields := range map[string]string{
		"chat":      `{"model":"m","messages":[{"role":"user","content":"Row %d"}],"response_format":` + shape + `}`,
		"responses": `{"model":"m","input":"Row %d","text":{"format":{"type":"json_schema","schema":{"enum":[1,2,3]}}}}`,
	} {
		seen := map[string]bool{}
		for n := range 50 {
			is := label(n, api, fields)
			if seen[is] = true; is != label(n, api, fields) {
				t.Errorf("%s: prompt %d has two labels", api, n)
			}
		}
		if len(seen) != 3 {
			t.Errorf("%s: 50 prompts have the labels %v, expected all three", api, seen)
		}
	}
}

// A form of answers that the API does not know is refused in its words.
func TestFormOfAnswers(t *testing.T) {
	for _, c := range []struct{ api, fields, param, code, text string }{
		{"chat", `"messages":[],"response_format":{"type":"json_schemaX"}`, "response_format.type", "invalid_value", "Invalid value: 'json_schemaX'. Supported values are: 'json_object', 'json_schema', and 'text'."},
		{"responses", `"input":"x","text":{"format":{"type":"yaml"}}`, "text.format.type", "invalid_value", "Invalid value: 'yaml'."},
		{"messages", `"messages":[],"output_config":{"format":{"type":"json_object"}}`, "output_config.format.type", "", "output_config.format.type: Input should be 'json_schema'"},
	} {
		_, p := Read(FamilyOpenAI, c.api, []byte(`{"model":"m","max_tokens":9,`+c.fields+`}`))
		if p == nil || p.Param != c.param || p.Code != c.code || !strings.HasPrefix(p.Text, c.text) {
			t.Errorf("%s: %+v", c.fields, p)
		}
	}
	for _, fields := range []string{`"response_format":{"type":"text"}`, `"response_format":null`, `"response_format":{"type":"json_object"}`} {
		if _, p := Read(FamilyOpenAI, "chat", []byte(`{"model":"m","messages":[{"role":"user","content":"x"}],`+fields+`}`)); p != nil {
			t.Errorf("%s: %s", fields, p.Text)
		}
	}
}

// FuzzExample: every schema has a value that JSON can hold, of a bounded size.
func FuzzExample(f *testing.F) {
	f.Add(`{"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]}`, true)
	f.Add(`{"type":"array","minItems":1e300,"items":{"type":"array","minItems":99,"items":{"type":"string","minLength":1e9}}}`, false)
	f.Add(`{"type":"number","minimum":1e308,"multipleOf":1e-300,"maximum":-1e308}`, true)
	f.Add(`{"type":"string","pattern":"(a{900}){900}"}`, true)
	f.Fuzz(func(t *testing.T, schema string, all bool) {
		if n := len(Encode(example(json.RawMessage(schema), all, 7))); n > 8<<20 {
			t.Errorf("%d bytes", n)
		}
	})
}

// The parts of a text that is JSON make the whole, and no character is cut in two.
func TestPartsOfValue(t *testing.T) {
	c := Answer{Ask: Ask{Choices: 1, Value: []byte(`{"añb":"天空是蓝色的 🙂🙂","c":1}`)}, PerEvent: 2}
	c.Used.Output = c.Tokens()
	var said strings.Builder
	for p := range c.chunks {
		if _, err := json.Marshal(p.text); err != nil || string(Encode(p.text)) == "" {
			t.Error(err)
		}
		var again string
		if json.Unmarshal(Encode(p.text), &again); again != p.text {
			t.Errorf("%q is cut within a character", p.text)
		}
		said.WriteString(p.text)
	}
	if said.String() != string(c.Value) || c.Text() != said.String() {
		t.Errorf("%s, %s, want %s", said.String(), c.Text(), c.Value)
	}
	c.MaxOutput = 2
	if c.Used.Output = c.Tokens(); c.Text() != `{"añb":` || c.Used.Output != 2 {
		t.Errorf("%d tokens: %s", c.Used.Output, c.Text())
	}
}
