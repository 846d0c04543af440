package format

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/paceline-go/paceline/internal/secret"
	"github.com/paceline-go/paceline/internal/send"
)

// Key is an API key: a public name and a secret.
type Key struct {
	Name   string
	Secret string
}

// KeysFromEnv reads the secret of each key from the environment variable with its name, as a flag
// has them. Errors name the flag and the variable, but never show a value. This holds too if the
// flag has the key itself in place of the variable's name.
func KeysFromEnv(flag string, names []string, lookup func(string) (string, bool)) ([]Key, error) {
	keys, err := keysFromEnv(flag, names, lookup)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", flag, err)
	}
	return keys, nil
}

func keysFromEnv(flag string, names []string, lookup func(string) (string, bool)) ([]Key, error) {
	var keys []Key
	for _, name := range names {
		name = strings.TrimSpace(name)
		if name == "" {
			return nil, fmt.Errorf("an empty name, expected names of environment variables separated by commas")
		}
		value, set := lookup(name)
		switch {
		case !set && !secret.NamesVariable(name):
			return nil, fmt.Errorf("no environment variable has this name, which is not shown: it looks like a key; expected "+
				"the name of a variable, such as: export NAME=…; --%s NAME", flag)
		case !set:
			return nil, fmt.Errorf("the environment variable %s is not set; expected: export %s=…", name, name)
		case value == "":
			return nil, fmt.Errorf("the environment variable %s is empty", name)
		case !send.IsFieldValue(value) || strings.TrimSpace(value) != value:
			return nil, fmt.Errorf("the value of %s has white space around it or a control character in it (a line break?)",
				name)
		}
		for _, k := range keys {
			if k.Name == name {
				return nil, fmt.Errorf("%s is given twice", name)
			}
			if k.Secret == value {
				return nil, fmt.Errorf("%s and %s have the same value: as two keys they would be allowed twice the limit", k.Name,
					name)
			}
		}
		keys = append(keys, Key{name, value})
	}
	return keys, nil
}

// Template is text for one header field or query parameter, with the placeholders {key}, {token},
// {nonce}, {id}, {attempt} and {row.COLUMN}. Values are plain text, and never count as templates
// themselves.
type Template struct {
	name  string
	parts []string // text and placeholders in turn; the first and the last are text
}

var placeholder = regexp.MustCompile(`\{(row\.[^{}]+|[a-z_]+)\}`)

// ParseHeaders reads `Name: value` templates of header fields.
func ParseHeaders(lines []string) ([]Template, error) {
	return parseTemplates(lines, ":", "Name: value", func(name, value string) error {
		canonical := http.CanonicalHeaderKey(name)
		switch {
		case !send.IsFieldName(name):
			return fmt.Errorf("%q is no header name", secret.SanitizeText(name))
		case ours[canonical]:
			return fmt.Errorf("the header %s is set by paceline itself", canonical)
		case !send.IsFieldValue(value):
			return fmt.Errorf("the value has a control character")
		}
		return nil
	})
}

// ParseQuery reads `name=value` templates of query parameters.
func ParseQuery(lines []string) ([]Template, error) {
	return parseTemplates(lines, "=", "name=value", func(name, value string) error {
		switch {
		case name == "":
			return fmt.Errorf("the name is empty")
		case strings.Contains(value, "&"): // the & would be escaped, against the intent of a=1&b=2
			return fmt.Errorf("a second parameter needs a --query of its own")
		}
		return nil
	})
}

func parseTemplates(lines []string, separator, form string, check func(name, value string) error) ([]Template, error) {
	var all []Template
	for _, line := range lines {
		name, value, ok := strings.Cut(line, separator)
		if !ok {
			return nil, fmt.Errorf("%q, expected %q", secret.SanitizeText(line), form)
		}
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if err := check(name, value); err != nil {
			return nil, fmt.Errorf("%q: %w, expected %q", secret.SanitizeText(line), err, form)
		}
		t := Template{name: name}
		at := 0
		for _, m := range placeholder.FindAllStringSubmatchIndex(value, -1) {
			word := value[m[2]:m[3]]
			if !strings.HasPrefix(word, "row.") && !slices.Contains([]string{"key", "token", "nonce", "id", "attempt"}, word) {
				return nil, fmt.Errorf("%q: unknown {%s}, expected {key}, {token}, {nonce}, {id}, {attempt} or {row.COLUMN}",
					secret.SanitizeText(line), word)
			}
			t.parts = append(t.parts, value[at:m[0]], word)
			at = m[1]
		}
		t.parts = append(t.parts, value[at:])
		all = append(all, t)
	}
	return all, nil
}

// Uses reports whether one of the templates has the placeholder.
func Uses(all []Template, word string) bool {
	return slices.ContainsFunc(all, func(t Template) bool { return t.uses(word) })
}

// Name is the name of the header field or query parameter.
func (t Template) Name() string { return t.name }

// Fixed returns the text of a template without placeholders.
func (t Template) Fixed() (text string, ok bool) { return t.parts[0], len(t.parts) == 1 }

func (t Template) uses(word string) bool {
	for i := 1; i < len(t.parts); i += 2 {
		if t.parts[i] == word {
			return true
		}
	}
	return false
}

// Has reports whether the template has the placeholder.
func (t Template) Has(word string) bool { return t.uses(word) }

// WithoutRows returns the templates that use no column of a row.
func WithoutRows(all []Template) []Template {
	return slices.DeleteFunc(slices.Clone(all), Template.ofRow)
}

// Columns returns the columns that the templates use, each once.
func Columns(all ...Template) (columns []string) {
	for _, t := range all {
		for i := 1; i < len(t.parts); i += 2 {
			if c, ok := strings.CutPrefix(t.parts[i], "row."); ok && !slices.Contains(columns, c) {
				columns = append(columns, c)
			}
		}
	}
	return columns
}

// Values are the values of the placeholders in one attempt.
type Values struct {
	Key, Token, ID string
	Nonce          uint64
	Attempt        int
	Cells          func(column string) string // the value of the request's row in a column
	IsShown        bool                       // the text is for people, with {nonce} left as it is
}

func (t Template) Fill(v *Values) string {
	var b strings.Builder
	for i, p := range t.parts {
		switch {
		case i%2 == 0:
			b.WriteString(p)
		case p == "key":
			b.WriteString(v.Key)
		case p == "token":
			b.WriteString(v.Token)
		case p == "nonce" && v.IsShown:
			b.WriteString("{nonce}")
		case p == "nonce":
			b.WriteString(strconv.FormatUint(v.Nonce, 10))
		case p == "id":
			b.WriteString(v.ID)
		case p == "attempt":
			b.WriteString(strconv.Itoa(v.Attempt))
		default:
			b.WriteString(v.Cells(strings.TrimPrefix(p, "row.")))
		}
	}
	return b.String()
}

// SetParam sets one parameter in a raw query, as setQuery does.
func SetParam(raw, name, value string) string {
	return send.SetQuery(raw, []send.Param{{Name: name, Value: value}})
}

// SetQuery sets parameters in a raw query and leaves the others as they are written, in their
// order.
func SetQuery(raw string, all []Template, v *Values) string {
	set := make([]send.Param, len(all))
	for i, t := range all {
		set[i] = send.Param{Name: t.name, Value: t.Fill(v)}
	}
	return send.SetQuery(raw, set)
}
