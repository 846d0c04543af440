// Package meter counts the tokens of a request to a language model. For this, it reads the path and
// the body of the request, and the answer. So it works in the same way for all forms of input
// files.
//
// A Meter counts by the rules of one provider, such as OpenAI. It owns no clock, no limit and no
// file.
//
//	meter.go       Meter: which provider's rules count the tokens
//	measured.go    the most that a request may cost, in tokens, before it is sent
//	bound.go       sets max_tokens, or the field like it, in the body of a request
//	read_usage.go  the usage that an answer states, in tokens
//	cut_answer.go  whether the output in an answer was cut at its bound
package meter
