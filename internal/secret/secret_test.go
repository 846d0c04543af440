package secret

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
)

const keyA, keyB = "s3cr/et+v4lueX9", "sk-proj-h8Zl2Vq0TnXw5KbYcR7m"

func both() *Set { return New([]Key{{"A", keyA}, {"B", keyB}, {"W", "ollama"}, {"none", ""}}) }

// An echo as a server writes it, in every form and some at once; and what only looks like one.
func TestHide(t *testing.T) {
	b64 := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	raw := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	for _, c := range []struct {
		text, want string
		hidden     int
	}{
		{"", "", 0},
		{"no such key", "no such key", 0},
		{"Run `ollama pull`", "Run `ollama pull`", 0},
		{keyA, "[A]", 1},
		{"Bearer " + keyB + ".", "Bearer [B].", 1},
		{keyA + keyB + keyA, "[A][B][A]", 3},
		{keyA[1:], keyA[1:], 0},
		{keyA[:14], keyA[:14], 0},
		{strings.ToUpper(keyA), strings.ToUpper(keyA), 0},
		// JSON, in JSON, in JSON.
		{`{"key":"s3cr\/et+v4lueX9"}`, `{"key":"[A]"}`, 1},
		{`"s3cr\u002fet\u002Bv4lueX9"`, `"[A]"`, 1},
		{`"\u0073\u0033cr/et+v4lueX\u0039\n"`, `"[A]\n"`, 1},
		{`"{\"key\":\"s3cr\\/et+v4lueX9\"}"`, `"{\"key\":\"[A]\"}"`, 1},
		{`"s3cr\\u002fet\\\\u002bv4lueX9"`, `"[A]"`, 1},
		{`'s3cr\x2fet\x2bv4lueX9'`, `'[A]'`, 1},
		// URLs.
		{"?k=s3cr%2Fet%2Bv4lueX9&x=1", "?k=[A]&x=1", 1},
		{"?k=s3cr%2fet%2bv4lueX9%20", "?k=[A]%20", 1},
		{"?u=http%3A%2F%2Fh%2F%3Fk%3Ds3cr%252Fet%252Bv4lueX9", "?u=http%3A%2F%2Fh%2F%3Fk%3D[A]", 1},
		{"%73%33%63%72%2f%65%74%2b%76%34%6c%75%65%58%39", "[A]", 1},
		{"%25s3cr/et+v4lueX9%", "%25[A]%", 1},
		// HTML, and in JSON.
		{"<b>s3cr/et&#43;v4lueX9</b>", "<b>[A]</b>", 1},
		{"s3cr&sol;et&plus;v4lueX9&amp;", "[A]&amp;", 1},
		{"s3cr&#x2F;et&#x0002b;v4lueX9", "[A]", 1},
		{`s3cr/et\u0026#43;v4lueX9`, "[A]", 1},
		{`s3cr/et\u0026amp;#43;v4lueX9`, "[A]", 1},
		{"s3cr/et&#43v4lueX9", "s3cr/et&#43v4lueX9", 0},
		// Base64, at each of the three places, with and without padding, and escaped.
		{b64(keyA), "[A]", 1},
		{raw(keyA), "[A]", 1},
		{"Basic " + b64("me:"+keyA), "Basic bWU6[A]", 1},
		{"Basic " + b64("you:"+keyA), "Basic eW91O[A]==", 1},
		{"Basic " + b64("a:"+keyA+"\r\n"), "Basic YT[A]NCg==", 1},
		{b64(keyB + ":"), "[B]o=", 1},
		{raw("x" + keyB + "y"), "e[B]5", 1},
		{"Basic " + b64("you:" + keyA)[6:], "Basic [A]==", 1},
		{"Basic A" + b64("a:" + keyA)[3:], "Basic A[A]=", 1}, // A has nothing of the key
	} {
		got, n := both().Hide([]byte(c.text), Whole)
		if string(got) != c.want || n != c.hidden {
			t.Errorf("%s: %d hidden in %s, want %d in %s", c.text, n, got, c.hidden, c.want)
		}
	}
	if names := fmt.Sprint(New([]Key{{"A", keyA}, {"W", "hunter2"}, {"X", "ollama"}}).Weak()); names != "[W]" {
		t.Errorf("not looked for: %s", names)
	}
	var none Set
	if got, n := none.HideIn(keyA); got != keyA || n != 0 {
		t.Errorf("a Set of none hides %q", got)
	}
}

