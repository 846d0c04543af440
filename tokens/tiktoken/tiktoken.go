package tiktoken

import (
	"sync"
	"unicode/utf8"

	"github.com/paceline-go/paceline/tokens"
)

// Vocabulary returns the vocabulary of a name in tiktoken, such as "o200k_base", and nil if there
// is none. It is unpacked at the first use, once per process: 10 to 60 ms and 2 to 13 MB each. Safe
// for concurrent use, as is the result.
func Vocabulary(name string) tokens.Vocabulary {
	for _, v := range vocabularies {
		if v.name == name {
			return v
		}
	}
	return nil
}

var vocabularies = []*vocabulary{
	{name: "cl100k_base", packed: cl100kBase, split: splitCl100k},
	{name: "o200k_base", packed: o200kBase, split: splitO200k},
	{name: "p50k_base", packed: r50kBase, split: splitR50k, more: runsOfSpaces},
	{name: "r50k_base", packed: r50kBase, split: splitR50k},
}

type vocabulary struct {
	name   string
	packed string
	split  func(string) int           // bytes of the first piece of a text
	more   func(ranks map[string]int) // adds tokens that are not packed; may be nil
	once   sync.Once
	ranks  map[string]int // rank of each token: the lowest is merged first
}

// runsOfSpaces adds the tokens that p50k_base has beyond r50k_base: runs of spaces, for indented
// programs.
func runsOfSpaces(ranks map[string]int) {
	const spaces = "                         "
	for n := 2; n <= len(spaces); n++ {
		ranks[spaces[:n]] = 50255 + n
	}
}

// Count implements tokens.Vocabulary.
func (v *vocabulary) Count(text string) (tokens int64) {
	v.once.Do(func() {
		v.ranks = unpack(v.packed)
		if v.more != nil {
			v.more(v.ranks)
		}
	})
	if !utf8.ValidString(text) {
		text = string([]rune(text)) // each invalid byte of UTF-8 becomes U+FFFD, three bytes
	}
	var m merger
	for text != "" {
		n := v.split(text)
		if _, ok := v.ranks[text[:n]]; ok {
			tokens++
		} else {
			tokens += int64(m.count(v.ranks, text[:n]))
		}
		text = text[n:]
	}
	return tokens
}
