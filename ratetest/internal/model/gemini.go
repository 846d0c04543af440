package model

import (
	"encoding/json"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
)

// Gemini is the form of the Gemini API's answers: https://ai.google.dev/api.
type Gemini struct{}

// The APIs of Gemini, by the word after the colon in their path.
const (
	geminiWhole      = "generateContent"
	geminiStream     = "streamGenerateContent"
	geminiCount      = "countTokens"
	geminiEmbed      = "embedContent"
	geminiEmbedBatch = "batchEmbedContents"
)

type geminiConfig struct {
	Candidates int64           `json:"candidateCount"`
	Most       int64           `json:"maxOutputTokens"`
	Media      string          `json:"responseMimeType"`
	Schema     json.RawMessage `json:"responseSchema"`
	JSONSchema json.RawMessage `json:"responseJsonSchema"`
}

// ReadGemini reads the body of a request to a model of the Gemini API. The path has the model and
// the API.
func ReadGemini(api, name string, body []byte) (Ask, *Problem) {
	a := Ask{API: api, Model: name, Choices: 1, Inputs: 1, Dimensions: 768, IncludeUsage: true,
		Stream: api == geminiStream}
	if strings.HasPrefix(name, "gemini-embedding") {
		a.Dimensions = mostDimensions
	}
	f, p := readForm(body)
	if p != nil {
		return a, p
	}
	var config geminiConfig
	var tools []struct {
		Functions []offered `json:"functionDeclarations"`
	}
	var choice struct {
		Calling struct {
			Mode  string
			Names []string `json:"allowedFunctionNames"`
		} `json:"functionCallingConfig"`
	}
	f.read("generationConfig", &config)
	f.read("tools", &tools)
	f.read("toolConfig", &choice)
	if p := a.geminiEmbedding(f); p != nil {
		return a, p
	}
	if f.wrong != "" {
		return a, badField(f.wrong, "Invalid value at '%s': %.50s", f.wrong, f.fields[f.wrong])
	}
	if p := a.geminiBounds(&config); p != nil {
		return a, p
	}
	if config.Media == "application/json" {
		schema := config.JSONSchema
		if schema == nil {
			schema = config.Schema
		}
		if a.Value = Encode(example(schema, true, f.draw())); schema == nil {
			a.Value = anyObject
		}
	}
	for _, t := range tools {
		for _, o := range t.Functions {
			named := len(choice.Calling.Names) == 0 || slices.Contains(choice.Calling.Names, o.Name)
			if a.Tool == nil && named && choice.Calling.Mode == "ANY" {
				a.Tool = o.called()
			}
		}
	}
	return a, a.geminiContents(f)
}

// geminiBounds reads the numbers that have a maximum.
func (a *Ask) geminiBounds(c *geminiConfig) *Problem {
	const mostCandidates = 8
	if c.Candidates < 0 || c.Candidates > mostCandidates {
		return badField("generationConfig.candidateCount", "* GenerateContentRequest.generation_config.candidate_count: "+
			"candidate_count must be in the range of [1, %d]", mostCandidates)
	}
	if c.Most < 0 || c.Most > MostOutput {
		return badField("generationConfig.maxOutputTokens",
			"* GenerateContentRequest.generation_config.max_output_tokens: max_output_tokens must be positive.")
	}
	a.Choices, a.MaxOutput = max(c.Candidates, 1), c.Most
	return nil
}

// geminiEmbedding reads the options of embeddings.
func (a *Ask) geminiEmbedding(f *form) *Problem {
	var dimensions int64
	if a.API == geminiEmbedBatch {
		var requests []struct {
			Dimensions int64 `json:"outputDimensionality"`
		}
		f.read("requests", &requests)
		if len(requests) == 0 || len(requests) > mostInputs {
			return badField("requests", "* BatchEmbedContentsRequest.requests: at most %d requests can be in one batch",
				mostInputs)
		}
		a.Inputs, dimensions = len(requests), requests[0].Dimensions
	} else {
		f.read("outputDimensionality", &dimensions)
	}
	if dimensions < 0 || dimensions > mostDimensions {
		return badField("outputDimensionality", "* output_dimensionality must be between 1 and %d", mostDimensions)
	}
	if dimensions > 0 {
		a.Dimensions = int(dimensions)
	}
	return nil
}

