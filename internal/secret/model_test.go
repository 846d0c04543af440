package secret

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// keyC has the special characters of escapes in it, and characters outside ASCII.
const keyC = `P%25\u00e9 "&amp;<ü>+/+Z9\x2b`

// dice are what a fuzzer throws. All that come after the last are 0.
type dice []byte

func (d *dice) roll(n int) int {
	if len(*d) == 0 {
		return 0
	}
	v := int((*d)[0])
	*d = (*d)[1:]
	return v % n
}

// escapers write a text as software does. They leave characters alone only where software does so,
// so they may be nested.
var escapers = []func(s string, d *dice) string{
	func(s string, _ *dice) string { return s },
	func(s string, _ *dice) string { return url.QueryEscape(s) },
	func(s string, _ *dice) string { return lowerHex(url.PathEscape(s)) },
	func(s string, _ *dice) string { return html.EscapeString(s) },
	func(s string, _ *dice) string { b, _ := json.Marshal(s); return string(b[1 : len(b)-1]) },
	func(s string, _ *dice) string { return strings.ReplaceAll(within(strconv.QuoteToASCII(s)), "/", `\/`) },
	// Of some characters more than needs be. Then what any of them begins an escape with is always
	// escaped, by the outer one at least.
	func(s string, d *dice) string {
		return each(s, d, func(c rune) string {
			return strings.Join(slices.Collect(func(yield func(string) bool) {
				for _, b := range []byte(string(c)) {
					yield(fmt.Sprintf("%%%02x", b))
				}
			}), "")
		})
	},
	func(s string, d *dice) string {
		return each(s, d, func(c rune) string {
			return fmt.Sprintf([]string{"&#%d;", "&#x%x;", "&#X%X;", "&#0%d;"}[d.roll(4)], c)
		})
	},
	func(s string, d *dice) string {
		return each(s, d, func(c rune) string {
			return fmt.Sprintf([]string{`\u%04x`, `\u%04X`}[d.roll(2)], c)
		})
	},
}

