package output

import (
	"slices"
	"testing"
)

// A column of the input counts as read only where its absence is a mistake for sure.
func TestRowColumns(t *testing.T) {
	for selection, want := range map[string][]string{
		"a=.row.a, b=.row[\"b c\"], again=.row.a": {"a", "b c"},
		"{id, row: .row.a, x: [.row.b, -.row.c]}": {"a", "b", "c"},
		".row.a.deep[0]":                               {"a"},
		"x=\"\\(.row.a)-\\(.body.b)\"":                 {"a"},
		"x=(.row.a | tostring)":                        {"a"},
		"x=(.row.a as $a | .row.b + $a)":               {"a", "b"},
		"x=.row.a?, y=(.row.b // .row.c), z=.row[.id]": nil,
		"x=(.body | .row.a), y=(.body | map(.row.b))":  nil,
		"x=.row, y=.body.row.a, z=.rows.a":             nil,
		"def f: .row.a; f":                             nil,
	} {
		s, err := CompileShape(selection, JSONL)
		if err != nil {
			t.Errorf("%s: %v", selection, err)
			continue
		}
		if got := s.RowColumns(); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", selection, got, want)
		}
	}
}

// A column that is null says which name of its expression the answer lacks, if one is missing.
func TestNulls(t *testing.T) {
	for selection, want := range map[string]string{
		"x=.body.nmae":               "x=.body.nmae (.body has no nmae, but at, e, f, multi, n, name, no, tags; did you mean name?)",
		"x=.bdy.name":                "x=.bdy.name (the answer has no bdy, but body, id, status; did you mean body?)",
		"x=.body.at.a":               "x=.body.at.a",
		"id=.id, x=.body.at.b, y=.z": "x=.body.at.b (.body.at has no b, but a, z); y=.z (the answer has no z, but body, id, status)",
		".body.at.a":                 ".body.at.a",
		"id=.id":                     "",
	} {
		s, err := CompileShape(selection, JSONL)
		if err != nil {
			t.Fatalf("%s: %v", selection, err)
		}
		v := value(t, answer)
		_, null, err := s.Row(nil, v)
		if got := s.Nulls(null, v); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", selection, got, err, want)
		}
	}
}