// geminiContents measures the content for the model.
func (a *Ask) geminiContents(f *form) *Problem {
	var r reader
	found := a.API == geminiEmbedBatch
	for _, name := range []string{"contents", "content", "generateContentRequest", "requests", "systemInstruction",
		"tools"} {
		var v any
		if !f.read(name, &v) {
			continue
		}
		if list, ok := v.([]any); name == "contents" && ok {
			for _, turn := range list {
				turn, _ := turn.(map[string]any)
				if role := turn["role"]; role != nil && role != "user" && role != "model" && role != "function" {
					return badField("contents", "Please use a valid role: user, model.")
				}
			}
			found = found || len(list) > 0
		}
		found = found || name == "content" || name == "generateContentRequest"
		r.read(v)
	}
	if !found {
		return badField("contents", "* GenerateContentRequest.contents: contents is not specified\n")
	}
	a.Estimate = max(1, (r.characters+3)/4+r.media*perMedium)
	return nil
}

// Whole implements Form.
func (g Gemini) Whole(c *Answer) any {
	rng := rand.New(rand.NewPCG(c.N, 1))
	switch c.API {
	case geminiCount:
		return m{"totalTokens": c.Used.Input, "promptTokensDetails": g.details(c.Used.Input)}
	case geminiEmbed:
		return m{"embedding": m{"values": vector(rng, c.Dimensions)}}
	case geminiEmbedBatch:
		all := make([]any, c.Inputs)
		for i := range all {
			all[i] = m{"values": vector(rng, c.Dimensions)}
		}
		return m{"embeddings": all}
	}
	candidates := make([]any, c.Choices)
	for i := range candidates {
		part := any(m{"text": c.Text()})
		if c.Tool != nil {
			part = g.call(c)
		}
		candidates[i] = g.candidate(i, []any{part}, g.reason(c))
	}
	return g.response(c, candidates, c.Used.Output)
}

func (Gemini) call(c *Answer) any {
	return m{"functionCall": m{"name": c.Tool.Name, "args": c.Tool.Arguments}}
}

func (Gemini) reason(c *Answer) string {
	if _, cut := c.Length(); cut && c.Tool == nil {
		return "MAX_TOKENS"
	}
	return "STOP"
}

func (Gemini) candidate(i int, parts []any, reason string) any {
	one := m{"content": m{"parts": parts, "role": "model"}, "index": i}
	if reason != "" {
		one["finishReason"] = reason
	}
	return one
}

func (Gemini) details(tokens int64) any {
	return []any{m{"modality": "TEXT", "tokenCount": tokens}}
}

// response returns an answer up to a number of output tokens.
func (g Gemini) response(c *Answer, candidates []any, output int64) m {
	r := m{"candidates": candidates, "modelVersion": c.Model, "responseId": c.ID}
	if c.NoUsage {
		return r
	}
	u := m{"promptTokenCount": c.Used.Input, "candidatesTokenCount": output - c.Used.Reasoning,
		"totalTokenCount": c.Used.Input + output, "promptTokensDetails": g.details(c.Used.Input)}
	if c.Used.Reasoning > 0 {
		u["thoughtsTokenCount"] = c.Used.Reasoning
	}
	if c.Used.Cached > 0 {
		u["cachedContentTokenCount"], u["cacheTokensDetails"] = c.Used.Cached, g.details(c.Used.Cached)
	}
	r["usageMetadata"] = u
	return r
}

// Events implements Form. Each event is a response with the next part of the text.
func (g Gemini) Events(c *Answer) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		for p := range c.chunks {
			one := g.candidate(p.choice, []any{m{"text": p.text}}, "")
			if !yield(Event{Data: g.response(c, []any{one}, p.done), Done: p.done}) {
				return
			}
		}
		last := make([]any, c.Choices)
		for i := range last {
			part := any(m{"text": ""})
			if c.Tool != nil {
				part = g.call(c)
			}
			last[i] = g.candidate(i, []any{part}, g.reason(c))
		}
		yield(Event{Data: g.response(c, last, c.Used.Output), Done: c.Used.Output, Last: true})
	}
}