func must(c rune) bool { return strings.ContainsRune(`%+&="\`, c) || c >= utf8.RuneSelf }

func within(quoted string) string { return quoted[1 : len(quoted)-1] }

func lowerHex(s string) string {
	b := []byte(s)
	for i := range b {
		if b[i] == '%' {
			copy(b[i:], bytes.ToLower(b[i:i+3]))
		}
	}
	return string(b)
}

// each escapes the required characters, and of the others those that the dice choose.
func each(s string, d *dice, escape func(rune) string) string {
	var b strings.Builder
	for _, c := range s {
		if must(c) || d.roll(4) == 1 {
			b.WriteString(escape(c))
		} else {
			b.WriteRune(c)
		}
	}
	return b.String()
}

// echo is a value as a server may write it, and what is to be seen of that.
func echo(d *dice, name, value string) (text, want string) {
	if d.roll(3) == 1 { // a part of something in base64
		const around = "user:name"
		before, after := around[:d.roll(7)], around[:d.roll(5)]
		enc := []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding}[d.roll(4)]
		text = enc.EncodeToString([]byte(before + value + after))
		from, to := len(before)*8/6, ((len(before)+len(value))*8+5)/6
		return text, text[:from] + "[" + name + "]" + text[to:]
	}
	text = value
	for range d.roll(layers + 1) {
		text = escapers[d.roll(len(escapers))](text, d)
	}
	return text, "[" + name + "]"
}

// An echo in any form is gone and everything else is there, to the byte: against software that
// escapes.
func FuzzEchoes(f *testing.F) {
	for i := range 300 {
		b := make([]byte, 200)
		for j := range b {
			b[j] = byte((j + 1) * (j*31 + i*7 + 3) >> 3)
		}
		f.Add(b)
	}
	values := []Key{{"A", keyA}, {"B", keyB}, {"C", keyC}}
	s := New(values)
	noise := []string{"", "the key ", `{"a":"b\n\u00e9\\"}`, "?a=%20+%2B&b=%", "&lt;b&gt; &amp; &#43; &", `\`, "c2stcHJvag==", keyB[:20], keyA[3:], keyC[:9], "é\xff\x00", "%25u00"}
	f.Fuzz(func(t *testing.T, data []byte) {
		d := dice(data)
		var text, want strings.Builder
		n := 0
		for range 1 + d.roll(3) {
			some := noise[d.roll(len(noise))]
			text.WriteString(some + " ")
			want.WriteString(some + " ")
			k := values[d.roll(len(values))]
			is, shown := echo(&d, k.Name, k.Value)
			text.WriteString(is + "\n")
			want.WriteString(shown + "\n")
			n++
		}
		got, hidden := s.Hide([]byte(text.String()), Whole)
		if string(got) != want.String() || hidden != n {
			t.Fatalf("of\n%q\n%d hidden in\n%q\nwant %d in\n%q", text.String(), hidden, got, n, want.String())
		}
		if again, n := s.Hide(got, Whole); n > 0 {
			t.Fatalf("%q hides %d more: %q", got, n, again)
		}
	})
}

// A text that is hidden in piece by piece comes out as it does at once, wherever the pieces end.
func TestHideBeginning(t *testing.T) {
	s := New([]Key{{"A", keyA}, {"B", keyB}, {"C", keyC}})
	values := s.keys
	for seed := range 40 {
		b := make([]byte, 4000)
		for j := range b {
			b[j] = byte((j + 1) * (j*31 + seed*7 + 3) >> 3)
		}
		d := dice(b)
		var all strings.Builder
		for all.Len() < 5*s.Beginning() {
			k := values[d.roll(len(values))]
			is, _ := echo(&d, k.Name, k.Value)
			all.WriteString(strings.Repeat("c2stcHJvag ", d.roll(200)) + is)
		}
		want, hidden := s.Hide([]byte(all.String()), Whole)
		var got, rest []byte
		n := 0
		for text := []byte(all.String()); ; {
			piece := min(s.Beginning()-len(rest)+1+seed*13, len(text))
			rest, text = append(rest, text[:piece]...), text[piece:]
			if len(text) == 0 {
				break
			}
			shown, used, some := s.HideBeginning(rest, Whole)
			got, n = append(got, shown...), n+some
			if rest = slices.Clone(rest[used:]); used == 0 || len(rest) >= s.Beginning() {
				t.Fatalf("%d of %d bytes are used", used, len(rest)+used)
			}
		}
		shown, some := s.Hide(rest, Whole)
		if got, n = append(got, shown...), n+some; !bytes.Equal(got, want) || n != hidden {
			t.Fatalf("seed %d: %d hidden in\n%q\nwant %d in\n%q", seed, n, got, hidden, want)
		}
	}
}

// readings are the texts that a text may mean: each reader of the standard library, up to three one
// after the other.
func readings(text string, depth int) []string {
	all := []string{text}
	if depth == 0 {
		return all
	}
	for _, read := range []func(string) (string, error){
		url.QueryUnescape, url.PathUnescape,
		func(s string) (string, error) { return html.UnescapeString(s), nil },
		func(s string) (v string, err error) { return v, json.Unmarshal([]byte(`"`+s+`"`), &v) },
		func(s string) (string, error) { return strconv.Unquote(`"` + s + `"`) },
		func(s string) (string, error) { return strconv.Unquote("'" + s + "'") },
	} {
		if v, err := read(text); err == nil && v != text {
			all = append(all, readings(v, depth-1)...)
		}
	}
	return all
}

// says reports whether a text is an echo of value, piece by piece. Each piece of up to 24 bytes
// must mean the next part of value.
func says(text, value string) bool {
	type place struct{ at, j int }
	done := map[place]bool{}
	var from func(p place) bool
	from = func(p place) bool {
		if p.at == len(text) || p.j == len(value) {
			return p.at == len(text) && p.j == len(value)
		}
		if done[p] {
			return false
		}
		done[p] = true
		for n := 1; n <= 24 && p.at+n <= len(text); n++ {
			for _, v := range readings(text[p.at:p.at+n], layers) {
				if utf8.RuneCountInString(v) <= 1 && v != "" && strings.HasPrefix(value[p.j:], v) && from(place{p.at + n, p.j + len(v)}) {
					return true
				}
			}
		}
		return false
	}
	return from(place{})
}

// saysBase64 reports whether a text is characters of base64, escaped or not, with the whole value.
// Up to two bytes at either end may be missing, if their neighbours have a part of them.
func saysBase64(text, value string) bool {
	var plain strings.Builder
	for i := 0; i < len(text); {
		n := 1
		c := text[i : i+1]
		for size := 12; size > 1; size-- {
			if i+size <= len(text) {
				for _, v := range readings(text[i:i+size], layers) {
					if len(v) == 1 && n == 1 {
						c, n = v, size
					}
				}
			}
		}
		plain.WriteString(c)
		i += n
	}
	std := strings.NewReplacer("-", "+", "_", "/").Replace(plain.String())
	for before := range 4 {
		padded := strings.Repeat("A", before) + std
		b, _ := base64.RawStdEncoding.DecodeString(padded + strings.Repeat("A", (4-len(padded)%4)%4))
		if bytes.Contains(b, []byte(value[1:len(value)-1])) && len(padded) <= len(value)*4/3+6 {
			return true
		}
	}
	return false
}

// For any text, the hidden parts are echoes by the readers of the standard library. All else is
// there, to the byte.
func FuzzOnlyEchoes(f *testing.F) {
	for _, text := range []string{
		"", keyA, "x" + keyC + "%", `s3cr\/et\u002bv4lueX9`, "s3cr%252fet%2bv4lueX9", "P%2525\\u00e9+&quot;&amp;<ü>+/+Z9\\x2b", "s3cr&amp;#47;et&#x2b;v4lueX9s3cr",
		"bWU6czNjci9ldCt2NGx1ZVg5", "M2NyL2V0K3Y0bHVlWD", `P%25\\u00e9 \"\u0026amp;<\u00fc>+/+Z9\\x2b`, keyC[:12] + keyC,
	} {
		f.Add(text)
	}
	keys := []Key{{"A", keyA}, {"C", keyC}}
	s := New(keys)
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 300 {
			return
		}
		spans := s.find([]byte(text), Whole)
		for _, e := range spans {
			is, v := text[e.from:e.to], keys[e.key].Value
			if !says(is, v) && !saysBase64(is, v) {
				t.Fatalf("%q of %q is hidden, which is no echo of %q", is, text, v)
			}
		}
		for _, k := range keys {
			if len(spans) == 0 && slices.ContainsFunc(readings(text, layers), func(v string) bool { return strings.Contains(v, k.Value) }) {
				t.Fatalf("%q is an echo of %q", text, k.Value)
			}
		}
		got, n := s.Hide([]byte(text), Whole)
		if n == 0 && string(got) != text || n > 0 && len(spans) == 0 {
			t.Fatalf("%q became %q", text, got)
		}
	})
}
