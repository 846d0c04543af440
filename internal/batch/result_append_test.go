package batch

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
)

// A field that is added to a Result is not forgotten: each alone is written as encoding/json does.
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
			v.Set(reflect.ValueOf(&text))
		case reflect.Slice:
			v.SetBytes([]byte(`"x"`))
		case reflect.Map:
			v.Set(reflect.MakeMap(v.Type()))
			v.SetMapIndex(reflect.ValueOf(text), reflect.New(v.Type().Elem()).Elem())
		default:
			t.Fatalf("%s is a %v", all.Field(i).Name, v.Kind())
		}
		if got, want := r.line(), lineOf(&r); !bytes.Equal(got, want) {
			t.Errorf("%s: %s, expected %s", all.Field(i).Name, got, want)
		}
	}
}

// FuzzResult: what is written by hand is what encoding/json writes, to the byte.
func FuzzResult(f *testing.F) {
	f.Add("a", "body <&> \u2028\u2029\x7f \"\\\b\f\n\r\t\x01\x1f é € 😀", []byte{0xff, 0}, uint16(0x3ff), int64(1234567), "x-y")
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
		if is(7) {
			r.Request = json.RawMessage(`{"url": "x"}`)
		}
		if got, want := r.line(), lineOf(&r); !bytes.Equal(got, want) {
			t.Errorf("%s, expected %s", got, want)
		}
		if got := r.append([]byte("before")); !bytes.Equal(got, append([]byte("before"), lineOf(&r)...)) {
			t.Errorf("%s", got)
		}
	})
}
