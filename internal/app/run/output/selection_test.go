package output

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func value(t testing.TB, text string) (v any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

const answer = `{"id":"a1","status":200,"body":{"name":"Ann, \"the\" first","n":12345678901234567890,"tags":["x","y"],"at":{"z":1,"a":null},"f":1.50,"no":false,"e":"=1+1","multi":"two\nlines"}}`

func TestRow(t *testing.T) {
	for _, c := range []struct {
		selection string
		format    RowFormat
		want      string
		fails     string
	}{
		{"id=.id, name=.body.name", CSV, "id,name\na1,\"Ann, \"\"the\"\" first\"\n", ""},
		{"{id, name: .body.name}", CSV, "id,name\na1,\"Ann, \"\"the\"\" first\"\n", ""},
		{"id=.id,n=.body.n", TSV, "id\tn\na1\t12345678901234567890\n", ""},
		{"id=.id, n=.body.n", JSONL, `{"id":"a1","n":12345678901234567890}` + "\n", ""},
		{`{n: .body.n, "an id": .id, "status"}`, JSONL, `{"n":12345678901234567890,"an id":"a1","status":200}` + "\n", ""},
		{"an id=.id, tags=.body.tags, at=.body.at", CSV, "an id,tags,at\na1,\"[\"\"x\"\",\"\"y\"\"]\",\"{\"\"a\"\":null,\"\"z\"\":1}\"\n", ""},
		{"f=.body.f,no=.body.no,none=.body.none,m=.body.multi", CSV, "f,no,none,m\n1.50,false,,\"two\nlines\"\n", ""},
		{"x=.none", CSV, "x\n\"\"\n", ""},
		{"x=(.id, .status)", CSV, "x\na1\n200\n", ""},
		{"id=.id, tag=.body.tags[]", CSV, "id,tag\na1,x\na1,y\n", ""},
		{"a=(1,2), b=(3,4)", JSONL, "{\"a\":1,\"b\":3}\n{\"a\":2,\"b\":3}\n{\"a\":1,\"b\":4}\n{\"a\":2,\"b\":4}\n", ""},
		{`id=.id, j="a,\(.body.tags|join(","))"`, CSV, "id,j\na1,\"a,x,y\"\n", ""},
		{"id=.id, x=.body.name.first", CSV, "id,x\na1,\n", "x=.body.name.first: expected an object but got: string"},
		{"id=.id, x=empty", CSV, "id,x\na1,\n", ""},
		{"id=.id, x=range(1000000)", CSV, "id,x\na1,\n", "x=range(1000000): more than 10000 rows of one answer"},
		{"x=(1,2), y=range(5001)", CSV, "x,y\n1,\n2,\n", "y=range(5001): more than 10000 rows of one answer"},
		{"x=(\",a\", \"b\")", CSV, "x\n\",a\"\nb\n", ""},
		{"x={a: 1, b: 2}, y=.id", JSONL, `{"x":{"a":1,"b":2},"y":"a1"}` + "\n", ""},
		{"id=.id, x=[range(1e18)]", CSV, "id,x\na1,\n", "it took longer than 1s"},
		{".body.tags[]", JSONL, "\"x\"\n\"y\"\n", ""},
		{".status == 200", JSONL, "true\n", ""},
		{"length == 3", JSONL, "true\n", ""},
		{"select(.status > 299)", JSONL, "", ""},
		{".id.x", JSONL, "null\n", ".id.x: expected an object but got: string"},
		{"{(.id): 1}", JSONL, `{"a1":1}` + "\n", ""},
		{"x=env|length, y=.id", JSONL, `{"x":0,"y":"a1"}` + "\n", ""},
	} {
		s, err := CompileShape(c.selection, c.format)
		if err != nil {
			t.Errorf("%s: %v", c.selection, err)
			continue
		}
		got, _, err := s.Row(s.Head(), value(t, answer))
		if string(got) != c.want || (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
			t.Errorf("%s\n got %q %v\nwant %q %s", c.selection, got, err, c.want, c.fails)
		}
	}
}

// Rows with more than the most bytes are given up together, with an error.
func TestRowsOfTooManyBytes(t *testing.T) {
	s, err := CompileShape("id=.id, x=(.body | ., .)", CSV)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		long  int
		want  int
		fails bool
	}{{mostBytes/2 - 2, len(",\n"), true}, {mostBytes/2 - 3, mostBytes, false}} { // each is "a,xxx" and the end of the line
		head := s.Head() // which does not count
		got, _, err := s.Row(head, map[string]any{"id": "a", "body": strings.Repeat("x", c.long)})
		if len(got)-len(head) != c.want || (err != nil) != c.fails || err != nil && !strings.Contains(err.Error(), "more than 67108864 bytes of one answer") {
			t.Errorf("two of %d bytes: %d bytes, %v", c.long, len(got), err)
		}
	}
}

// The same holds for several outputs of one expression for a whole line.
func TestOutputsOfTooManyBytes(t *testing.T) {
	s, err := CompileShape(".body | ., .", JSONL)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		long, want int
		fails      bool
	}{{mostBytes/2 - 2, len("null\n"), true}, {mostBytes/2 - 3, mostBytes, false}} { // each is in quotes, and ends a line
		got, _, err := s.Row([]byte("before\n"), map[string]any{"body": strings.Repeat("x", c.long)})
		if len(got)-len("before\n") != c.want || (err != nil) != c.fails || c.fails && string(got) != "before\nnull\n" {
			t.Errorf("two of %d bytes: %d bytes, %v", c.long, len(got), err)
		}
	}
}

