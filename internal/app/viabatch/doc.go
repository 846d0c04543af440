// Package viabatch sends the requests of a file by the provider's own batch API, at half the price.
// `paceline run --via batch` uses it. This command first sends batches, and then does an ordinary
// run with the same files. The results of the batches are written by a run.Outside, so they are in the
// form in which that run writes its own. If the batches did not serve a request, the request has no result
// yet, so the run sends it.
//
// The file OUT.batches, beside the results, records all batches. Package viabatch records each
// batch before it asks the provider to make the batch, and again with the id that the provider has
// given it. So if the command is killed at any instant, the same command continues with the same
// batches when it is started again.
//
//	viabatch.go       the steps: input to batches, waits, results; goes on after a kill; progress
//	ledger.go         OUT.batches: the record of each batch, before and after it is made
//	chunk.go          splits the input into batches, by size and number
//	remote.go         requests to the provider: retries, refusals, errors
//	apis.go           OpenAI's and Anthropic's APIs: paths, states, most requests and bytes
//	merge_answers.go  results of an ended batch, as lines of the run; what they cost
package viabatch
