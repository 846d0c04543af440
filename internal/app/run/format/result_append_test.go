package format

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/provider"
)

// No new field of a Result is forgotten: each alone is written as encoding/json does.
func TestResultHasEachField(t *testing.T) {
	text, all := "text", reflect.TypeFor[Result]()
	for i := range all.NumField() {
		var r Result
		switch v := reflect.ValueOf(&r).Elem().Field(i); v.Kind() {
		case reflect.String:
			v.SetString(text)
		case reflect.Int:
			v.SetInt(7)
		case reflect.Float64:
			v.SetFloat(7.5)
		case reflect.Bool:
			v.SetBool(true)
		case reflect.Pointer:
			if parts, ok := v.Addr().Interface().(**provider.Parts); ok {
				*parts = &provider.Parts{Served: 1, Refused: 2}
			} else {
				v.Set(reflect.ValueOf(&text))
			}
		case reflect.Slice:
			if list, ok := v.Addr().Interface().(*[]string); ok {
				*list = []string{text, `"<`}
			} else {
				v.SetBytes([]byte(`"x"`))
			}
		case reflect.Map:
			v.Set(reflect.MakeMap(v.Type()))
			v.SetMapIndex(reflect.ValueOf(text), reflect.New(v.Type().Elem()).Elem())
		default:
			t.Fatalf("%s is a %v", all.Field(i).Name, v.Kind())
		}
		if got, want := r.Append(nil), LineOf(&r); !bytes.Equal(got, want) {
			t.Errorf("%s: %s, expected %s", all.Field(i).Name, got, want)
		}
	}
}

// Each byte and each kind of character alone, and between others, is written as encoding/json does.
func TestTextOfEachCharacter(t *testing.T) {
	all := []string{"", "\u007f", "é", "€", "\u0084", "\u0085", "\u0086", "\u2027", "\u2028", "\u2029", "\u202a", "\ufffd", "😀", "\xe2\x80", "\xed\xa0\x80", "\xf0\x9f\x98"}
	for c := range 256 {
		all = append(all, string([]byte{byte(c)}))
	}
	for _, c := range all {
		for _, s := range []string{c, "a" + c, c + "b", "a" + c + "b" + c + c} {
			if got, want := append(AppendText(nil, s), '\n'), LineOf(s); !bytes.Equal(got, want) {
				t.Errorf("%q: %s, expected %s", s, got, want)
			}
		}
	}
}

// FuzzResult: a result written by hand equals that of encoding/json, to the byte.
func FuzzResult(f *testing.F) {
	f.Add("a", "body <&> \u2028\u2029\x7f \"\\\b\f\n\r\t\x01\x1f é € 😀", []byte{0xff, 0}, uint16(0x3ff), int64(1234567), "x-y")
	f.Add("a", "body <&> \u2028\u2029\x7f \"\\\b\f\n\r\t\x01\x1f é € 😀 \xff", []byte{0xff, 0}, uint16(0x37f), int64(1234567), "x-y") // by hand
	f.Add("a", "x", []byte(nil), uint16(1<<2|1<<6), int64(200), "0123456789abcdef")
	f.Add("\xff", "", []byte(nil), uint16(0), int64(0), "")
	f.Fuzz(func(t *testing.T, id, text string, binary []byte, has uint16, n int64, name string) {
		is := func(bit int) bool { return has>>bit&1 == 1 }
		n &= 1<<53 - 1
		r := Result{ID: id, State: "done", Attempts: int(n % 7), WaitedMS: float64(n) / 1000, At: name, PossibleRepeat: is(0), BodyCut: is(1)}
		if is(2) {
			r.Body, r.Status, r.LatencyMS = &text, int(n%600), float64(n%1000)/1000
		} else if is(3) {
			r.BodyBase64 = binary
		}
		if is(4) {
			r.WaitedFor = map[string]int64{name: n, "limit 20/s": -n}
		}
		if is(5) {
			r.Headers = map[string]string{name: text, "content-type": id}
		}
		if is(6) {
			r.Key, r.Location, r.Error, r.Class, r.Hidden, r.Digest = name, text, id, name, int(n%3), Digest(name)
		}
		if is(8) {
			r.Refused, r.RefusedAt, r.Ceiling = int(n%20), []string{id, text, name}[:n%4%3+1], math.Round(float64(n)*1.37)/1e6
		}
		if is(7) {
			r.Request = json.RawMessage(`{"url": "x"}`)
		}
		if got, want := r.Append(nil), LineOf(&r); !bytes.Equal(got, want) {
			t.Errorf("%s, expected %s", got, want)
		}
		var read, want Entry
		line := r.Append(nil)
		if ok := read.read(line); ok {
			if err := json.Unmarshal(line, &want); err != nil || read.ID != want.ID || read.State != want.State || read.Status != want.Status || read.Digest != want.Digest {
				t.Errorf("%s is read as %+v, expected %+v, %v", line, read, want, err)
			}
		} else if id == "a" && is(2) && is(6) && !is(7) && r.Status >= 100 && name == "0123456789abcdef" {
			t.Errorf("%s is not read", line)
		}
		if got := r.Append([]byte("before")); !bytes.Equal(got, append([]byte("before"), LineOf(&r)...)) {
			t.Errorf("%s", got)
		}
	})
}

