// Package tiktoken has the vocabularies of OpenAI's models, for a tokens.Estimator that is to count and not to guess:
//
//	estimator, err := tokens.New(tokens.Config{Vocabulary: tiktoken.Vocabulary})
//
// It is a package of its own because they add 14 MB to a program.
package tiktoken

import (
	"sync"

	"github.com/tiktoken-go/tokenizer"

	"github.com/paceline-go/paceline/tokens"
)

// Vocabulary returns the vocabulary of a name as tiktoken has it, such as "o200k_base", and nil if there is none. It is
// built when first used, once per process: 20 to 60 ms and 3 to 7 MB each. Safe for concurrent use, as is what it returns.
func Vocabulary(name string) tokens.Vocabulary {
	for _, v := range vocabularies {
		if v.name == tokenizer.Encoding(name) {
			return v
		}
	}
	return nil
}

var vocabularies = []*vocabulary{{name: tokenizer.Cl100kBase}, {name: tokenizer.O200kBase}, {name: tokenizer.P50kBase}, {name: tokenizer.R50kBase}}

type vocabulary struct {
	name  tokenizer.Encoding
	once  sync.Once
	codec tokenizer.Codec
}

// Count implements tokens.Vocabulary.
func (v *vocabulary) Count(text string) int64 {
	v.once.Do(func() {
		codec, err := tokenizer.Get(v.name)
		if err != nil {
			panic("tiktoken: " + err.Error()) // the names are the module's own
		}
		v.codec = codec
	})
	n, err := v.codec.Count(text)
	if err != nil { // no input is known to cause it; a byte is the least a token takes
		return int64(len(text))
	}
	return int64(n)
}
