// Package viabatch sends the requests of a file by the provider's own batch API, at half the price.
// The command for this is `paceline run --via batch`. The batches are a step before an ordinary run
// with the same files. Package viabatch writes the results of the batches as that run would write
// them. If the batches did not serve a request, the request has no result yet, so the run sends it.
//
// The file OUT.batches, beside the results, records all batches. Each batch is recorded before the
// provider is asked to make it, and again with the id from the provider. So if the command is
// killed at any instant, a later command continues with the same batches.
//
//	viabatch.go       Config, Run: the input becomes batches, and these become results
//	ledger.go         OUT.batches: the record of each batch before it is made, and its id
//	chunk.go          splits the input into batches, by size and number
//	remote.go         HTTP requests to the provider, and when they are tried again
//	apis.go           the batch APIs of OpenAI and Anthropic
//	merge_answers.go  the results of a batch that has ended
package viabatch
