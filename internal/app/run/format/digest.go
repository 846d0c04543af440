package format

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
)

// Hash stands for an id: 128 bits of its SHA-256. So a million ids take the same memory, whatever
// their length. The probability that two of a billion ids have the same digest is about 1.5e-21.
type Hash [16]byte

func HashOf(id string) Hash {
	sum := sha256.Sum256([]byte(id))
	return Hash(sum[:16])
}

// Digest identifies the content of a request: 64 bits of a SHA-256, in hex. It is empty if it is
// not known.
type Digest string

func NewDigest(method, url string, header http.Header, body []byte) Digest {
	const short = 512
	var room [short]byte
	b := quoted(room[:0], method)
	b = append(quoted(append(b, ' '), url), '\n')
	var sum [sha256.Size]byte
	if len(header) == 0 && len(b)+1+len(body) <= short {
		sum = sha256.Sum256(append(append(b, '\n'), body...))
	} else {
		all := sha256.New()
		all.Write(bytes.Clone(b)) // a clone, since b itself would move room to the heap
		_ = header.Write(all)     // writes the fields sorted by name
		all.Write([]byte{'\n'})
		all.Write(body)
		all.Sum(sum[:0])
	}
	return Digest(hex.EncodeToString(sum[:8]))
}

// quoted is strconv.AppendQuote, but faster where there is nothing to escape.
func quoted(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return strconv.AppendQuote(b, s)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}
