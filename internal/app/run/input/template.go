package input

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/paceline-go/paceline/internal/secret"
	"github.com/paceline-go/paceline/internal/text"
)

// Template is text with {row.NAME} and {id} in it. Values are not searched for templates.
type Template struct {
	parts []part
	kind  kind
}

// part is a piece of text and the value behind it: a column, the id or, in the last part, none.
type part struct {
	text string
	row  string
	id   bool
	spot spot
}

// kind is the product of a template: a URL, an id, or a kind of body.
type kind uint8

const (
	plainText kind = iota
	aURL
	aJSON
	aForm
	anXML
)

// spot is the place of a value, which decides how it is escaped.
type spot uint8

const (
	asText spot = iota
	asURL       // at the beginning of a URL: the value is a whole URL, or a scheme and a host
	asHost
	asUser
	asPath
	asQuery // in the query of a URL, or in a form
	asJSONText
	asJSON
	asXML
)

var hole = regexp.MustCompile(`\{(row\.[^{}]+|key|token|nonce|id|attempt)\}`)

// inURL finds any text in braces, since a URL has no braces of its own.
var inURL = regexp.MustCompile(`\{([^{}]*)\}`)

// URLTemplate reads the template of a URL. Values are escaped as segments of its path or as parts
// of its query. A value at its beginning is a URL itself.
func URLTemplate(text string) (*Template, error) {
	t := &Template{kind: aURL}
	at := 0
	for _, m := range inURL.FindAllStringSubmatchIndex(text, -1) {
		spot := spotIn(inURL.ReplaceAllString(text[:m[0]], "x"), inURL.ReplaceAllString(text[m[1]:], "x"))
		if err := t.add(text[at:m[0]], text[m[2]:m[3]], spot); err != nil {
			return nil, err
		}
		at = m[1]
	}
	t.parts = append(t.parts, part{text: text[at:]})
	if rest := text[at:]; strings.ContainsAny(rest, "{}") {
		return nil, fmt.Errorf("a brace without its other: expected {row.COLUMN}")
	}
	if len(t.parts) == 1 && !isURL(text) {
		return nil, fmt.Errorf("%q, expected http:// or https://, a host, and {row.COLUMN} where rows differ",
			secret.SanitizeURL(text))
	}
	return t, nil
}

// spotIn returns the part of a URL in which a value stands, by the text before it and after it.
func spotIn(before, after string) spot {
	_, rest, scheme := strings.Cut(before, "://")
	switch {
	case before == "":
		return asURL
	case strings.Contains(before, "?"):
		return asQuery
	case scheme && !strings.Contains(rest, "/"):
		if i := strings.IndexAny(after, "/?#@"); i >= 0 && after[i] == '@' {
			return asUser
		}
		return asHost
	}
	return asPath
}

// BodyTemplate reads the template of a body: JSON, a form, XML or plain text. contentType decides
// which; if it is empty, the text does. It returns the content type.
func BodyTemplate(text, contentType string) (*Template, string, error) {
	kind, looks := kindOfBody(text, contentType)
	t := &Template{kind: kind}
	at, quoted := 0, false
	for _, m := range hole.FindAllStringSubmatchIndex(text, -1) {
		before, s := text[at:m[0]], asText
		switch kind {
		case aForm:
			s = asQuery
		case anXML:
			s = asXML
		case aJSON:
			quoted = inQuotes(before, quoted)
			if s = asJSON; quoted {
				s = asJSONText
			}
		}
		if err := t.add(before, text[m[2]:m[3]], s); err != nil {
			return nil, "", err
		}
		at = m[1]
	}
	t.parts = append(t.parts, part{text: text[at:]})
	if kind == aJSON {
		if err := t.isJSON(); err != nil {
			return nil, "", err
		}
	}
	return t, looks, nil
}

var formLike = regexp.MustCompile(`^[^\s=&{}<>"]+=[^\s]*$`)

func kindOfBody(text, contentType string) (kind, string) {
	media, _, _ := strings.Cut(strings.ToLower(contentType), ";")
	media = strings.TrimSpace(media)
	head := strings.TrimSpace(text)
	switch {
	case strings.HasSuffix(media, "json"):
		return aJSON, contentType
	case media == "application/x-www-form-urlencoded":
		return aForm, contentType
	case strings.HasSuffix(media, "xml"):
		return anXML, contentType
	case media != "":
		return plainText, contentType
	case strings.HasPrefix(head, "["), strings.HasPrefix(head, "{") && !beginsWithHole(head):
		return aJSON, "application/json"
	case strings.HasPrefix(head, "<"):
		return anXML, "application/xml"
	case formLike.MatchString(hole.ReplaceAllString(head, "x")):
		return aForm, "application/x-www-form-urlencoded"
	}
	return plainText, "text/plain; charset=utf-8"
}

func beginsWithHole(text string) bool {
	at := hole.FindStringIndex(text)
	return at != nil && at[0] == 0
}

// inQuotes reports whether a piece of JSON ends within a string. in says whether it begins within
// one.
func inQuotes(text string, in bool) bool {
	for i := 0; i < len(text); i++ {
		switch {
		case in && text[i] == '\\':
			i++
		case text[i] == '"':
			in = !in
		}
	}
	return in
}

// isJSON returns an error if the filled template would not be JSON.
func (t *Template) isJSON() error {
	var b []byte
	for _, p := range t.parts {
		b = append(b, p.text...)
		if p.row == "" && !p.id {
			continue
		}
		written := "{row." + p.row + "}"
		if p.id {
			written = "{id}"
		}
		as := strings.Repeat("x", len(written)) // so that columns are those of the template
		if p.spot == asJSON {
			as = "0." + strings.Repeat("0", len(written)-2)
		}
		b = append(b, as...)
	}
	if json.Valid(b) {
		return nil
	}
	line, column := place(b, 1, 1, min(offset(b), len(b)))
	return fmt.Errorf("line %d, column %d: %w; expected JSON, with {row.COLUMN} for a value, or \"{row.COLUMN}\" for text", line, column, invalidJSON(b))
}

