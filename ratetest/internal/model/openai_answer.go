package model

import (
	"encoding/base64"
	"encoding/binary"
	"iter"
	"math"
	"math/rand/v2"
)

// OpenAI is the form of OpenAI's answers: https://platform.openai.com/docs/api-reference.
type OpenAI struct{}

// OpenAIError is the error in an answer of OpenAI's form.
type OpenAIError struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

// InvalidRequest is the type of an error that is the client's.
const InvalidRequest = "invalid_request_error"

// OpenAI returns the error for a mistake in a request.
func (p *Problem) OpenAI() OpenAIError {
	e := OpenAIError{Message: p.Text, Type: InvalidRequest}
	if p.Param != "" {
		e.Param = &p.Param
	}
	code := p.Code
	if p.Missing {
		code = "missing_required_parameter"
	}
	if code != "" {
		e.Code = &code
	}
	return e
}

// usage returns the usage in a chat or embeddings answer.
func (OpenAI) usage(c *Answer) any {
	u := c.Used
	if c.API == "embeddings" {
		return m{"prompt_tokens": u.Input, "total_tokens": u.Input}
	}
	return m{
		"prompt_tokens": u.Input, "completion_tokens": u.Output, "total_tokens": u.Input + u.Output,
		"prompt_tokens_details": m{"cached_tokens": u.Cached, "audio_tokens": 0},
		"completion_tokens_details": m{"reasoning_tokens": u.Reasoning, "audio_tokens": 0, "accepted_prediction_tokens": 0,
			"rejected_prediction_tokens": 0},
	}
}

func (o OpenAI) Whole(c *Answer) any {
	switch c.API {
	case "embeddings":
		return o.embeddings(c)
	case "moderations":
		return o.moderations(c)
	case "responses":
		if c.Tool != nil {
			return o.response(c, "completed", []any{o.responseCall(c, "completed", c.arguments())})
		}
		return o.response(c, o.status(c), []any{o.message(c, o.status(c), c.Text())})
	}
	shown, finish := c.Text(), o.finish(c)
	choices := make([]any, c.Choices)
	for i := range choices {
		choices[i] = m{"index": i,
			"message":  m{"role": "assistant", "content": shown, "refusal": nil, "annotations": []any{}},
			"logprobs": nil, "finish_reason": finish}
		if c.Tool != nil {
			choices[i] = m{"index": i, "message": m{"role": "assistant", "content": nil, "refusal": nil, "annotations": []any{},
				"tool_calls": []any{o.chatCall(c, c.arguments())}}, "logprobs": nil, "finish_reason": finish}
		}
	}
	answer := m{"id": "chatcmpl-" + c.ID, "object": "chat.completion", "created": c.Created, "model": c.Model,
		"choices":      choices,
		"service_tier": "default", "system_fingerprint": "fp_ratetest"}
	if !c.NoUsage {
		answer["usage"] = o.usage(c)
	}
	return answer
}

func (o OpenAI) Events(c *Answer) iter.Seq[Event] {
	if c.API == "responses" {
		return o.responseEvents(c)
	}
	return func(yield func(Event) bool) {
		chunk := func(choices []any) m {
			data := m{"id": "chatcmpl-" + c.ID, "object": "chat.completion.chunk", "created": c.Created, "model": c.Model,
				"service_tier": "default", "system_fingerprint": "fp_ratetest", "choices": choices}
			if c.IncludeUsage {
				data["usage"] = nil
			}
			return data
		}
		choice := func(i int, delta m, finish any) []any {
			return []any{m{"index": i, "delta": delta, "logprobs": nil, "finish_reason": finish}}
		}
		for i := range c.Choices {
			if !yield(Event{Data: chunk(choice(int(i), o.opening(c), nil))}) {
				return
			}
		}
		for p := range c.chunks {
			if !yield(Event{Data: chunk(choice(p.choice, m{"content": p.text}, nil)), Done: p.done}) {
				return
			}
		}
		for i := range c.Choices {
			if c.Tool != nil && !yield(Event{Data: chunk(choice(int(i), o.more(c), nil)), Done: c.Used.Output}) {
				return
			}
		}
		for i := range c.Choices {
			last := i == c.Choices-1
			if !yield(Event{Data: chunk(choice(int(i), m{}, o.finish(c))), Done: c.Used.Output, Last: last}) {
				return
			}
		}
		if c.IncludeUsage && !c.NoUsage {
			data := chunk([]any{})
			data["usage"] = o.usage(c)
			if !yield(Event{Data: data, Done: c.Used.Output}) {
				return
			}
		}
		yield(Event{Data: "[DONE]", Done: c.Used.Output})
	}
}

func (OpenAI) status(c *Answer) string {
	if _, cut := c.Length(); cut {
		return "incomplete"
	}
	return "completed"
}

func (OpenAI) message(c *Answer, status, text string) any {
	content := []any{}
	if status != "in_progress" {
		content = []any{m{"type": "output_text", "text": text, "annotations": []any{}, "logprobs": []any{}}}
	}
	return m{"id": "msg_" + c.ID, "type": "message", "status": status, "role": "assistant", "content": content}
}

