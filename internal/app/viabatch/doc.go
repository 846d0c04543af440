// Package viabatch sends the requests of a file by the provider's own batch API, at half the price.
// `paceline run --via batch` uses it. This command first sends batches, and then does an ordinary
// run with the same files. Package viabatch writes the results of the batches in the form in which
// that run writes its results. If the batches did not serve a request, the request has no result
// yet, so the run sends it.
//
// The file OUT.batches, beside the results, records all batches. Package viabatch records each
// batch before it asks the provider to make the batch, and again with the id that the provider has
// given it. So if the command is killed at any instant, the same command continues with the same
// batches when it is started again.
//
//	viabatch.go       Config, Run: the input becomes batches, and these become results
//	ledger.go         OUT.batches: the record of each batch before it is made, and its id
//	chunk.go          splits the input into batches, by size and number
//	remote.go         HTTP requests to the provider, and when they are tried again
//	apis.go           the batch APIs of OpenAI and Anthropic
//	merge_answers.go  the results of a batch that has ended
package viabatch
