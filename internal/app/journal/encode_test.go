package journal

import (
	"bytes"
	"encoding/json"
	"math"
	"testing"
)

// FuzzEncode: the encoder by hand and encoding/json write the same bytes.
func FuzzEncode(f *testing.F) {
	f.Add("a", "KEY_A", int64(7), int64(0), uint64(1<<63), int64(-3), "", uint8(0))
	f.Add("a", "KEY_A", int64(7), int64(0), uint64(5), int64(3), "", uint8(0))
	f.Add("", "", int64(0), int64(7), uint64(0), int64(3), "accepted", uint8(0x0f)) // with tokens and a price
	f.Add("<a> é \"\\\n", "", int64(0), int64(9), uint64(0), int64(5), "accepted", uint8(0xff))
	f.Add("a", "KEY_A", int64(7), int64(0), uint64(5), int64(3), "", uint8(0x5f))
	f.Add("", "", int64(0), int64(7), uint64(0), int64(3), "accepted", uint8(0x60))
	f.Fuzz(func(t *testing.T, id, key string, send, answer int64, nonce uint64, n int64, result string, has uint8) {
		r := record{Send: send, ID: id, Attempt: int(n % 100), Key: key, Nonce: nonce, Cost: n / 3, Answer: answer, Result: result, At: n}
		for i := range r.Tokens {
			if has>>i&1 == 1 {
				r.Tokens[i] = n + int64(i)
			}
		}
		if has>>3&1 == 1 {
			r.Price = n
		}
		switch has >> 4 {
		case 1:
			r.Doubt = key
		case 2:
			r.Hold, r.Spent = n, n
		case 3:
			r.Read, r.Start, r.Lines, r.Sum = n, n, int(n), nonce
		case 4:
			r.Run, r.Boot, r.Up = id, key, n
		case 5:
			r.Rest, r.Settled = [4]int64{n, 0, n / 2, 1}, n
		case 6:
			r.Settled = 1
		}
		var b bytes.Buffer
		b.WriteString("before\n")
		encode(&b, &r)
		want, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if got := b.String(); got != "before\n"+string(want)+"\n" {
			t.Errorf("%s, expected %s", got, want)
		}
		fits := min(send, answer, n, r.Tokens[2]) >= 0 && nonce <= math.MaxInt64 && max(send, answer) > 0
		sameDecoded(t, append(want, '\n'), (has>>4 == 0 || has>>4 == 5 || has>>4 == 6) && isPlain(id) && isPlain(key) && isPlain(result) && fits)
	})
}

// sameDecoded: the decoder by hand and encoding/json read the same. byHand: the decoder by hand
// must accept the line.
func sameDecoded(t *testing.T, line []byte, byHand bool) {
	t.Helper()
	var got record
	p := plain{rest: line}
	ok := p.read(&got)
	if byHand && !ok {
		t.Errorf("%s is not read by hand", line)
	}
	if !ok {
		return
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	var want record
	if err := d.Decode(&want); err != nil || got != want || len(bytes.TrimSpace(line[d.InputOffset():])) > 0 {
		t.Errorf("%q is %+v, expected %+v, %v", line, got, want, err)
	}
}

// FuzzDecode: likewise of any line.
func FuzzDecode(f *testing.F) {
	for _, line := range []string{
		`{"send":1,"id":"a","attempt":1,"key":"A","nonce":8,"cost":1,"tokens":[1,2,3],"at":1800000000000000000}`,
		`{"answer":9223372036854775807,"result":"accepted","price":0,"at":18000000000000000000}`,
		`{"send":1,"send":2}`, `{"send":1,}`, `{"send":01}`, `{"send":-1}`, `{"id":"\u0041"}`, `{"tokens":[1,2]}`, `{"tokens":[1,2,3,4]}`,
		`{"send":1.0}`, `{"id":"a`, `{}`, `{"cost":1,"send":1}`, `{"attempt":4294967296}`, `{"send": 1}`, `{"send":1} x`,
		`{"nonce":18446744073709551615}`, `{"id":"é"}`, `{"send":}`, `{"id":x"a"}`,
	} {
		f.Add([]byte(line + "\n"))
	}
	f.Fuzz(func(t *testing.T, line []byte) { sameDecoded(t, line, false) })
}

// A line that was cut short, wherever, is no other line.
func TestDecodeOfACutLine(t *testing.T) {
	for _, line := range []string{
		`{"send":1,"id":"a","attempt":1,"key":"A","nonce":8,"cost":1,"tokens":[1,2,3],"at":1800000000000000000}`, `{"tokens":[1,2,3],"answer":7,"result":"accepted","price":5,"at":18}`,
	} {
		for i := range line {
			sameDecoded(t, []byte(line[:i]), false)
			if r, err := decode([]byte(line[:i])); err == nil {
				t.Errorf("%s is read as %+v", line[:i], r)
			}
		}
		sameDecoded(t, []byte(line+"\n"), true)
	}
}
