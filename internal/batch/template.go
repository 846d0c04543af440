package batch

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Key is an API key: a name that may be shown, and a secret that may not.
type Key struct {
	Name   string
	Secret string
}

// KeysFromEnv reads the secret of each key from the environment variable of its name. Errors name the variable and never
// its value.
func KeysFromEnv(names []string, lookup func(string) (string, bool)) ([]Key, error) {
	var keys []Key
	for _, name := range names {
		name = strings.TrimSpace(name)
		if name == "" {
			return nil, fmt.Errorf("an empty name, expected names of environment variables separated by commas")
		}
		secret, set := lookup(name)
		switch {
		case !set:
			return nil, fmt.Errorf("the environment variable %s is not set", name)
		case secret == "":
			return nil, fmt.Errorf("the environment variable %s is empty", name)
		case !isFieldValue(secret) || strings.TrimSpace(secret) != secret:
			return nil, fmt.Errorf("the value of %s has white space around it or a control character in it (a line break?)", name)
		}
		for _, k := range keys {
			if k.Name == name {
				return nil, fmt.Errorf("%s is given twice", name)
			}
			if k.Secret == secret {
				return nil, fmt.Errorf("%s and %s have the same value: as two keys they would be allowed twice the limit", k.Name, name)
			}
		}
		keys = append(keys, Key{name, secret})
	}
	return keys, nil
}

// Template is text with {key}, {nonce}, {id} and {attempt} in it, for one header field or one query parameter.
type Template struct {
	name  string
	parts []string // text, placeholder, text, placeholder, … text
}

var placeholder = regexp.MustCompile(`\{([a-z_]+)\}`)

// ParseHeaders reads `Name: value` templates, and ParseQuery `name=value` templates.
func ParseHeaders(lines []string) ([]Template, error) {
	return parseTemplates(lines, ":", "Name: value", func(name, value string) error {
		canonical := http.CanonicalHeaderKey(name)
		switch {
		case !isToken(name):
			return fmt.Errorf("%q is no header name", name)
		case ours[canonical]:
			return fmt.Errorf("the header %s is set by paceline itself", canonical)
		case !isFieldValue(value):
			return fmt.Errorf("the value has a control character")
		}
		return nil
	})
}

// ParseQuery is described at ParseHeaders.
func ParseQuery(lines []string) ([]Template, error) {
	return parseTemplates(lines, "=", "name=value", func(name, value string) error {
		switch {
		case name == "":
			return fmt.Errorf("the name is empty")
		case strings.Contains(value, "&"): // it would be escaped, which nobody means who writes a=1&b=2
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
			return nil, fmt.Errorf("%q, expected %q", line, form)
		}
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if err := check(name, value); err != nil {
			return nil, fmt.Errorf("%q: %w, expected %q", line, err, form)
		}
		t := Template{name: name}
		at := 0
		for _, m := range placeholder.FindAllStringSubmatchIndex(value, -1) {
			word := value[m[2]:m[3]]
			if !slices.Contains([]string{"key", "nonce", "id", "attempt"}, word) {
				return nil, fmt.Errorf("%q: unknown {%s}, expected {key}, {nonce}, {id} or {attempt}", line, word)
			}
			t.parts = append(t.parts, value[at:m[0]], word)
			at = m[1]
		}
		t.parts = append(t.parts, value[at:])
		all = append(all, t)
	}
	return all, nil
}

// Uses says whether one of the templates has the placeholder.
func Uses(all []Template, word string) bool {
	return slices.ContainsFunc(all, func(t Template) bool { return t.uses(word) })
}

func (t Template) uses(word string) bool {
	for i := 1; i < len(t.parts); i += 2 {
		if t.parts[i] == word {
			return true
		}
	}
	return false
}

// values of the placeholders for one attempt.
type values struct {
	key, id string
	nonce   uint64
	attempt int
}

func (t Template) fill(v *values) string {
	var b strings.Builder
	for i, p := range t.parts {
		switch {
		case i%2 == 0:
			b.WriteString(p)
		case p == "key":
			b.WriteString(v.key)
		case p == "nonce":
			b.WriteString(strconv.FormatUint(v.nonce, 10))
		case p == "id":
			b.WriteString(v.id)
		case p == "attempt":
			b.WriteString(strconv.Itoa(v.attempt))
		}
	}
	return b.String()
}

// setQuery sets parameters in a raw query and leaves the others as they are written, in their order.
func setQuery(raw string, all []Template, v *values) string {
	if len(all) == 0 {
		return raw
	}
	var kept []string
	for part := range strings.SplitSeq(raw, "&") {
		name, _, _ := strings.Cut(part, "=")
		plain, err := url.QueryUnescape(name)
		if part == "" || err == nil && slices.ContainsFunc(all, func(t Template) bool { return t.name == plain }) {
			continue
		}
		kept = append(kept, part)
	}
	for _, t := range all {
		kept = append(kept, url.QueryEscape(t.name)+"="+url.QueryEscape(t.fill(v)))
	}
	return strings.Join(kept, "&")
}
