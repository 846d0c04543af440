// Package decode reads the bodies of answers that have a content coding: gzip, deflate, br or zstd.
// A body may have two codings, one inside the other, but no more. Package decode decodes only what
// Paceline itself reads. It does not change the bytes that a client of the proxy gets.
//
//	decode.go        which codings an answer has: Content-Encoding
//	reader.go        decodes a body or its beginning; text in spite of the header
//	stages.go        one content coding each: gzip, deflate, br, zstd
//	decoder.go       Decoder: decodes beside a stream, piece by piece
//	memory_bound.go  bounds the memory that all Decoders take together
//
// The header of an answer may name a coding that its body does not have. Some gateways decode an
// answer, and forward it with its old header. If the body begins with text instead of the named
// coding, package decode reads the body as text.
package decode
