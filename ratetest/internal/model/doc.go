// Package model makes up the answers of language models, in the formats of their APIs. The package
// reads the body of a request, and writes an answer whole or as a stream of events. The servers of
// ratetest/llm and ratetest/service both use package model, so that each format is written only
// once. Package model knows no limits, keys, clocks or connections. Its values are not safe for
// concurrent use.
//
// # Files
//
//	model.go             the facts that an answer shows: text, usage, reason of its end
//	ask.go               reads a request's body: messages, tools, max_tokens; its mistakes
//	output_bounds.go     published models, and the bounds on numbers in requests
//	tools.go             calls of tools that a model makes up
//	schema_example.go    structured output: values that fit a JSON schema
//	openai_answer.go     OpenAI's answers: chat, responses, embeddings; chunks of a stream, usage
//	                     in it
//	anthropic_answer.go  Anthropic's answers, and the events of a stream
//	gemini.go            Gemini's answers, whole and as a stream
//	other_answers.go     answers of Groq, Azure OpenAI and Mistral, which are nearly OpenAI's
package model
