package tiktoken

import (
	"compress/flate"
	_ "embed" // for the files
	"encoding/binary"
	"io"
	"strings"
)

// The vocabularies. The test of this package packs them, from the module that has them as Go
// programs.
var (
	//go:embed cl100k_base.bin
	cl100kBase string
	//go:embed o200k_base.bin
	o200kBase string
	//go:embed r50k_base.bin
	r50kBase string
)

// A packed vocabulary is deflated. It begins with the number of tokens, in four bytes. The tokens
// follow in the order of their bytes. A token is the length of its part in common with the token
// before, the length of the rest, and the rest. Then come all lowest bytes of the ranks, all middle
// ones and all highest ones. In this order the file is an eighth smaller than in the order of
// ranks.

func unpack(packed string) map[string]int {
	data, err := io.ReadAll(flate.NewReader(strings.NewReader(packed)))
	if err != nil {
		panic("tiktoken: " + err.Error()) // the files belong to this package
	}
	n := int(binary.LittleEndian.Uint32(data))
	ends, at, size := make([]int, n), 4, 0
	for i := range ends {
		shared, rest := int(data[at]), int(data[at+1])
		at += 2 + rest
		size += shared + rest
		ends[i] = size
	}
	ranks := data[at:]
	all := make([]byte, 0, size) // the tokens are parts of one string
	at = 4
	begin := 0
	for range n {
		shared, rest := int(data[at]), int(data[at+1])
		begin, all = len(all), append(append(all, all[begin:begin+shared]...), data[at+2:at+2+rest]...)
		at += 2 + rest
	}
	tokens, out, begin := string(all), make(map[string]int, n+32), 0
	for i, end := range ends {
		out[tokens[begin:end]] = int(ranks[i]) | int(ranks[n+i])<<8 | int(ranks[2*n+i])<<16
		begin = end
	}
	return out
}
