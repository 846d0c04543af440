// Package meter counts the tokens of a request to a language model. It reads the path and the body
// of the request, and the answer. The form of the input file from which the request came does not
// matter.
//
// A Meter counts by the rules of one provider. It owns no clock, no limit and no file.
//
//	meter.go       Meter, and the provider whose rules it has
//	measured.go    the most that a request may cost, as known before it is sent
//	bound.go       sets the bound on the output of a request, in its body
//	read_usage.go  what a request used, as its answer states it
//	cut_answer.go  whether the output in an answer was cut at its bound
package meter
