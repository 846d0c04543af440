// Package charge reads what users write about the cost of requests. Users write costs in four
// places: flags, the file of the proxy, lines of the input of a run, and a header field of a
// request. An amount is a number with a unit, or an expression in jq over a body.
//
// Package charge only reads such texts. Package provider defines what a charge is (what some
// requests cost, and in which resource they count). Package transport applies charges to requests.
//
//	charge.go      amounts such as "250 weight" in flags, files and header fields; their errors
//	expression.go  costs by jq over a body: compiled, with a bound on time
package charge
