package input

import (
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"testing"
)

func rowOf(pairs ...string) *Row {
	r := &Row{}
	var names []string
	for i := 0; i < len(pairs); i += 2 {
		names = append(names, pairs[i])
		r.cells = append(r.cells, Cell{Text: pairs[i+1], Line: 7, Column: i + 1})
	}
	r.of = newColumns(names)
	return r
}

func TestURLTemplate(t *testing.T) {
	row := rowOf("email", "ann b@x.org/ö", "Full Name", "a&b=c+d e", "empty", "", "dots", "..", "host",
		"shop-1.example", "url", "https://a.example/x?y=1", "a.b", "{key}", "evil", "x/../../admin?z=1#")
	for text, want := range map[string]string{
		"https://h/p/{row.email}":              "https://h/p/ann%20b@x.org%2F%C3%B6",
		"https://h/p/{row.evil}":               "https://h/p/x%2F..%2F..%2Fadmin%3Fz=1%23",
		"https://h/p?n={row.Full Name}&i={id}": "https://h/p?n=a%26b%3Dc%2Bd%20e&i=the%20id",
		"https://h/p?n={row.empty}":            "https://h/p?n=",
		"https://h/{row.full name}":            "https://h/a&b=c+d%20e",
		"https://{row.host}/x":                 "https://shop-1.example/x",
		"https://{row.host}:8443/x":            "https://shop-1.example:8443/x",
		"{row.url}":                            "https://a.example/x?y=1",
		"{row.url}&p={row.email}":              "https://a.example/x?y=1&p=ann%20b%40x.org%2F%C3%B6",
		"{row.url}/{row.Full Name}":            "https://a.example/x?y=1/a%26b%3Dc%2Bd%20e",
		"https://h/{row.a.b}?k={row.a.b}":      "https://h/%7Bkey%7D?k=%7Bkey%7D",
		"https://h/{row.1}":                    "https://h/ann%20b@x.org%2F%C3%B6",
		"https://{row.email}:{row.evil}@h/x":   "https://ann%20b%40x.org%2F%C3%B6:x%2F..%2F..%2Fadmin%3Fz%3D1%23@h/x",
		"https://me:{row.host}@{row.host}/":    "https://me:shop-1.example@shop-1.example/",
		"https://h/{row.empty}":                "7:{row.empty} is empty, and the URL would be another one",
		"https://h/{row.dots}/x":               `7:{row.dots} is "..", and the URL would be another one`,
		"https://h/.{row.empty}./x":            "7:{row.empty} is empty, and the URL would be another one",
		"https://{row.email}/x":                "7:{row.email} has ' ' in it, which no name of a host has",
		"{row.email}":                          "7:{row.email} is no URL, expected http:// or https://",
		"https://h/{row.emial}":                `there is no column "emial", expected one of email, Full Name, empty, dots, host, url, a.b, evil; did you mean email?`,
		"https://h/{email}":                    "unknown {email}, expected {row.COLUMN} or {id}",
		"https://h/{key}":                      "{key} is filled in for each attempt, in --header and --query alone",
		"https://h/{row.}":                     "unknown {row.}, expected {row.COLUMN} or {id}; did you mean row.?",
		"https://h/{row.email":                 "a brace without its other: expected {row.COLUMN}",
		"h/x":                                  `"h/x", expected http:// or https://, a host, and {row.COLUMN} where rows differ`,
	} {
		got := filled(URLTemplate, text, row)
		if got != want {
			t.Errorf("%s\n got %s\nwant %s", text, got, want)
		}
	}
}

// filled returns a template filled with a row, or the error. An error about a cell has its line.
func filled(parse func(string) (*Template, error), text string, row *Row) string {
	tpl, err := parse(text)
	if err != nil {
		return err.Error()
	}
	got, err := tpl.fill(row, "the id")
	if bad, ok := errors.AsType[*badCell](err); ok {
		return "7:" + bad.Error()
	} else if err != nil {
		return err.Error()
	}
	return got
}