// A line that append never writes is left to encoding/json.
func TestEntryIsNoResult(t *testing.T) {
	const good = `{"id":"a","state":"done","status":200,"attempts":1,"body":"x","request_digest":"0123456789abcdef"}` + "\n"
	var e Entry
	if !e.read([]byte(good)) || e.ID != "a" || e.State != "done" || e.Status != 200 || e.Digest != "0123456789abcdef" {
		t.Errorf("%+v", e)
	}
	for from, to := range map[string]string{
		`"a"`: `"\u0061"`, `:200`: `:20`, `200`: `0.2`, `f"}`: `f"}}`, `"x"`: `"x`, `{"id`: ` {"id`, `1,"b`: "1,\x00\"b", `done`: `dead`, `abcdef"`: `abcde"`, `:"a`: `:"`, "\n": "",
	} {
		line := strings.Replace(good, from, to, 1)
		if e = (Entry{}); e.read([]byte(line)) {
			t.Errorf("%q is read: %+v", line, e)
		}
	}
	dead := strings.Replace(good, "done", "dead", 1)
	gone := strings.Replace(good, "done", "gone", 1)
	for line, state := range map[string]string{good: "done", dead: "dead", good[:len(good)-3]: "", gone: ""} {
		e, ok := (Plain{}).Entry([]byte(line), false)
		if ok != (state != "") || ok && (e.ID != "a" || e.State != state || e.Status != 200) {
			t.Errorf("%q is read as %+v, %v", line, e, ok)
		}
	}
	for _, name := range []string{"page", "next", "round", "finish", "output_tokens"} { // members that it does not read
		member := fmt.Sprintf(`,"%s":`, name)
		for _, last := range []string{`,"body"`, `,"request_digest"`} {
			if line := strings.Replace(good, last, member+"1"+last, 1); e.read([]byte(line)) {
				t.Errorf("%q is read", line)
			}
		}
		r := Result{ID: "a", State: "done", Status: 200, Body: &member, Digest: "0123456789abcdef"}
		if line := r.Append(nil); !e.read(line) {
			t.Errorf("%q is not read", line)
		}
	}
}

// A Stamp is what package time writes by its layout, in every zone.
func TestStamp(t *testing.T) {
	zone := time.FixedZone("", -3*3600)
	for _, s := range []string{"2026-11-29T14:00:00.120Z", "2026-12-31T23:59:59.999999999Z", "0001-01-01T00:00:00Z",
		"2024-02-29T00:00:00.007Z", "1969-07-20T20:17:40.05Z"} {
		at, err := time.Parse(time.RFC3339, s)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := Stamp(at.In(zone)), at.Format("2006-01-02T15:04:05.000Z"); got != want {
			t.Errorf("%s, expected %s", got, want)
		}
	}
}

// FuzzDigest: the digest of a request is that of the first version.
func FuzzDigest(f *testing.F) {
	f.Add("GET", "http://h/?a=%20", "X-A", "v", []byte("body"))
	f.Add("POST", "http://h/é\x00\"\xff", "", "", bytes.Repeat([]byte("x"), 600))
	f.Fuzz(func(t *testing.T, method, url, name, value string, body []byte) {
		header := http.Header{}
		if name != "" {
			header[name] = []string{value, method}
		}
		sum := sha256.New()
		fmt.Fprintf(sum, "%q %q\n", method, url)
		_ = header.Write(sum)
		fmt.Fprintf(sum, "\n")
		sum.Write(body)
		if got, want := NewDigest(method, url, header, body), hex.EncodeToString(sum.Sum(nil)[:8]); string(got) != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
}

// A result is one line for every reader, also for those to whom U+0085, U+2028 and U+2029 end one:
// in texts, in JSON of others, in dead letters and in results of batches.
func TestResultIsOneLine(t *testing.T) {
	const breaks = "a\u0085b\u2028c\u2029d"
	raw := json.RawMessage(`{"text":"` + breaks + `","` + breaks + `":1}`)
	body := breaks
	all := map[string][]byte{
		"a result":          (&Result{ID: breaks, Body: &body, Headers: map[string]string{breaks: breaks}}).Append(nil),
		"a dead letter":     (&Result{ID: breaks, Error: breaks, Request: raw}).Append(nil),
		"JSON of an answer": LineOf(raw),
	}
	for name, text := range map[string]string{"OpenAI": string(raw), "no JSON": breaks} {
		all["a batch, "+name] = LineOf(bodyOf(&Result{Body: &text}))
	}
	for name, line := range all {
		if n := len(strings.FieldsFunc(string(line), func(r rune) bool { return r == '\n' || r == '\u0085' || r == '\u2028' || r == '\u2029' })); n != 1 {
			t.Errorf("%s has %d lines: %q", name, n, line)
		}
		var read any
		if err := json.Unmarshal(line, &read); err != nil || !strings.Contains(fmt.Sprint(read), breaks) {
			t.Errorf("%s is read as %q, %v", name, read, err)
		}
	}
}
