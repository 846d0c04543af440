package model

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Ask has the contents of a request.
type Ask struct {
	// API is "chat", "responses", "embeddings", "moderations" or "messages".
	API    string
	Model  string
	Stream bool
	// Choices is the number of answers, 1 or more. MaxOutput is the most tokens of each answer, 0
	// if there is no bound.
	Choices, MaxOutput int64
	// Estimate is the server's guess of the input when the request arrives, at least 1. It is a
	// token per 4 characters of text for the model, and 765 per picture, sound or file.
	Estimate int64

	Tool         *Tool  // the tool that the answer calls
	Value        []byte // the JSON that the answer has to be, nil if it is in words
	IncludeUsage bool   // a chat stream ends with its usage
	Inputs       int    // the number of inputs, of embeddings and moderations
	Dimensions   int    // of an embedding
	Base64       bool   // embeddings are sent in base64
}

// Output returns the most tokens of all answers together, 0 if there is no bound.
func (a *Ask) Output() int64 { return a.MaxOutput * a.Choices }

// Generates reports whether the answer is text, or a call of a tool.
func (a *Ask) Generates() bool {
	return slices.Contains([]string{"chat", "responses", "messages", geminiWhole, geminiStream}, a.API)
}

const (
	MostBody       = 32 << 20 // bytes of a request
	MostOutput     = 1 << 20  // output tokens that a request may allow
	mostChoices    = 128
	mostInputs     = 2048 // of embeddings
	mostDimensions = 3072
	perMedium      = 765 // tokens: a picture of 1024 × 1024
)

// Read reads the body of a request to an API of a family.
func Read(family Family, api string, body []byte) (Ask, *Problem) {
	return ReadNamed(family, api, "", body)
}

// ReadCount reads the body of a message whose tokens are to be counted. It needs no max_tokens.
func ReadCount(body []byte) (Ask, *Problem) {
	f, p := readForm(body)
	if p != nil {
		return Ask{}, p
	}
	f.fields["max_tokens"] = json.RawMessage("1")
	return readFields(FamilyAnthropic, "messages", f)
}

// ReadNamed reads the body of a request whose path names the model, unless name is "".
func ReadNamed(family Family, api, name string, body []byte) (Ask, *Problem) {
	f, p := readForm(body)
	if p != nil {
		return Ask{API: api, Choices: 1}, p
	}
	if name != "" {
		f.fields["model"] = Encode(name)
	}
	return readFields(family, api, f)
}

func readFields(family Family, api string, f *form) (Ask, *Problem) {
	a := Ask{API: api, Choices: 1, Inputs: 1, Dimensions: 1536, IncludeUsage: api != "chat"}
	text, want, p := a.options(f)
	if p != nil {
		return a, p
	}
	if p := a.bounds(f, family); p != nil {
		return a, p
	}
	if a.Generates() {
		f.read("stream", &a.Stream)
		if a.Tool, p = f.chosen(); p != nil {
			return a, p
		}
	}
	if f.wrong != "" {
		return a, badField(f.wrong, "%s: %.50s is of a wrong type", f.wrong, f.fields[f.wrong])
	}
	for _, name := range append([]string{"model"}, want...) {
		if raw := f.fields[name]; len(raw) == 0 || string(raw) == "null" || string(raw) == `""` || string(raw) == "[]" {
			return a, &Problem{Param: name, Missing: true, Text: name + ": field required"}
		}
	}
	var r reader
	for _, name := range text {
		if p := r.field(&a, name, f.fields[name]); p != nil {
			return a, p
		}
	}
	a.Estimate = max(1, (r.characters+3)/4+r.media*perMedium+r.tokens)
	return a, nil
}

func badField(param, format string, args ...any) *Problem {
	return &Problem{Param: param, Text: fmt.Sprintf(format, args...)}
}

// form has the fields of a request.
type form struct {
	fields map[string]json.RawMessage
	wrong  string // the first field with a wrong type
}

func readForm(body []byte) (*form, *Problem) {
	f := &form{}
	if err := json.Unmarshal(body, &f.fields); err != nil || f.fields == nil {
		if err == nil {
			err = fmt.Errorf("null is no object")
		}
		return nil, badField("", "We could not parse the JSON body of your request: %v.", err)
	}
	return f, nil
}

// read reports whether a field is there and has the type of to.
func (f *form) read(name string, to any) bool {
	raw := f.fields[name]
	if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
		return false
	}
	if json.Unmarshal(raw, to) != nil {
		f.wrong = cmp.Or(f.wrong, name)
		return false
	}
	return true
}

// number raises *to to the field's value, if the field is there. The value must be from 1 to most.
func (f *form) number(name string, most int64, to *int64) *Problem {
	var n int64
	if !f.read(name, &n) {
		return nil
	}
	if n < 1 || n > most {
		return badField(name, "%s: %d is not from 1 to %d", name, n, most)
	}
	*to = max(*to, n)
	return nil
}

