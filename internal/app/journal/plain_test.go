package journal

import (
	"math"
	"testing"
)

// Which texts are written as they are, and which numbers are read by hand.
func TestPlain(t *testing.T) {
	for c := range 256 {
		want := c >= ' ' && c <= '~' && c != '"' && c != '\\' && c != '<' && c != '>' && c != '&'
		if s := "a" + string([]byte{byte(c)}) + "b"; isPlain(s) != want {
			t.Errorf("%q is plain: %v", s, !want)
		}
	}
	for text, want := range map[string]int64{
		"0": 0, "9": 9, "90": 90, "99x": 99, "9223372036854775807": math.MaxInt64,
		"": -1, "x": -1, "-1": -1, "00": -1, "01": -1, "9223372036854775808": -1, "18446744073709551617": -1, "99999999999999999999": -1,
	} {
		p := plain{rest: []byte(text)}
		if n := p.digits(); p.failed != (want < 0) || !p.failed && n != want {
			t.Errorf("%q is read as %d, failed %v", text, n, p.failed)
		}
	}
	for text, want := range map[string]bool{
		`,"id":`: true, `,"id":7`: true, `{"id":`: false, `,'id":`: false, `,"ix":`: false, `,"id':`: false, `,"id";`: false, `,"id"`: false, `,"idx":`: false, ``: false,
	} {
		p := plain{rest: []byte(text), open: ','}
		if p.member("id") != want || want && len(p.rest) != len(text)-6 || !want && len(p.rest) != len(text) {
			t.Errorf("%q: %q is left, want %v", text, p.rest, want)
		}
	}
	for name, r := range map[string]record{"neither": {ID: "a", Attempt: 1}, "a key": {Key: "k", Nonce: 3}, "a run": {Send: 1, Run: "x"}} {
		if line, ok := r.append(nil); ok || line != nil {
			t.Errorf("%s is written by hand: %s", name, line)
		}
	}
	r := record{Send: 1, Attempt: 2, Cost: 3, Tokens: [3]int64{0, 0, 4}, At: 5}
	if line, ok := r.append(nil); !ok || string(line) != `{"send":1,"attempt":2,"cost":3,"tokens":[0,0,4],"at":5}`+"\n" {
		t.Errorf("%s", line)
	}
	r = record{Answer: 7, Result: "accepted", Price: 1, At: 2}
	if line, ok := r.append(nil); !ok || string(line) != `{"answer":7,"result":"accepted","price":1,"at":2}`+"\n" {
		t.Errorf("%s", line)
	}
}
