// Package model makes up the answers of language models, in the formats of their APIs. The package
// reads the body of a request, and writes an answer whole or as a stream of events. The servers of
// ratetest/llm and ratetest/service both use package model, so that each format is written only
// once. Package model knows no limits, keys, clocks or connections. Its values are not safe for
// concurrent use.
//
// # Files
//
//	model.go             Answer: the facts that an answer shows
//	ask.go               Ask: the reader of request bodies
//	output_bounds.go     published models, and the bounds on numbers in requests
//	tools.go             calls of tools
//	schema_example.go    values that fit a JSON schema
//	openai_answer.go     the form of OpenAI's answers
//	anthropic_answer.go  the form of Anthropic's answers
//	gemini.go            the form of the Gemini API's answers
//	other_answers.go     forms that differ little from OpenAI's
package model
