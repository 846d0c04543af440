// Package tiktoken provides the vocabularies of OpenAI's models. With them, a tokens.Estimator
// counts the tokens of a text (of up to 16 KiB by default) instead of guessing their number. The
// model must be one whose vocabulary the Estimator knows. Set the field Vocabulary:
//
//	estimator, err := tokens.New(tokens.Config{Vocabulary: tiktoken.Vocabulary})
//
// The vocabularies add 1.5 MB to a program that imports package tiktoken. They are in a package of
// their own, so that programs without tiktoken do not grow. In addition, each vocabulary that is in
// use takes 2 to 13 MB of memory.
//
// # Files
//
//	tiktoken.go     Vocabulary: the names, and counts of a text
//	pretokenize.go  cuts a text into words, numbers, spaces
//	merge.go        the number of tokens in a word
//	packed.go       the vocabularies as embedded data
package tiktoken