func TestCompileRefuses(t *testing.T) {
	for _, c := range []struct {
		selection string
		format    RowFormat
		want      string
	}{
		{".body.name", CSV, `".body.name" has no columns, expected such as 'id=.id, name=.body.name' or '{id, name: .body.name}'`},
		{"{(.id): 1}", CSV, `"{(.id): 1}" has no columns, expected such as 'id=.id, name=.body.name' or '{id, name: .body.name}'`},
		{"{}", CSV, `"{}" has no columns, expected such as 'id=.id, name=.body.name' or '{id, name: .body.name}'`},
		{"{id: .id}.id", CSV, `"{id: .id}.id" has no columns, expected such as 'id=.id, name=.body.name' or '{id, name: .body.name}'`},
		{"{id: .id} | {x: .id}", CSV, `"{id: .id} | {x: .id}" has no columns, expected such as 'id=.id, name=.body.name' or '{id, name: .body.name}'`},
		{"def f: .id; {id: f}", CSV, `"def f: .id; {id: f}" has no columns, expected such as 'id=.id, name=.body.name' or '{id, name: .body.name}'`},
		{`{"a\(.id)": 1}`, CSV, `"{\"a\\(.id)\": 1}" has no columns, expected such as 'id=.id, name=.body.name' or '{id, name: .body.name}'`},
		{"{$__loc__}", CSV, `"{$__loc__}" has no columns, expected such as 'id=.id, name=.body.name' or '{id, name: .body.name}'`},
		{"", CSV, `"" has no columns, expected such as 'id=.id, name=.body.name' or '{id, name: .body.name}'`},
		{"id=.id, .body", CSV, `"id=.id, .body": ".body" has no name, expected NAME=EXPRESSION after each comma, and commas of an expression within ( )`},
		{"id=, b=.c", CSV, `"id=, b=.c": id= has no expression, expected such as id=.body.id`},
		{"id=.id, id=.x", CSV, `"id=.id, id=.x" names "id" twice, expected each column once`},
		{"id=.id, ID=.x", SQLite, `"id=.id, ID=.x" names "ID" twice, expected each column once`},
		{"id=.id, ID=.x", Parquet, `"id=.id, ID=.x" names "ID" twice, expected each column once`},
		{"id=.id, ID=.x", CSV, ""},
		{"id=.id, x=.a b", CSV, `".a b", character 4: unexpected token "b", expected a jq expression such as .body.name`},
		{"id=.id, x=$ENV.HOME", CSV, ""},
		{"id=nosuch", CSV, `"nosuch": function not defined: nosuch/0, expected a jq expression of the answer alone`},
		{"nosuch", JSONL, `"nosuch": function not defined: nosuch/0, expected a jq expression of the answer alone`},
		{"{id: .id", JSONL, `"{id: .id", character 9: unexpected EOF, expected a jq expression such as .body.name`},
		{"{id: .id, id: .x}", CSV, `"{id: .id, id: .x}" names "id" twice, expected each column once`},
		{"id=input", JSONL, `"input": input(s)/0 is not allowed, expected a jq expression of the answer alone`},
	} {
		_, err := CompileShape(c.selection, c.format)
		if got := ""; err != nil {
			if got = err.Error(); got != c.want {
				t.Errorf("%s\n got %s\nwant %s", c.selection, got, c.want)
			}
		} else if c.want != "" {
			t.Errorf("%s is taken, want %s", c.selection, c.want)
		}
	}
}

// The same selection in other words has the same text.
func TestString(t *testing.T) {
	for _, same := range []string{"id=.id,name=.body.name", " id = .id , name = .body .name ", "{id: .id, name: .body.name}"} {
		s, err := CompileShape(same, CSV)
		if err != nil || s.String() != "id=.id, name=.body.name as csv" {
			t.Errorf("%s: %v %v", same, s, err)
		}
	}
}

// Rows of any selection from any value can be read back, each with as many cells as there are
// columns. A list of columns is recognized without the parser.
func FuzzRow(f *testing.F) {
	for _, s := range []string{"id=.id, name=.body.name", "{id, n: .body.n}", ".body", `a="\("x,y")", b=(1,2)`, "a=.b,c", "a=[.[]?],b={c:1,d:2}", "x=\"\\\"\",y=1"} {
		f.Add(s, answer)
	}
	f.Fuzz(func(t *testing.T, selection, text string) {
		if strings.ContainsAny(selection, "0123456789") && len(selection) > 40 || strings.Contains(selection, "range") || strings.Contains(selection, "repeat") {
			return
		}
		if joined := strings.Join(splitColumns(selection), ","); joined != selection {
			t.Fatalf("%q is split to %q", selection, joined)
		}
		var v any
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		if d.Decode(&v) != nil {
			return
		}
		for _, format := range []RowFormat{CSV, TSV, JSONL} {
			s, err := CompileShape(selection, format)
			if err != nil {
				continue
			}
			again, err := CompileShape(strings.TrimSuffix(s.String(), " as "+string(format)), format)
			if err == nil && again.String() != s.String() {
				t.Fatalf("%q is %q, and that %q", selection, s, again)
			}
			row, _, _ := s.Row(nil, v)
			if format == JSONL {
				for line := range bytes.Lines(row) {
					if !json.Valid(line) {
						t.Fatalf("%q of %s has %q", selection, text, line)
					}
				}
				continue
			}
			r := csv.NewReader(bytes.NewReader(slices.Concat(s.Head(), row)))
			if format == TSV {
				r.Comma = '\t'
			}
			all, err := r.ReadAll()
			if err != nil || len(all) < 2 || len(all[0]) != len(s.columns) {
				t.Fatalf("%q of %s has\n%s%s%v", selection, text, s.Head(), row, err)
			}
		}
	})
}
