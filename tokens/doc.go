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
//	estimate.go        the estimate of a request; what answers teach; a part for output
//	api_body.go        which API a path has; OpenAI's and Anthropic's bodies: messages, tools,
//	                   images
//	model_name.go      finds the model in a body, or renames it
//	vendors.go         bodies of Gemini, Bedrock, Cohere and Ollama; models in their paths
//	json_values.go     reads members of JSON in place
//	pdf.go             the pages of a PDF
//	text_shape.go      tokens of a text without a vocabulary: letters, digits, scripts
//	likeness.go        models without a known vocabulary: which one their answers resemble
//	quantile.go        how much more than the estimate to reserve, by earlier answers
//	model_families.go  by model's name: vocabulary, tokens of an image or page, most output
//	counting.go        --count: which of input, output, max_tokens and cache a server counts
//	answer_usage.go    usage in a whole answer and in header fields: input, cached, output
//	watcher.go         usage in a stream or large answer while it passes through
//	scanner.go         finds the usage in JSON that comes in pieces
//	frames.go          usage in AWS's event stream
//
// Package tokens/tiktoken provides the vocabularies of OpenAI's models.
package tokens