func TestBodyTemplate(t *testing.T) {
	row := rowOf("name", `Ann "A" <b>`+"\n", "n", "012", "qty", "12.50", "yes", "true", "nested", `{"a":[1]}`,
		"inject", `1, "admin": true`, "form", "a&b=c d", "key", "{key}")
	row.cells[4].JSON = `{"a":[1]}`
	for _, c := range []struct{ text, given, kind, want string }{
		{`{"name": "{row.name}", "qty": {row.qty}, "ok":{row.yes}, "of":{row.nested},"id":"x-{id}"}`, "",
			"application/json",
			`{"name": "Ann \"A\" <b>\n", "qty": 12.50, "ok":true, "of":{"a":[1]},"id":"x-the id"}`},
		{`[{row.qty},"\"{row.key}{row.n}"]`, "", "application/json", `[12.50,"\"{key}012"]`},
		{`{"qty": {row.n}}`, "", "",
			`7:{row.n} is "012" where the body has a value of JSON; expected a number, true, false or null, or quotes around {row.…} for text`},
		{`{"qty": {row.inject}}`, "", "",
			`7:{row.inject} is "1, \"admin\": true" where the body has a value of JSON; expected a number, true, false or null, or quotes around {row.…} for text`},
		{`{"a": "{row.inject}"}`, "", "application/json", `{"a": "1, \"admin\": true"}`},
		{"{\n \"qty\" {row.qty}}", "", "",
			`line 2, column 8: invalid character '0' after object key; expected JSON, with {row.COLUMN} for a value, or "{row.COLUMN}" for text`},
		{`{"key":"{key}"}`, "", "", "{key} is filled in for each attempt, in --header and --query alone"},
		{`a={row.form}&b={row.name}`, "", "application/x-www-form-urlencoded",
			`a=a%26b%3Dc%20d&b=Ann%20%22A%22%20%3Cb%3E%0A`},
		{`<n a="{row.name}">{row.form}</n>`, "", "application/xml",
			`<n a="Ann &#34;A&#34; &lt;b&gt;&#xA;">a&amp;b=c d</n>`},
		{`Dear {row.name}{you}`, "", "text/plain; charset=utf-8", "Dear Ann \"A\" <b>\n{you}"},
		{`{row.form} is text`, "", "text/plain; charset=utf-8", "a&b=c d is text"},
		{`{row.form}`, "Application/X-WWW-Form-URLencoded; charset=utf-8",
			"Application/X-WWW-Form-URLencoded; charset=utf-8", `a%26b%3Dc%20d`},
		{`{row.form} <{row.name}>`, "text/xml; charset=utf-8", "text/xml; charset=utf-8",
			`a&amp;b=c d <Ann &#34;A&#34; &lt;b&gt;&#xA;>`},
		{`a={row.form}`, "text/csv", "text/csv", "a=a&b=c d"},
		{`{row.nested}`, "application/vnd.api+json; v=1", "application/vnd.api+json; v=1", `{"a":[1]}`},
		{`{row.name}`, "application/json", "",
			`7:{row.name} is "Ann \"A\" <b>\n" where the body has a value of JSON; expected a number, true, false or null, or quotes around {row.…} for text`},
	} {
		kind := ""
		got := filled(func(text string) (*Template, error) {
			tpl, k, err := BodyTemplate(text, c.given)
			kind = k
			return tpl, err
		}, c.text, row)
		if got != c.want || c.kind != "" && kind != c.kind {
			t.Errorf("%s\n got %s, %s\nwant %s, %s", c.text, got, kind, c.want, c.kind)
		}
	}
}

func TestIDTemplate(t *testing.T) {
	row := rowOf("order", "A {id}")
	for text, want := range map[string]string{"o-{row.order}": "o-A {id}",
		"order":              `"order" is the same for all, expected {row.COLUMN} in it`,
		"{id}":               "{id} in an id, expected {row.COLUMN}",
		"{nonce}{row.order}": "{nonce} is filled in for each attempt, in --header and --query alone"} {
		if got := filled(IDTemplate, text, row); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// Columns are found by their exact name, or else by the only name in other letters.
func TestColumns(t *testing.T) {
	row := rowOf("a", "1", "A", "2", "b", "3", "b", "4", "C d", "5", "2", "two")
	for ref, want := range map[string]string{"a": "1", "A": "2", "c D": "5", "5": "5", "2": "two",
		"b": `there are two columns "b": expected {row.3} or {row.4}, by number`,
		"x": `there is no column "x", expected one of a, A, b, b, C d, 2`,
		"7": `there is no column "7", expected one of a, A, b, b, C d, 2`} {
		c, err := row.Get(ref)
		if got := c.Text; err != nil && err.Error() != want || err == nil && got != want {
			t.Errorf("%s: %s, %v, want %s", ref, got, err, want)
		}
	}
	item, err := New("f", strings.NewReader(`{"who":{"name":"Ann","tags":[1, 2]},"dotted.x":"d"}`),
		Config{Form: JSONL, MaxLine: 1000}).Next()
	if err != nil {
		t.Fatal(err)
	}
	for ref, want := range map[string]string{"who.name": "Ann", "who.tags": "[1,2]", "dotted.x": "d",
		"who.age": `there is no column "who.age", expected one of who, dotted.x`} {
		c, err := item.Row.Get(ref)
		if got := c.Text; err != nil && err.Error() != want || err == nil && got != want {
			t.Errorf("%s: %s, %v, want %s", ref, got, err, want)
		}
	}
}

// With any cell, a URL has the same host, and the same path but for one segment. A body of JSON has
// the same shape, and a form the same names.
func FuzzFill(f *testing.F) {
	for _, s := range []string{"a", "../../../x", "?&=#%2f", "\"},{\"", "{key}", "{row.v}", "\\", "\u2028", " ",
		"&admin=1", "http://evil/"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, cell string) {
		if strings.ToValidUTF8(cell, "") != cell {
			return
		}
		row := rowOf("v", cell)
		address, _ := URLTemplate("https://host/one/{row.v}/two?q={row.v}&r=1")
		if got, err := address.fill(row, ""); err == nil {
			u, err := url.Parse(got)
			if err != nil || u.Host != "host" || strings.Count(u.EscapedPath(),
				"/") != 3 || u.Fragment != "" || u.User != nil {
				t.Fatalf("%q: %s, %v", cell, got, err)
			}
			if q := u.Query(); len(q) != 2 || q.Get("q") != cell || q.Get("r") != "1" || u.Path != "/one/"+cell+"/two" {
				t.Fatalf("%q: %s", cell, got)
			}
		}
		body, _, _ := BodyTemplate(`{"a":"{row.v}","b":[{row.v}]}`, "")
		if got, err := body.fill(row, ""); err == nil {
			var v struct {
				A string
				B []json.RawMessage
			}
			if d := json.Unmarshal([]byte(got), &v); d != nil || v.A != cell || len(v.B) != 1 {
				t.Fatalf("%q: %s, %v", cell, got, d)
			}
		}
		form, _, _ := BodyTemplate(`a={row.v}&b=1`, "")
		if got, err := form.fill(row, ""); err != nil {
			t.Fatal(err)
		} else if q, err := url.ParseQuery(got); err != nil || len(q) != 2 || q.Get("a") != cell {
			t.Fatalf("%q: %s", cell, got)
		}
	})
}