// The part of a key at a cut is hidden, if it is too long for a chance match. No escape is cut in
// half.
func TestCut(t *testing.T) {
	b64 := base64.StdEncoding.EncodeToString([]byte("me:" + keyA))
	for _, c := range []struct {
		text string
		cut  Cut
		want string
	}{
		{"key: s3cr", Whole, "key: s3cr"},
		{"key: s3cr", CutStart, "key: s3cr"},
		{"key: s3cr", CutEnd, "key: [A]"},
		{"key: s3c", CutEnd, "key: [A]"},
		{"key: s3", CutEnd, "key: s3"},
		{"key: s3cr%2", CutEnd, "key: [A]"},
		{`key: s3cr\u00`, CutEnd, "key: [A]"},
		{`key: s3cr\\u00`, CutEnd, "key: [A]"},
		{"key: s3cr&#4", CutEnd, "key: [A]"},
		{"key: s3cs", CutEnd, "key: s3cs"},
		{"key: " + keyA, CutEnd, "key: [A]"},
		{keyB[:6], CutEnd, keyB[:6]},
		{keyB[:7], CutEnd, "[B]"},
		{"lueX9, he said", CutStart, "[A], he said"},
		{"X9, he said", CutStart, "X9, he said"},
		{"2Bv4lueX9", CutStart, "2Bv4lueX9"}, // half an escape is no part of a key
		{"%2Bv4lueX9 lueX9", CutStart, "[A] lueX9"},
		{"lueX9, he said", CutEnd, "lueX9, he said"},
		{b64[:12], CutEnd, "bWU6[A]"},
		{b64[9:] + " x", CutStart, "[A] x"},
		{"lueX9 and s3cr", CutEnd | CutStart, "[A] and [A]"},
		{"r/et", CutEnd | CutStart, "[A]"},
		{"r/", CutEnd | CutStart, "r/"},
	} {
		if got, _ := both().Hide([]byte(c.text), c.cut); string(got) != c.want {
			t.Errorf("%s, cut %d: %s, want %s", c.text, c.cut, got, c.want)
		}
	}
}

// Wherever a text is cut in an echo, of which all characters are escaped, no more than the first
// few of them can be read.
func TestCutAnywhere(t *testing.T) {
	for _, form := range []string{"%c", "%%%02x", "&#%d;", `\u%04x`, `\\u%04x`, "%%25%02x"} {
		var text strings.Builder
		whole := map[int]int{0: 0} // how many characters end there
		for i, c := range keyA {
			text.WriteString(fmt.Sprintf(form, c))
			whole[len(text.String())] = i + 1
		}
		full := 0
		for at := range len(text.String()) {
			if n, ok := whole[at]; ok {
				full = n
			}
			want := text.String()[:at]
			if full >= len(keyA)/4 {
				want = "[A]"
			}
			if got, _ := both().Hide([]byte(text.String()[:at]), CutEnd); string(got) != want {
				t.Errorf("%s: %s, want %s", text.String()[:at], got, want)
			}
			if got, _ := both().Hide([]byte(text.String()[:at]), Whole); string(got) != text.String()[:at] {
				t.Errorf("%s, which is whole: %s", text.String()[:at], got)
			}
		}
	}
}

