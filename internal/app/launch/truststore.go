//go:build unix

package launch

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // of the format; the file is read from a folder that others cannot write
	"encoding/binary"
	"encoding/pem"
	"fmt"
	"unicode/utf16"
)

// trustStore returns the certificates of a PEM file as a JKS, the form that every Java reads. The
// digest at its end is by the usual password.
func trustStore(bundle []byte) []byte {
	var entries bytes.Buffer
	n := uint32(0)
	text := func(w *bytes.Buffer, s string) {
		_ = binary.Write(w, binary.BigEndian, uint16(len(s)))
		w.WriteString(s)
	}
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		_ = binary.Write(&entries, binary.BigEndian, uint32(2)) // a trusted certificate
		text(&entries, fmt.Sprintf("c%d", n))
		_ = binary.Write(&entries, binary.BigEndian, uint64(0)) // made in 1970
		text(&entries, "X.509")
		_ = binary.Write(&entries, binary.BigEndian, uint32(len(block.Bytes)))
		entries.Write(block.Bytes)
		n++
	}
	var b bytes.Buffer
	const magic, version = 0xfeedfeed, 2
	_ = binary.Write(&b, binary.BigEndian, []uint32{magic, version, n})
	b.Write(entries.Bytes())
	sum := sha1.New() //nolint:gosec // see above
	for _, c := range utf16.Encode([]rune("changeit")) {
		_ = binary.Write(sum, binary.BigEndian, c)
	}
	sum.Write([]byte("Mighty Aphrodite"))
	sum.Write(b.Bytes())
	return sum.Sum(b.Bytes())
}
