// Package decode reads the bodies of answers that have a content coding: gzip, deflate, br or zstd.
// A body may have two codings, one inside the other, but no more. Package decode decodes only what
// Paceline itself reads. It does not change the bytes that a client of the proxy gets.
//
//	decode.go        Codings: the codings of an answer, by its header
//	reader.go        NewReader, and Prefix for the beginning of a body
//	stages.go        one content coding each: gzip, deflate, br, zstd
//	decoder.go       Decoder: decodes beside a stream, piece by piece
//	memory_bound.go  bounds the memory that all Decoders take together
//
// A server may name a coding in the header of an answer and send the text without that coding all
// the same. Gateways do so when they decode an answer and forward its old header. Package decode
// then reads the text as it is.
package decode
