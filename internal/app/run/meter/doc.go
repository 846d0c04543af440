// Package meter counts the tokens of a request to a language model. For this, it reads the path and
// the body of the request, and the answer. So it works in the same way for all forms of input
// files.
//
// A Meter counts by the rules of one provider, such as OpenAI. It owns no clock, no limit and no
// file.
//
//	meter.go       whose rules count the tokens: --count, provider by host and API; estimate's
//	               correction
//	measured.go    the most that a request may cost in tokens; a prompt too large for a limit
//	bound.go       --max-output: sets max_tokens, or the field like it, in a body
//	read_usage.go  the usage in an answer; a 200 that is an error
//	cut_answer.go  answers cut at max_tokens: finish_reason, stop_reason
package meter
