package format

import (
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/app/run/input"
)

// A request may have as many bytes as is allowed, of its header and of its body, and not one more.
func TestSizesAreBounded(t *testing.T) {
	r := NewReader(nil, "in", strings.NewReader(""), InputLimits{Header: 40, Body: 20})
	for _, c := range []struct {
		header, body int
		want         string
	}{{40, 20, ""}, {41, 20, "--max-header"}, {40, 21, "--max-body"}, {0, 0, ""}} {
		if err := r.bounded(&input.Item{Line: 1, Column: 1}, c.header, c.body); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d and %d bytes of 40 and 20: %v, want %q", c.header, c.body, err, c.want)
		}
	}
}

// A row is another request when a value changes that only a header of the run has, also where there is one such column. What no
// request has changes nothing.
func TestDigestOfARow(t *testing.T) {
	header, err := ParseHeaders([]string{"X-Row: {row.b}"})
	if err != nil {
		t.Fatal(err)
	}
	items, err := NewItems(ItemsConfig{Read: input.Config{Form: input.CSV, Comma: ','}, URL: "http://h/{row.a}", ID: "{row.a}", Header: header})
	if err != nil {
		t.Fatal(err)
	}
	digest := func(row string) Digest {
		q, err := NewReader(items, "in", strings.NewReader("a,b,c\n"+row+"\n"), InputLimits{}).Next()
		if err != nil {
			t.Fatal(err)
		}
		return q.Digest
	}
	for row, same := range map[string]bool{"7,x,y": true, "7,x,z": true, "7,z,y": false, "8,x,y": false} {
		if (digest(row) == digest("7,x,y")) != same {
			t.Errorf("%s is the same request as 7,x,y: %v", row, !same)
		}
	}
}

// The id of a row has 1 to 512 bytes, as in all other forms. An error says where the row is.
func TestIDsOfRowsAreBounded(t *testing.T) {
	items, err := NewItems(ItemsConfig{Read: input.Config{Form: input.CSV, Comma: ','}, URL: "http://h/", ID: "{row.a}"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		id, want string
	}{
		{strings.Repeat("i", 512), ""},
		{strings.Repeat("i", 513), "in:2:1: the id has 513 bytes, expected 1 to 512 (--id)"},
	} {
		q, err := NewReader(items, "in", strings.NewReader("a\n"+c.id+"\n"), InputLimits{}).Next()
		switch {
		case c.want != "" && (err == nil || err.Error() != c.want):
			t.Errorf("%d bytes: %v, want %s", len(c.id), err, c.want)
		case c.want == "" && (err != nil || q.ID != c.id):
			t.Errorf("%d bytes: %v, %v", len(c.id), q, err)
		}
	}
}

// Rows are sent by GET, with a body by POST, and otherwise by the method that was given or that OpenAPI documents.
func TestMethodOfRows(t *testing.T) {
	for want, c := range map[string]ItemsConfig{
		"GET":   {URL: "http://h/"},
		"POST":  {URL: "http://h/", HasBody: true, Body: "{row.a}"},
		"PATCH": {URL: "http://h/", HasBody: true, Body: "{row.a}", Method: "PATCH"},
		"PUT":   {Operation: &input.Operation{Method: "PUT"}},
	} {
		c.Read = input.Config{Form: input.CSV, Comma: ','}
		if items, err := NewItems(c); err != nil || items.c.Method != want {
			t.Errorf("%+v: %v, want %s", c, err, want)
		}
	}
}

// Each provider has its own field for the key.
func TestFieldOfAKey(t *testing.T) {
	for p, want := range map[Provider]string{OpenAI: "Authorization: Bearer {key}", Anthropic: "x-api-key: {key}"} {
		header, err := ParseHeaders([]string{p.KeyHeader()})
		if err != nil {
			t.Fatal(err)
		}
		if got := header[0].Name() + ": " + header[0].Fill(&Values{Key: "{key}"}); got != want {
			t.Errorf("%v: %q, want %q", p, got, want)
		}
	}
}
