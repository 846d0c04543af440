package secret

import (
	"fmt"
	"math/rand/v2"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

const (
	aForm = "application/x-www-form-urlencoded"
	aJSON = "application/json; charset=utf-8"
)

// asked is a request with a credential in it.
type asked struct {
	header map[string][]string
	query  string
	kind   string // of the body
	body   string
}

func (a asked) credential(w *Where) string {
	h := map[string][]string{}
	for name, values := range a.header {
		h[textproto.CanonicalMIMEHeaderKey(name)] = values
	}
	if a.kind != "" {
		h["Content-Type"] = []string{a.kind}
	}
	var body func() []byte
	if a.body != "" {
		body = func() []byte { return []byte(a.body) }
	}
	return w.Credential(h, &url.URL{Scheme: "https", Host: "a.test", RawQuery: a.query}, body)
}

// The header fields are found as they come: in canonical form.
func TestFieldsAreCanonical(t *testing.T) {
	for _, name := range inHeader {
		if is := textproto.CanonicalMIMEHeaderKey(name); is != name {
			t.Errorf("%s comes as %s", name, is)
		}
	}
	for _, name := range inParameters {
		if name != strings.ToLower(name) {
			t.Errorf("%s is compared in small letters", name)
		}
	}
}

// A credential is found where providers have it, in the query, a form or an object.
func TestCredential(t *testing.T) {
	const hard = "hJ8kQ2mZx7Lw4RtYv9Bc"
	for name, c := range map[string]struct {
		asked
		want string
	}{
		"KuCoin":                  {asked{header: map[string][]string{"KC-API-KEY": {"k"}}}, "k"},
		"Alpaca":                  {asked{header: map[string][]string{"APCA-API-KEY-ID": {"k"}}}, "k"},
		"Gate":                    {asked{header: map[string][]string{"KEY": {"k"}}}, "k"},
		"Bitget":                  {asked{header: map[string][]string{"ACCESS-KEY": {"k"}}}, "k"},
		"MEXC":                    {asked{header: map[string][]string{"X-MEXC-APIKEY": {"k"}}}, "k"},
		"Bitso":                   {asked{header: map[string][]string{"Authorization": {"Bitso k:17:ab"}}}, "Bitso k"},
		"HTX":                     {asked{query: "AccessKeyId=k&Signature=x"}, "k"},
		"a form":                  {asked{kind: aForm, body: "nonce=1&api_key=k"}, "k"},
		"a form without a type":   {asked{body: "nonce=1&api_key=k"}, "k"},
		"an object":               {asked{kind: aJSON, body: ` {"id":1,"api_key":"k","params":{}}`}, "k"},
		"an object as a form":     {asked{kind: aForm, body: `{"api_key":"k"}`}, "k"},
		"form before query":       {asked{query: "api_key=q", kind: aForm, body: "api_key=k"}, "k"},
		"better name before form": {asked{query: "api_key=q", kind: aForm, body: "token=k"}, "q"},
		"header before form":      {asked{header: map[string][]string{"X-Api-Key": {"h"}}, kind: aForm, body: "api_key=k"}, "h"},
		"the first of two":        {asked{kind: aForm, body: "api_key=k&api_key=l"}, "k"},
		"a name of a thing":       {asked{kind: aJSON, body: `{"key":"my-thing","token":"device"}`}, ""},
		"a key named key":         {asked{kind: aJSON, body: `{"key":"` + hard + `"}`}, hard},
		"a member of a member":    {asked{kind: aJSON, body: `{"params":{"api_key":"k"}}`}, ""},
		"no object":               {asked{kind: aJSON, body: `["api_key","k"]`}, ""},
		"half an object":          {asked{kind: aJSON, body: `{"a":`}, ""},
		"parts":                   {asked{kind: "multipart/form-data; boundary=x", body: "api_key=k"}, ""},
		"compressed": {asked{header: map[string][]string{"Content-Encoding": {"gzip"}}, kind: aForm,
			body: "api_key=k"}, ""},
		"too long": {asked{kind: aForm, body: "api_key=k&x=" + strings.Repeat("x", MostBody)}, ""},
	} {
		if got := c.credential(nil); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// Named places count alone. No place means that all requests count together.
func TestNamedPlaces(t *testing.T) {
	both := asked{header: map[string][]string{"X-Account": {"h"}, "Authorization": {"Bearer a"}},
		query: "api_key=q", kind: aForm, body: "account=b"}
	for want, w := range map[string]*Where{
		"h": {Fields: []string{"X-Account"}}, "b": {Parameters: []string{"account"}}, "": {},
		"q": {Parameters: []string{"api_key", "account"}}, "Bearer a": nil,
	} {
		if got := both.credential(w); got != want {
			t.Errorf("%+v: %q, want %q", w, got, want)
		}
	}
}

// In whatever order a body has its parameters, and however it escapes them, the credential is the same.
func FuzzCredentialInBody(f *testing.F) {
	f.Add("key1", "side=buy&nonce", uint64(1))
	f.Add("a b+c%&=ü\"\\", "x\x00y", uint64(2))
	f.Fuzz(func(t *testing.T, value, other string, seed uint64) {
		if value == "" || len(value)+len(other) > 1000 || !utf8.ValidString(value) || !utf8.ValidString(other) {
			t.Skip()
		}
		random := rand.New(rand.NewPCG(seed, seed))
		name := inParameters[random.IntN(8)] // not key and token, which an object can have for something else
		pairs := [][2]string{{name, value}, {"z" + other, "1"}, {"nonce", other}, {"symbol", "a&b"}}
		random.Shuffle(len(pairs), func(i, j int) { pairs[i], pairs[j] = pairs[j], pairs[i] })
		var form, object []string
		for _, p := range pairs {
			form = append(form, escaped(p[0], random)+"="+escaped(p[1], random))
			object = append(object, quoted(p[0], random)+" :\t"+quoted(p[1], random))
		}
		for _, a := range []asked{
			{query: strings.Join(form, "&")}, {kind: aForm, body: strings.Join(form, "&")},
			{kind: aJSON, body: "{" + strings.Join(object, ",\n") + "}"},
		} {
			if got := a.credential(nil); got != value {
				t.Errorf("%+v: %q, want %q", a, got, value)
			}
		}
	})
}

// escaped writes a text for a form, with more escapes than necessary.
func escaped(s string, random *rand.Rand) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		if plain := 'a' <= c|0x20 && c|0x20 <= 'z' || c == '_'; plain && random.IntN(4) > 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02x", c)
		}
	}
	return b.String()
}

// quoted writes a text for JSON, with more escapes than necessary.
func quoted(s string, random *rand.Rand) string {
	b := []byte{'"'}
	for _, c := range s {
		if c < 0x10000 && (c < ' ' || slices.Contains([]rune{'"', '\\', 0x7f}, c) || random.IntN(4) == 0) {
			b = fmt.Appendf(b, `\u%04x`, c)
		} else {
			b = utf8.AppendRune(b, c)
		}
	}
	return string(append(b, '"'))
}
