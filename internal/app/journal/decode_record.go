package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
)

// decode reads a line. A compaction reads the two records of each send again, so decode reads the
// lines of append by hand.
func decode(line []byte) (record, error) {
	var c record
	if p := (plain{rest: line}); p.read(&c) {
		return c, nil
	}
	return decodeJSON(line)
}

func decodeJSON(line []byte) (c record, err error) {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err = d.Decode(&c); err != nil {
		return c, err
	}
	if rest := bytes.TrimSpace(line[d.InputOffset():]); len(rest) > 0 {
		err = fmt.Errorf("%.20q follows the record", rest)
	}
	if min(c.Send, c.Answer, c.At, c.Hold, c.Up, c.Awake, c.Timeout, c.Keep) < 0 {
		err = errors.New("a number is negative")
	}
	return c, err
}

// plain reads a line that append may have written. It gives up at any other line.
type plain struct {
	rest   []byte
	open   byte // the brace or comma before the next member
	failed bool
}

// read reports whether append may have written the line. Such a line has its members in the order
// of append, each at most once. It has no negative numbers and no escapes.
func (p *plain) read(r *record) bool {
	p.open = '{'
	p.integer("send", &r.Send)
	p.text("id", &r.ID)
	attempt := int64(0)
	p.integer("attempt", &attempt)
	r.Attempt = int(attempt)
	p.text("key", &r.Key)
	nonce := int64(0)
	p.integer("nonce", &nonce)
	r.Nonce = uint64(nonce)
	p.integer("cost", &r.Cost)
	if p.member("tokens") {
		for i := range r.Tokens {
			p.skip("[,,"[i])
			r.Tokens[i] = p.digits()
		}
		p.skip(']')
	}
	if p.member("rest") {
		for i := range r.Rest {
			p.skip("[,,,"[i])
			r.Rest[i] = p.digits()
		}
		p.skip(']')
	}
	p.integer("settled", &r.Settled)
	p.integer("answer", &r.Answer)
	p.text("result", &r.Result)
	p.integer("price", &r.Price)
	p.integer("at", &r.At)
	return !p.failed && p.open == ',' && string(p.rest) == "}\n" && int64(r.Attempt) == attempt
}

// member reports whether the next member has that name. If so, it passes over the name and its
// colon.
func (p *plain) member(name string) bool {
	b := p.rest
	n := len(name) + len(`,"":`)
	if p.failed || len(b) < n || b[0] != p.open || b[1] != '"' || string(b[2:n-2]) != name || b[n-2] != '"' ||
		b[n-1] != ':' {
		return false
	}
	p.rest, p.open = b[n:], ','
	return true
}

func (p *plain) skip(c byte) {
	if p.failed = p.failed || len(p.rest) == 0 || p.rest[0] != c; !p.failed {
		p.rest = p.rest[1:]
	}
}

func (p *plain) integer(name string, into *int64) {
	if p.member(name) {
		*into = p.digits()
	}
}

func (p *plain) digits() int64 {
	const most = 19 // so many digits fit into 64 bits
	n, i := uint64(0), 0
	for ; i < len(p.rest) && '0' <= p.rest[i] && p.rest[i] <= '9'; i++ {
		n = n*10 + uint64(p.rest[i]-'0')
	}
	if i == 0 || i > most || n > math.MaxInt64 || p.rest[0] == '0' && i > 1 {
		p.failed = true
	}
	p.rest = p.rest[i:]
	return int64(n)
}

func (p *plain) text(name string, into *string) {
	if !p.member(name) {
		return
	}
	p.skip('"')
	end := max(bytes.IndexByte(p.rest, '"'), 0)
	*into = string(p.rest[:end])
	p.rest = p.rest[end:]
	p.skip('"')
	p.failed = p.failed || !isPlain(*into)
}