// Echoes of two keys that overlap are both gone, and are one place; of two keys of which one begins
// like the other the longer is named.
func TestOverlap(t *testing.T) {
	const a, b, c = "Zq8vR2mLp0xW7", "p0xW7uT5yNs3", "Zq8vR2mLp0xW7uT5"
	s := New([]Key{{"A", a}, {"B", b}, {"C", c}})
	for text, want := range map[string]string{
		"1Zq8vR2mLp0xW72":      "1[A]2",
		"1Zq8vR2mLp0xW7uT52":   "1[C]2",
		"1p0xW7uT5yNs32":       "1[B]2",
		"Zq8vR2mLp0xW7uT5yNs3": "[C][B]",
	} {
		got, n := s.Hide([]byte(text), Whole)
		if string(got) != want || n != 1 {
			t.Errorf("%s: %s and %d hidden, want %s and 1", text, got, n, want)
		}
	}
}

// Values that are no ASCII: as code points, as the bytes that they are in UTF-8, and bytes taken
// for code points.
func TestNoASCII(t *testing.T) {
	s := New([]Key{{"U", "ükL9m2Vq0Tn"}, {"L", "\xe9kL9m2Vq0Tn"}, {"S", "😀kL9m2Vq0Tn"}})
	for text, want := range map[string]string{
		"ükL9m2Vq0Tn":             "[U]",
		`\u00fckL9m2Vq0Tn`:        "[U]",
		"%C3%BCkL9m2Vq0Tn":        "[U]",
		"&uuml;kL9m2Vq0Tn":        "[U]",
		`\xc3\xbckL9m2Vq0Tn`:      "[U]",
		"\xe9kL9m2Vq0Tn":          "[L]",
		`\u00e9kL9m2Vq0Tn`:        "[L]",
		"%e9kL9m2Vq0Tn":           "[L]",
		"&eacute;kL9m2Vq0Tn":      "[L]",
		"😀kL9m2Vq0Tn":             "[S]",
		`\ud83d\ude00kL9m2Vq0Tn`:  "[S]",
		"&#128512;kL9m2Vq0Tn":     "[S]",
		"&#x1F600;kL9m2Vq0Tn":     "[S]",
		`\ud83dx\ude00kL9m2Vq0Tn`: `\ud83dx\ude00kL9m2Vq0Tn`,
		"%F0%9F%98%80kL9m2Vq0Tn":  "[S]",
	} {
		if got, _ := s.Hide([]byte(text), Whole); string(got) != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// A text without an echo is not copied.
func TestUntouched(t *testing.T) {
	text := []byte(strings.Repeat(`{"message":"sk-proj is no key\n%20&amp;"}`, 100))
	s := both()
	if got, _ := s.Hide(text, Whole); &got[0] != &text[0] {
		t.Error("copied")
	}
	if n := testing.AllocsPerRun(10, func() { s.Hide(text, Whole) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func benchmarkHide(b *testing.B, line string) {
	text := bytes.Repeat([]byte(line), 16<<20/len(line))
	var keys []Key
	for i := range 5 {
		keys = append(keys, Key{fmt.Sprint(i), fmt.Sprintf("sk-proj-%dh8Zl2Vq0TnXw5KbYcR7m", i)})
	}
	s := New(keys)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		s.Hide(text, Whole)
	}
}

// 16 MiB of typical answers, and of the worst case.
func BenchmarkHide(b *testing.B) {
	for _, c := range []struct{ name, line string }{
		{"json", `{"id":"chatcmpl-9x","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"She sells sea shells on the shore.\n"}}]}` + "\n"},
		{"escapes", `{\"a\":\"\\u00e9\"} %7B%22a%22%3A &quot;a&quot;\n`},
		{"base64", "c2stcHJvai1oOFpsMlZxMFRuWHc1S2JZY1I3bQpzZWxscyBzZWEgc2hlbGxzIG9uIHRoZSBzaG9yZQo="},
		{"almost", "sk-proj-0h8Zl2Vq0TnXw5KbYcR7"},
		{"ampersands", "&"},
		{"backslashes", `\`},
		{"percents", "%"},
		{"entities", "%26%23%39%39%39%39%39%39%39%39"},
	} {
		b.Run(c.name, func(b *testing.B) { benchmarkHide(b, c.line) })
	}
}
