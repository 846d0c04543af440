package input

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
)

// Next accepts the same lines as encoding/json takes for one value, at the right column.
func FuzzJSONReader(f *testing.F) {
	for _, s := range []string{
		`{"a":1}`, " \t{ \"a\" : [ 1 , \"]\" , { } ] , \"b\\\"\" : null }\r", "\xff", `{"a":"` + "\xc3" + `"}`, "[1,\n2]", "", "\ufeff{}", "\ufeff\ufeff{}", `"x" y`, "{\"a\":\"\ufffd\"}",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		if bytes.ContainsRune(line, '\n') {
			return
		}
		v, err := NewJSONReader("f", bytes.NewReader(line), 1<<20).Next()
		line = bytes.TrimLeft(line, "\ufeff")
		if valid := json.Valid(line) && bytes.Equal(bytes.ToValidUTF8(line, nil), line); valid != (err == nil) {
			t.Fatalf("%q: %v", line, err)
		}
		if err != nil {
			if e, ok := err.(*Error); ok && (e.Column < 1 || e.Column > len(line)+1) || !ok && err != io.EOF {
				t.Fatalf("%q: %v", line, err)
			}
			return
		}
		// Each part stands at its column, and the parts are complete.
		at := func(part Value) json.RawMessage {
			if got := line[part.Column-1:][:len(part.Raw)]; !bytes.Equal(got, part.Raw) {
				t.Fatalf("%q: %q is not at %d", line, part.Raw, part.Column)
			}
			return json.RawMessage(part.Raw)
		}
		var parts, want any = nil, nil
		switch at(v)[0] {
		case '{':
			all, wanted := map[string]json.RawMessage{}, map[string]json.RawMessage{}
			if err = v.Object(func(name string, key, v Value) error { at(key); all[name] = at(v); return nil }); err != nil {
				return // a name that is half a surrogate, say
			}
			parts, want = all, wanted
			_ = json.Unmarshal(line, &wanted)
		case '[':
			all, wanted := []json.RawMessage{}, []json.RawMessage{}
			_ = v.Array(func(v Value) error { all = append(all, at(v)); return nil })
			_ = json.Unmarshal(line, &wanted)
			parts, want = all, wanted
		}
		a, _ := json.Marshal(parts)
		b, _ := json.Marshal(want)
		if !bytes.Equal(a, b) {
			t.Fatalf("%q: %s, want %s", line, a, b)
		}
	})
}

// A line that is too long is passed over, wherever it ends, and the next one is read.
func TestTooLong(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"[1234567]\n[1]", "[1234567] [1]"},
		{"[12345678]\n[1]", "f:1:10: the line is longer than 9 bytes, expected at most that (--max-line) [1]"},
		{"[1]\n" + strings.Repeat(" ", 100<<10), "[1] f:2:10: the line is longer than 9 bytes, expected at most that (--max-line)"},
	} {
		r := NewJSONReader("f", strings.NewReader(c.text), 9)
		var got []string
		for v, err := r.Next(); err != io.EOF; v, err = r.Next() {
			if err != nil {
				got = append(got, err.Error())
			} else {
				got = append(got, v.String())
			}
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%q: %s, want %s", c.text[:min(len(c.text), 20)], s, c.want)
		}
		if lines, n := r.Read(); lines != 2 || n != int64(len(c.text)) {
			t.Errorf("read %d lines, %d bytes", lines, n)
		}
	}
}