// options reads the options of a request. It returns the names of the fields for the model, and of
// the required fields.
func (a *Ask) options(f *form) (text, want []string, p *Problem) {
	f.read("model", &a.Model)
	for _, name := range bounding[a.API] {
		if p := f.number(name, MostOutput, &a.MaxOutput); p != nil {
			return nil, nil, p
		}
	}
	switch a.API {
	case "chat":
		a.Choices = 0
		if p := f.number("n", mostChoices, &a.Choices); p != nil {
			return nil, nil, p
		}
		a.Choices = max(a.Choices, 1)
		var options struct {
			Usage bool `json:"include_usage"`
		}
		f.read("stream_options", &options)
		a.IncludeUsage = options.Usage
		text = []string{"messages", "tools", "functions", "response_format"}
		return text, []string{"messages"}, a.structured(f, "response_format")
	case "responses":
		if f.fields["prompt"] == nil && f.fields["previous_response_id"] == nil && f.fields["conversation"] == nil {
			want = []string{"input"}
		}
		return []string{"input", "instructions", "tools", "text"}, want, a.structured(f, "text")
	case "embeddings":
		return []string{"input"}, []string{"input"}, a.embeddingOptions(f)
	case "moderations":
		if a.Model == "" && f.fields["model"] == nil {
			a.Model = "omni-moderation-latest"
			f.fields["model"] = json.RawMessage(`"` + a.Model + `"`)
		}
		return []string{"input"}, []string{"input"}, nil
	case "messages":
		p := cmp.Or(a.structured(f, "output_format"), a.structured(f, "output_config"))
		return []string{"messages", "system", "tools"}, []string{"max_tokens", "messages"}, p
	}
	return nil, nil, nil
}

func (a *Ask) embeddingOptions(f *form) *Problem {
	dimensions := int64(0)
	if p := f.number("dimensions", mostDimensions, &dimensions); p != nil {
		return p
	}
	if dimensions > 0 {
		a.Dimensions = int(dimensions)
	}
	var format string
	if f.read("encoding_format", &format) && format != "float" && format != "base64" {
		return badField("encoding_format", "encoding_format: %.50q is not float or base64", format)
	}
	a.Base64 = format == "base64"
	return nil
}

// reader measures the content for the model.
type reader struct{ characters, media, tokens int64 }

// field reads a field, if it is there.
func (r *reader) field(a *Ask, name string, raw json.RawMessage) *Problem {
	if len(raw) == 0 {
		return nil
	}
	if name == "tools" || name == "functions" || name == "response_format" || name == "text" {
		r.characters += int64(len(raw)) // schemas count as they are
		return nil
	}
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return badField(name, "%s: %v", name, err)
	}
	switch {
	case name == "messages":
		list, ok := v.([]any)
		if !ok {
			return badField(name, "messages: not a list")
		}
		for i, m := range list {
			message, ok := m.(map[string]any)
			if !ok || message["role"] == nil {
				return badField(fmt.Sprintf("messages[%d].role", i), "messages.%d.role: field required", i)
			}
			if p := badRole(a.API, name, i, message["role"]); p != nil {
				return p
			}
		}
	case a.API == "responses" && name == "input":
		list, _ := v.([]any)
		for i, item := range list { // some items are no messages
			if message, ok := item.(map[string]any); ok && message["role"] != nil {
				if p := badRole(a.API, name, i, message["role"]); p != nil {
					return p
				}
			}
		}
	case a.API == "embeddings":
		if !r.embeddings(a, v) {
			return badField("input",
				"input: not a string, or a list of 1 to %d strings, token numbers or lists of token numbers", mostInputs)
		}
		return nil
	case a.API == "moderations":
		if a.Inputs = moderated(v); a.Inputs == 0 {
			return badField("input", "input: not a string, or a list of strings or of texts and pictures")
		}
	}
	r.read(v)
	return nil
}

func (r *reader) read(v any) {
	switch v := v.(type) {
	case string:
		r.characters += int64(utf8.RuneCountInString(v))
	case []any:
		for _, v := range v {
			r.read(v)
		}
	case map[string]any:
		for name, v := range v {
			s, text := v.(string)
			switch {
			case name == "type" || name == "role" || name == "id" || name == "detail" || name == "media_type":
			case name == "data" || name == "file_data" || name == "file_id" || text && strings.HasPrefix(s, "data:") || text &&
				name == "url":
				r.media++
			default:
				r.read(v)
			}
		}
	}
}

// embeddings reads the input of embeddings. It reports whether it is such an input.
func (r *reader) embeddings(a *Ask, v any) bool {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	if len(list) == 0 || len(list) > mostInputs {
		return false
	}
	a.Inputs = len(list)
	numbers := 0
	for _, v := range list {
		switch v := v.(type) {
		case string:
			r.read(v)
		case float64:
			numbers++
			r.tokens++
		case []any:
			for _, v := range v {
				if _, ok := v.(float64); !ok {
					return false
				}
				r.tokens++
			}
		default:
			return false
		}
	}
	if numbers > 0 {
		a.Inputs = 1
		return ok && numbers == len(list)
	}
	return true
}
