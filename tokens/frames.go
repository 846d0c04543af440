package tokens

import (
	"encoding/base64"
	"encoding/binary"
)

// frames reads the event stream of AWS (application/vnd.amazon.eventstream). A message begins with
// its length and the length of its header fields. Then come four bytes of checksum, the fields, a
// payload of JSON and four bytes of checksum. The checksums are left to TCP. The zero value is at
// the beginning of a stream.
type frames struct {
	prelude [12]byte
	at      int64 // bytes of the message so far
	fields  int64 // end of the header fields
	end     int64 // end of the payload
	broken  bool
}

const (
	preludeLen = 12
	crcLen     = 4
	maxFrame   = 24 << 20
)

// feed passes the payloads in p to add, and calls done after each payload.
func (f *frames) feed(p []byte, add func([]byte), done func()) {
	for len(p) > 0 && !f.broken {
		if f.at < preludeLen {
			n := copy(f.prelude[f.at:], p)
			f.at, p = f.at+int64(n), p[n:]
			if f.at < preludeLen {
				return
			}
			total, fields := int64(binary.BigEndian.Uint32(f.prelude[0:])), int64(binary.BigEndian.Uint32(f.prelude[4:]))
			f.fields, f.end = preludeLen+fields, total-crcLen
			f.broken = total > maxFrame || f.fields > f.end
			continue
		}
		stop := f.fields
		switch {
		case f.at >= f.end:
			stop = f.end + crcLen
		case f.at >= f.fields:
			stop = f.end
		}
		n := min(stop-f.at, int64(len(p)))
		if f.at >= f.fields && f.at < f.end {
			add(p[:n])
		}
		f.at, p = f.at+n, p[n:]
		if f.at == f.end+crcLen {
			*f = frames{}
			done()
		}
	}
}

// enclosed finds the member bytes of a JSON object. InvokeModel encloses a chunk of its model's
// answer there: {"bytes":"base64","p":"…"}. The zero value is at the beginning.
type enclosed struct {
	depth  int
	quoted bool
	escape bool
	value  bool // the byte before was a colon
	inside bool // inside the string of the member bytes
	key    name
	quads  [64]byte // base64 that is not yet decoded
	held   int
}

// feed passes the enclosed bytes of p to add.
func (e *enclosed) feed(p []byte, add func([]byte)) {
	for _, c := range p {
		switch {
		case e.quoted && e.escape:
			e.escape = false
			if e.inside { // a slash may have a backslash before it; nothing else in base64 may
				e.put(c, add)
			}
		case e.quoted && c == '\\':
			e.escape = true
		case e.quoted && c == '"':
			if e.inside {
				e.flush(add)
			}
			e.quoted, e.inside = false, false
		case e.quoted && e.inside:
			e.put(c, add)
		case e.quoted:
			if !e.value {
				e.key.add([]byte{c})
			}
		case c == '"':
			e.quoted = true
			if e.inside = e.value && e.depth == 1 && string(e.key.text()) == "bytes"; !e.value {
				e.key.n = 0
			}
		case c == ':' || c == ',':
			e.value = c == ':'
		case c == '{' || c == '[':
			e.depth++
			e.value = false
		case c == '}' || c == ']':
			e.depth--
		}
	}
}

func (e *enclosed) put(c byte, add func([]byte)) {
	e.quads[e.held] = c
	if e.held++; e.held == len(e.quads) {
		e.flush(add)
	}
}

// flush decodes the held bytes and passes them on. If they are not base64, enclosed stops. The
// document in it is then not whole and has no usage.
func (e *enclosed) flush(add func([]byte)) {
	n, _ := base64.StdEncoding.Decode(e.quads[:], e.quads[:e.held])
	add(e.quads[:n])
	e.held = 0
}
