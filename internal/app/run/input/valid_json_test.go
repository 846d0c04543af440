package input

import (
	"encoding/json"
	"strings"
	"testing"
)

// FuzzValid compares with encoding/json.
func FuzzValid(f *testing.F) {
	for _, s := range []string{
		"", " ", "{}", "[ ]", `{"a":1,"b":[true,false,null]}`, `{"a":1,}`, `{"a" : 1 , "b":2}`, `{a:1}`, "[1,]", "[,1]", "[1 2]",
		"[1}", "{]", "0", "-0", "01", "-", "1.", "1.5", ".5", "1e", "1e5", "1E+5", "1e-", "1.0e-07x", "tru", "truex", "nul", `"`,
		`"\`, `"\x"`, `"\u12g4"`, `"\u12AF"`, `"\u12`, `"\"\\\/\b\f\n\r\t"`, "\"\x1f\"", "\"\x7f\xff\"", "\"\t\"", "1 2", "{} {}", " [1]\r\n",
		"\ufeff{}", "{\"a\"\n:\n1}", "{\"a\"}", "{\"a\":}", "{:1}", "\x00", "[1]\x00", "+1", "Infinity", "'a'",
		strings.Repeat("[", 64) + strings.Repeat("]", 64), strings.Repeat("[", 65) + strings.Repeat("]", 65),
		strings.Repeat(`{"a":`, 65) + "1" + strings.Repeat("}", 64), strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001),
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if got, want := ValidJSON(text), json.Valid(text); got != want {
			t.Fatalf("%.200q: %v, encoding/json says %v", text, got, want)
		}
	})
}

// BenchmarkValid compares with encoding/json, on a line of a run's input.
func BenchmarkValid(b *testing.B) {
	text := []byte(`{"id":"q12345","url":"https://127.0.0.1:12345/api/request?req_id=12345","headers":{"Accept":"text/plain"}}`)
	for name, valid := range map[string]func([]byte) bool{"here": ValidJSON, "encoding/json": json.Valid} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if !valid(text) {
					b.Fatal("no JSON")
				}
			}
		})
	}
}
