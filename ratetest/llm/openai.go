package llm

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/paceline-go/paceline/ratetest/internal/host"
)

// openAI is the language of OpenAI's API: https://platform.openai.com/docs/api-reference. Its
// fields and errors are from /docs/guides/rate-limits and /docs/guides/error-codes.
type openAI struct{}

func (openAI) api(path string) string {
	switch path {
	case "/v1/chat/completions":
		return "chat"
	case "/v1/responses":
		return "responses"
	case "/v1/embeddings":
		return "embeddings"
	case "/v1/moderations":
		return "moderations"
	}
	return ""
}

func (openAI) key(h http.Header) string {
	scheme, key, _ := strings.Cut(h.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(key)
}

func (openAI) needs(http.Header) *problem { return nil }

const openAIOrganization = "org-ratetest"

func (openAI) belongs(h http.Header, organization string) {
	belongs(h, "Openai-Organization", organization)
}

func (openAI) identify(h http.Header, id string) {
	h.Set("X-Request-Id", "req_"+strings.ToLower(id))
	h.Set("Openai-Organization", openAIOrganization)
	h.Set("Openai-Version", "2020-10-01")
}

func (openAI) limits(h http.Header, v [families]view, _ time.Time) {
	for _, field := range []struct {
		name string
		view
	}{
		{"Requests", scarcer(v[requests], v[requestsDay])},
		{"Tokens", scarcer(v[total], v[totalDay])},
		{"Input-Tokens", v[input]},
		{"Output-Tokens", v[output]},
	} {
		if !field.there {
			continue
		}
		h.Set("X-Ratelimit-Limit-"+field.name, strconv.FormatInt(field.limit, 10))
		h.Set("X-Ratelimit-Remaining-"+field.name, strconv.FormatInt(field.left, 10))
		h.Set("X-Ratelimit-Reset-"+field.name, host.RoundUp(field.reset, time.Millisecond).String())
	}
}

func (openAI) retryAfter(h http.Header, d time.Duration) {
	h.Set("Retry-After-Ms", strconv.FormatInt(host.RoundUp(d, time.Millisecond).Milliseconds(), 10))
	h.Set("Retry-After", strconv.FormatInt(int64(host.RoundUp(d, time.Second)/time.Second), 10))
}

type openAIError struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

func (openAI) refusal(p *problem, _ string) (int, any) {
	status, e := 0, openAIError{Message: p.text, Type: "invalid_request_error"}
	code := func(s string) { e.Code = &s }
	switch p.kind {
	case badRequest:
		status = http.StatusBadRequest
		if p.param != "" {
			e.Param = &p.param
		}
		if p.code != "" {
			code(p.code)
		}
		if p.missing {
			code("missing_required_parameter")
		}
	case badKey:
		status = http.StatusUnauthorized
		if e.Message = "Incorrect API key provided."; p.missing {
			e.Message = "You didn't provide an API key: it goes into the field Authorization, after the word Bearer."
		}
		code("invalid_api_key")
	case noModel:
		status = http.StatusNotFound
		e.Message = fmt.Sprintf("The model `%.200s` does not exist or you do not have access to it.", p.model)
		code("model_not_found")
	case noPath:
		status = http.StatusNotFound
		code("unknown_url")
	case badMethod:
		status = http.StatusMethodNotAllowed
		code("method_not_supported")
	case badMedia:
		status = http.StatusUnsupportedMediaType
		code("unsupported_content_type")
	case tooLong:
		status = http.StatusRequestEntityTooLarge
	case rateLimited:
		status = http.StatusTooManyRequests
		code("rate_limit_exceeded")
		if e.Type = "tokens"; p.by == requests || p.by == requestsDay || p.by == requestsSecond {
			e.Type = "requests"
		}
		e.Message = p.openAI()
	case noCredit:
		status = http.StatusTooManyRequests
		e.Message, e.Type = "You exceeded your current quota, please check your plan and billing details.",
			"insufficient_quota"
		code("insufficient_quota")
	case overloaded:
		status = http.StatusServiceUnavailable
		e.Message, e.Type = "That model is currently overloaded with other requests. You can retry your request.",
			"server_error"
	case closing:
		status = http.StatusServiceUnavailable
		e.Message, e.Type = "The server is closing.", "server_error"
	default:
		status = http.StatusInternalServerError
		e.Message, e.Type = openAIFailure, "server_error"
	}
	return status, map[string]any{"error": e}
}

const openAIFailure = "The server had an error while processing your request."

// openAI returns the message of a refusal. Clients read figures from it.
func (p *problem) openAI() string {
	if p.injected {
		return fmt.Sprintf("Rate limit reached for %s in organization %s. Please try again later.", p.model,
			openAIOrganization)
	}
	w := words[p.by]
	on := w.long
	if p.by < requestsDay && p.window != time.Minute {
		on = strings.TrimSuffix(on, "min") + p.window.String()
	}
	if p.never {
		return fmt.Sprintf("Request too large for %s in organization %s on %s (%s): Limit %d, Requested %d. The input or "+
			"output tokens must be reduced in order to run successfully.",
			p.model, openAIOrganization, on, w.short, p.limit, p.asked)
	}
	return fmt.Sprintf("Rate limit reached for %s in organization %s on %s (%s): Limit %d, Used %d, Requested %d. "+
		"Please try again in %v.",
		p.model, openAIOrganization, on, w.short, p.limit, p.used, p.asked, host.RoundUp(p.wait, time.Millisecond))
}

type m = map[string]any

// usage returns the usage in a chat or embeddings answer.
func (openAI) usage(c *call) any {
	u := c.used
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

func (o openAI) whole(c *call) any {
	switch c.API {
	case "embeddings":
		return o.embeddings(c)
	case "moderations":
		return o.moderations(c)
	case "responses":
		if c.tool != nil {
			return o.response(c, "completed", []any{o.responseCall(c, "completed", c.arguments())})
		}
		return o.response(c, o.status(c), []any{o.message(c, o.status(c), text(0, first(c.length())))})
	}
	shown, finish := first(c.length()), o.finish(c)
	choices := make([]any, c.Choices)
	for i := range choices {
		choices[i] = m{"index": i,
			"message":  m{"role": "assistant", "content": text(0, shown), "refusal": nil, "annotations": []any{}},
			"logprobs": nil, "finish_reason": finish}
		if c.tool != nil {
			choices[i] = m{"index": i, "message": m{"role": "assistant", "content": nil, "refusal": nil, "annotations": []any{},
				"tool_calls": []any{o.chatCall(c, c.arguments())}}, "logprobs": nil, "finish_reason": finish}
		}
	}
	answer := m{"id": "chatcmpl-" + c.id, "object": "chat.completion", "created": c.created, "model": c.Model,
		"choices":      choices,
		"service_tier": "default", "system_fingerprint": "fp_ratetest"}
	if !c.noUsage {
		answer["usage"] = o.usage(c)
	}
	return answer
}

func first(tokens int64, _ bool) int64 { return tokens }

func (o openAI) events(c *call) iter.Seq[event] {
	if c.API == "responses" {
		return o.responseEvents(c)
	}
	return func(yield func(event) bool) {
		chunk := func(choices []any) m {
			data := m{"id": "chatcmpl-" + c.id, "object": "chat.completion.chunk", "created": c.created, "model": c.Model,
				"service_tier": "default", "system_fingerprint": "fp_ratetest", "choices": choices}
			if c.usage {
				data["usage"] = nil
			}
			return data
		}
		choice := func(i int, delta m, finish any) []any {
			return []any{m{"index": i, "delta": delta, "logprobs": nil, "finish_reason": finish}}
		}
		for i := range c.Choices {
			if !yield(event{data: chunk(choice(int(i), o.opening(c), nil))}) {
				return
			}
		}
		for p := range c.chunks {
			if !yield(event{data: chunk(choice(p.choice, m{"content": text(p.from, p.n)}, nil)), done: p.done}) {
				return
			}
		}
		for i := range c.Choices {
			if c.tool != nil && !yield(event{data: chunk(choice(int(i), o.more(c), nil)), done: c.used.Output}) {
				return
			}
		}
		for i := range c.Choices {
			last := i == c.Choices-1
			if !yield(event{data: chunk(choice(int(i), m{}, o.finish(c))), done: c.used.Output, last: last}) {
				return
			}
		}
		if c.usage && !c.noUsage {
			data := chunk([]any{})
			data["usage"] = o.usage(c)
			if !yield(event{data: data, done: c.used.Output}) {
				return
			}
		}
		yield(event{data: "[DONE]", done: c.used.Output})
	}
}

func (o openAI) broken(c *call) event {
	if c.API == "responses" {
		return event{name: "error",
			data: m{"type": "error", "sequence_number": 999, "code": "server_error", "message": openAIFailure, "param": nil}}
	}
	_, body := o.refusal(&problem{kind: serverFailed}, c.id)
	return event{data: body}
}

func (openAI) status(c *call) string {
	if _, cut := c.length(); cut {
		return "incomplete"
	}
	return "completed"
}

func (openAI) message(c *call, status, text string) any {
	content := []any{}
	if status != "in_progress" {
		content = []any{m{"type": "output_text", "text": text, "annotations": []any{}, "logprobs": []any{}}}
	}
	return m{"id": "msg_" + c.id, "type": "message", "status": status, "role": "assistant", "content": content}
}

// response returns an answer of the Responses API, up to the present point.
func (o openAI) response(c *call, status string, items []any) m {
	r := m{
		"id": "resp_" + c.id, "object": "response", "created_at": c.created, "status": status, "error": nil,
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
	if status != "in_progress" && !c.noUsage {
		u := c.used
		r["usage"] = m{"input_tokens": u.Input, "input_tokens_details": m{"cached_tokens": u.Cached},
			"output_tokens": u.Output, "output_tokens_details": m{"reasoning_tokens": u.Reasoning},
			"total_tokens": u.Input + u.Output}
	}
	return r
}

func (o openAI) responseEvents(c *call) iter.Seq[event] {
	return func(yield func(event) bool) {
		number := 0
		put := func(kind string, done int64, last bool, data m) bool {
			data["type"], data["sequence_number"] = kind, number
			number++
			return yield(event{name: kind, data: data, done: done, last: last})
		}
		shown, _ := c.length()
		all, status, id := text(0, shown), o.status(c), "msg_"+c.id
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
		if c.tool != nil {
			_ = o.responseCallEvents(c, put)
			return
		}
		if !put("response.output_item.added", 0, false, m{"output_index": 0, "item": o.message(c, "in_progress", "")}) ||
			!put("response.content_part.added", 0, false, at(m{"part": part("")})) {
			return
		}
		for p := range c.chunks {
			if !put("response.output_text.delta", p.done, false, at(m{"delta": text(p.from, p.n), "logprobs": []any{}})) {
				return
			}
		}
		end := c.used.Output
		_ = put("response.output_text.done", end, false, at(m{"text": all, "logprobs": []any{}})) &&
			put("response.content_part.done", end, false, at(m{"part": part(all)})) &&
			put("response.output_item.done", end, false, m{"output_index": 0, "item": o.message(c, status, all)}) &&
			put("response."+status, end, true, m{"response": o.response(c, status, []any{o.message(c, status, all)})})
	}
}

// embeddings returns vectors that depend on the request's number alone.
func (o openAI) embeddings(c *call) any {
	rng := rand.New(rand.NewPCG(c.n, 1))
	data := make([]any, c.inputs)
	for i := range data {
		v := make([]float32, c.dimensions)
		length := 0.0
		for k := range v {
			x := rng.NormFloat64()
			v[k] = float32(x)
			length += x * x
		}
		for k := range v {
			v[k] = float32(float64(v[k]) / math.Sqrt(length))
		}
		var embedding any = v
		if c.base64 {
			raw := make([]byte, 0, 4*len(v))
			for _, x := range v {
				raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(x))
			}
			embedding = base64.StdEncoding.EncodeToString(raw)
		}
		data[i] = m{"object": "embedding", "index": i, "embedding": embedding}
	}
	answer := m{"object": "list", "data": data, "model": c.Model}
	if !c.noUsage {
		answer["usage"] = o.usage(c)
	}
	return answer
}

// moderationCategories are the categories of the omni models.
var moderationCategories = []string{"harassment", "harassment/threatening", "hate", "hate/threatening", "illicit",
	"illicit/violent", "self-harm",
	"self-harm/instructions", "self-harm/intent", "sexual", "sexual/minors", "violence", "violence/graphic"}

// moderations flags nothing. Such an answer has no usage: it is free.
func (openAI) moderations(c *call) any {
	results := make([]any, c.inputs)
	for i := range results {
		flags, scores, applied := m{}, m{}, m{}
		for _, name := range moderationCategories {
			flags[name], scores[name], applied[name] = false, 1e-6, []string{"text"}
		}
		results[i] = m{"flagged": false, "categories": flags, "category_scores": scores,
			"category_applied_input_types": applied}
	}
	return m{"id": "modr-" + c.id, "model": c.Model, "results": results}
}
