package journal

import (
	"bytes"
	"encoding/json"
	"testing"
)

// FuzzEncode: what is written by hand is what encoding/json writes, to the byte.
func FuzzEncode(f *testing.F) {
	f.Add("a", "KEY_A", int64(7), int64(0), uint64(1<<63), int64(-3), "", uint8(0))
	f.Add("<a> é \"\\\n", "", int64(0), int64(9), uint64(0), int64(5), "accepted", uint8(0xff))
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
		}
		var b bytes.Buffer
		b.WriteString("before\n")
		encode(&b, r)
		want, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if got := b.String(); got != "before\n"+string(want)+"\n" {
			t.Errorf("%s, expected %s", got, want)
		}
	})
}