// IDTemplate reads the template of an id.
func IDTemplate(text string) (*Template, error) {
	t := &Template{}
	at := 0
	for _, m := range inURL.FindAllStringSubmatchIndex(text, -1) {
		if word := text[m[2]:m[3]]; word == "id" {
			return nil, errors.New("{id} in an id, expected {row.COLUMN}")
		} else if err := t.add(text[at:m[0]], word, asText); err != nil {
			return nil, err
		}
		at = m[1]
	}
	if t.parts = append(t.parts, part{text: text[at:]}); len(t.parts) == 1 {
		return nil, fmt.Errorf("%q is the same for all, expected {row.COLUMN} in it", text)
	}
	return t, nil
}

func (t *Template) add(before, word string, s spot) error {
	p := part{text: before, spot: s}
	switch ref, isRow := strings.CutPrefix(word, "row."); {
	case isRow && ref != "":
		p.row = ref
	case word == "id":
		p.id = true
	case word == "key" || word == "token" || word == "nonce" || word == "attempt":
		return fmt.Errorf("{%s} is filled in for each attempt, in --header and --query alone", word)
	default:
		return fmt.Errorf("unknown {%s}, expected {row.COLUMN} or {id}%s", word, text.DidYouMean(word, []string{"row.", "id"}))
	}
	t.parts = append(t.parts, p)
	return nil
}

// Wanted returns the columns that templates name, even if the templates are wrong in another way.
func Wanted(templates ...string) (columns []string) {
	for _, text := range templates {
		for _, m := range hole.FindAllStringSubmatch(text, -1) {
			if c, ok := strings.CutPrefix(m[1], "row."); ok {
				columns = append(columns, c)
			}
		}
	}
	return columns
}

// Rows returns the columns that the template uses.
func (t *Template) Rows() (refs []string) {
	if t == nil {
		return nil
	}
	for _, p := range t.parts {
		if p.row != "" {
			refs = append(refs, p.row)
		}
	}
	return refs
}

// badCell is the error for a value that cannot stand in its place, such as a line break in a
// header.
type badCell struct {
	cell   Cell
	reason string
}

func (e *badCell) Error() string { return e.reason }

// fill returns the text of a template for a row.
func (t *Template) fill(row *Row, id string) (string, error) {
	var b strings.Builder
	paths := false
	for i := range t.parts {
		p := t.parts[i]
		b.WriteString(p.text)
		if p.spot == asPath && t.parts[0].spot == asURL && strings.Contains(b.String(), "?") {
			p.spot = asQuery // a column has the beginning of a URL, and a query in it
		}
		paths = paths || p.spot == asPath
		cell, name := Cell{Text: id}, "id"
		switch {
		case p.row != "":
			var err error
			if cell, err = row.Get(p.row); err != nil {
				return "", err
			}
			name = "row." + p.row
		case !p.id:
			continue
		}
		text, bad := p.spot.escape(cell)
		if bad != "" {
			return "", &badCell{cell, fmt.Sprintf("{%s} %s", name, bad)}
		}
		b.WriteString(text)
	}
	if paths {
		path, _, _ := strings.Cut(b.String(), "?")
		for segment := range strings.SplitSeq(path, "/") {
			if segment == "." || segment == ".." {
				return "", fmt.Errorf("the URL's path has a segment %q, which leads to another one", segment)
			}
		}
	}
	return b.String(), nil
}

// escape returns a value escaped for its place. If it cannot stand there, bad is the reason.
func (s spot) escape(c Cell) (text, bad string) {
	switch s {
	case asURL:
		if text = strings.TrimSpace(c.Text); !isURL(text) {
			return "", notURL("", text, "is no URL, expected http:// or https://")
		}
		return text, ""
	case asHost:
		for i := range len(c.Text) {
			if b := c.Text[i]; b != '.' && b != '-' && (b < '0' || b > '9') && (b|0x20 < 'a' || b|0x20 > 'z') {
				return "", fmt.Sprintf("has %q in it, which no name of a host has", b)
			}
		}
		if c.Text == "" {
			return "", "is empty, expected the name of a host"
		}
	case asPath:
		switch c.Text {
		case "":
			return "", "is empty, and the URL would be another one"
		case ".", "..":
			return "", fmt.Sprintf("is %q, and the URL would be another one", c.Text)
		}
		return url.PathEscape(c.Text), ""
	case asQuery, asUser:
		return strings.ReplaceAll(url.QueryEscape(c.Text), "+", "%20"), ""
	case asJSONText:
		return jsonText(c.Text), ""
	case asJSON:
		if c.JSON != "" {
			return c.JSON, ""
		}
		if text = strings.TrimSpace(c.Text); text == "" || !json.Valid([]byte(text)) {
			return "", fmt.Sprintf("is %s where the body has a value of JSON; expected a number, true, false or null, or "+
				"quotes around {row.…} for text", ValueAt("", 0, 0, []byte(quoteJSON(c.Text))))
		}
		return text, ""
	case asXML:
		var b strings.Builder
		_ = xml.EscapeText(&b, []byte(c.Text))
		return b.String(), ""
	}
	return c.Text, ""
}

// jsonText escapes a text for a string of JSON, without the quotes around it.
func jsonText(s string) string {
	q := quoteJSON(s)
	return q[1 : len(q)-1]
}

func quoteJSON(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // encoding a string cannot fail
	return strings.TrimSuffix(b.String(), "\n")
}