// response returns an answer of the Responses API, up to the present point.
func (o OpenAI) response(c *Answer, status string, items []any) m {
	r := m{
		"id": "resp_" + c.ID, "object": "response", "created_at": c.Created, "status": status, "error": nil,
		"incomplete_details": nil,
		"instructions":       nil, "max_output_tokens": nil, "metadata": m{}, "model": c.Model, "output": items,
		"parallel_tool_calls":  true,
		"previous_response_id": nil, "reasoning": m{"effort": nil, "summary": nil}, "service_tier": "default", "store": false,
		"temperature": 1.0, "text": m{"format": m{"type": "text"}}, "tool_choice": "auto", "tools": []any{}, "top_p": 1.0,
		"truncation": "disabled", "usage": nil, "user": nil,
	}
	if c.MaxOutput > 0 {
		r["max_output_tokens"] = c.MaxOutput
	}
	if status == "incomplete" {
		r["incomplete_details"] = m{"reason": "max_output_tokens"}
	}
	if status != "in_progress" && !c.NoUsage {
		u := c.Used
		r["usage"] = m{"input_tokens": u.Input, "input_tokens_details": m{"cached_tokens": u.Cached},
			"output_tokens": u.Output, "output_tokens_details": m{"reasoning_tokens": u.Reasoning},
			"total_tokens": u.Input + u.Output}
	}
	return r
}

func (o OpenAI) responseEvents(c *Answer) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		number := 0
		put := func(kind string, done int64, last bool, data m) bool {
			data["type"], data["sequence_number"] = kind, number
			number++
			return yield(Event{Name: kind, Data: data, Done: done, Last: last})
		}
		all, status, id := c.Text(), o.status(c), "msg_"+c.ID
		part := func(text string) m {
			return m{"type": "output_text", "text": text, "annotations": []any{}, "logprobs": []any{}}
		}
		at := func(more m) m {
			more["item_id"], more["output_index"], more["content_index"] = id, 0, 0
			return more
		}
		if !put("response.created", 0, false, m{"response": o.response(c, "in_progress", []any{})}) ||
			!put("response.in_progress", 0, false, m{"response": o.response(c, "in_progress", []any{})}) {
			return
		}
		if c.Tool != nil {
			_ = o.responseCallEvents(c, put)
			return
		}
		if !put("response.output_item.added", 0, false, m{"output_index": 0, "item": o.message(c, "in_progress", "")}) ||
			!put("response.content_part.added", 0, false, at(m{"part": part("")})) {
			return
		}
		for p := range c.chunks {
			if !put("response.output_text.delta", p.done, false, at(m{"delta": p.text, "logprobs": []any{}})) {
				return
			}
		}
		end := c.Used.Output
		_ = put("response.output_text.done", end, false, at(m{"text": all, "logprobs": []any{}})) &&
			put("response.content_part.done", end, false, at(m{"part": part(all)})) &&
			put("response.output_item.done", end, false, m{"output_index": 0, "item": o.message(c, status, all)}) &&
			put("response."+status, end, true, m{"response": o.response(c, status, []any{o.message(c, status, all)})})
	}
}

// vector returns a vector of length 1.
func vector(rng *rand.Rand, dimensions int) []float32 {
	v := make([]float32, dimensions)
	length := 0.0
	for k := range v {
		x := rng.NormFloat64()
		v[k] = float32(x)
		length += x * x
	}
	for k := range v {
		v[k] = float32(float64(v[k]) / math.Sqrt(length))
	}
	return v
}

// embeddings returns vectors that depend on the request's number alone.
func (o OpenAI) embeddings(c *Answer) any {
	rng := rand.New(rand.NewPCG(c.N, 1))
	data := make([]any, c.Inputs)
	for i := range data {
		v := vector(rng, c.Dimensions)
		var embedding any = v
		if c.Base64 {
			raw := make([]byte, 0, 4*len(v))
			for _, x := range v {
				raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(x))
			}
			embedding = base64.StdEncoding.EncodeToString(raw)
		}
		data[i] = m{"object": "embedding", "index": i, "embedding": embedding}
	}
	answer := m{"object": "list", "data": data, "model": c.Model}
	if !c.NoUsage {
		answer["usage"] = o.usage(c)
	}
	return answer
}

// moderationCategories are the categories of the omni models.
var moderationCategories = []string{"harassment", "harassment/threatening", "hate", "hate/threatening", "illicit",
	"illicit/violent", "self-harm",
	"self-harm/instructions", "self-harm/intent", "sexual", "sexual/minors", "violence", "violence/graphic"}

// moderations flags nothing. Such an answer has no usage: it is free.
func (OpenAI) moderations(c *Answer) any {
	results := make([]any, c.Inputs)
	for i := range results {
		flags, scores, applied := m{}, m{}, m{}
		for _, name := range moderationCategories {
			flags[name], scores[name], applied[name] = false, 1e-6, []string{"text"}
		}
		results[i] = m{"flagged": false, "categories": flags, "category_scores": scores,
			"category_applied_input_types": applied}
	}
	return m{"id": "modr-" + c.ID, "model": c.Model, "results": results}
}
