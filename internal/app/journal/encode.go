package journal

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// encode appends a record's line. The two records of each send are written by hand, in the form of
// encoding/json: there may be 30,000 sends a second.
func encode(b *bytes.Buffer, r *record) {
	if line, ok := r.append(b.AvailableBuffer()); ok {
		b.Write(line)
		return
	}
	line, err := json.Marshal(*r)
	if err != nil {
		panic(err)
	}
	b.Write(line)
	b.WriteByte('\n')
}

// append appends the line of a Send or an Answer without characters to escape. For any other record
// ok is false.
func (r *record) append(b []byte) (line []byte, ok bool) {
	if !isPlain(r.ID, r.Key, r.Result) {
		return b, false
	}
	rest := *r
	rest.Send, rest.ID, rest.Attempt, rest.Key, rest.Nonce, rest.Cost, rest.Tokens = 0, "", 0, "", 0, 0, [3]int64{}
	rest.Rest, rest.Settled, rest.Answer, rest.Result, rest.Price, rest.At = [4]int64{}, 0, 0, "", 0, 0
	if rest != (record{}) || r.Send == 0 && r.Answer == 0 {
		return b, false
	}
	open := byte('{')
	name := func(name string) {
		b = append(append(append(b, open, '"'), name...), '"', ':')
		open = ','
	}
	integer := func(s string, n int64) {
		if n != 0 {
			name(s)
			b = strconv.AppendInt(b, n, 10)
		}
	}
	text := func(s, v string) {
		if v != "" {
			name(s)
			b = append(append(append(b, '"'), v...), '"')
		}
	}
	integer("send", r.Send)
	text("id", r.ID)
	integer("attempt", int64(r.Attempt))
	text("key", r.Key)
	if r.Nonce != 0 {
		name("nonce")
		b = strconv.AppendUint(b, r.Nonce, 10)
	}
	integer("cost", r.Cost)
	if r.Tokens != ([3]int64{}) {
		name("tokens")
		for i, n := range r.Tokens {
			b = strconv.AppendInt(append(b, "[,,"[i]), n, 10)
		}
		b = append(b, ']')
	}
	if r.Rest != ([4]int64{}) {
		name("rest")
		for i, n := range r.Rest {
			b = strconv.AppendInt(append(b, "[,,,"[i]), n, 10)
		}
		b = append(b, ']')
	}
	integer("settled", r.Settled)
	integer("answer", r.Answer)
	text("result", r.Result)
	integer("price", r.Price)
	integer("at", r.At)
	return append(b, '}', '\n'), true
}

func isPlain(all ...string) bool {
	for _, s := range all {
		for i := range len(s) {
			if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
				return false
			}
		}
	}
	return true
}
