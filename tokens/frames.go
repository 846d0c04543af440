package tokens

import "encoding/binary"

// frames reads the event stream of AWS (application/vnd.amazon.eventstream): each message is its length and that of its header fields,
// four bytes of checksum, the fields, a payload of JSON and four bytes of checksum. The checksums are TCP's to look after. The zero
// value is at the beginning.
type frames struct {
	prelude [12]byte
	at      int64 // bytes of the message that have come
	fields  int64 // where they end
	end     int64 // of the payload
	broken  bool
}

const (
	preludeLen = 12
	crcLen     = 4
	maxFrame   = 24 << 20
)

// feed passes the payloads in p to add, and calls done after each.
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
