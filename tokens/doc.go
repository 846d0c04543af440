// Package tokens estimates how many tokens a request to a language model will use, before the
// request is sent. After the answer, package tokens reads the number of used tokens that the answer
// states. It can read the bodies of requests and answers of OpenAI's APIs, Anthropic's messages,
// Gemini, Bedrock, Cohere and Ollama. The type [API] lists all of them.
//
//	est, err := estimator.Estimate(tokens.Chat, body)   // reserve est.Input and est.Output, then send
//	w := tokens.NewWatcher(tokens.Chat, stream, resp.Body)
//	...                                                 // pass the answer on, reading from w
//	usage, err := w.Usage()                             // settle with it
//	estimator.Learn(est, usage)                         // the next estimate is better
//
// Package tokens knows no prices: an estimate is a number of tokens to reserve in a limit, not a
// bill. The caller chooses which tokens count in a provider's limit. For example, Anthropic's limit
// of input tokens counts, for most models, only those that were not read from a cache:
// Usage.Uncached.
//
// # Files
//
//	estimate.go        Estimator: estimates requests and learns from answers
//	api_body.go        API and Body: the reader of request bodies
//	model_name.go      the model that a body names
//	vendors.go         bodies of Gemini, Bedrock, Cohere and Ollama
//	json_values.go     reads JSON values in place
//	pdf.go             counts the pages of a PDF
//	text_shape.go      features of a text, from which its tokens are guessed
//	likeness.go        which vocabulary a model's answers resemble
//	quantile.go        an upper bound for the ratio of the next request, with a stated chance
//	model_families.go  published facts about models: vocabulary, images, most output
//	counting.go        Counting: which tokens a server counts against its limits, and when
//	answer_usage.go    Usage: the tokens that an answer states
//	watcher.go         Watcher: reads the usage while the answer passes through
//	scanner.go         finds the usage in JSON that comes in pieces
//	frames.go          reads AWS's event stream
//
// Package tokens/tiktoken provides the vocabularies of OpenAI's models.
package tokens
