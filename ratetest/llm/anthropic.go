package llm

import (
	"fmt"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/paceline-go/paceline/ratetest/internal/host"
)

// anthropic is the language of Anthropic's Messages API:
// https://docs.anthropic.com/en/api/messages, /messages-streaming, /errors and /rate-limits.
type anthropic struct{}

func (anthropic) api(path string) string {
	if path == "/v1/messages" {
		return "messages"
	}
	return ""
}

func (anthropic) key(h http.Header) string {
	if key := h.Get("X-Api-Key"); key != "" {
		return key
	}
	return openAI{}.key(h) // Authorization: Bearer, for OAuth tokens
}

func (anthropic) needs(h http.Header) *problem {
	if h.Get("Anthropic-Version") == "" {
		return &problem{kind: badRequest, text: "anthropic-version: header is required"}
	}
	return nil
}

const anthropicOrganization = "00000000-0000-4000-8000-000000000000"

func (anthropic) belongs(h http.Header, organization string) {
	belongs(h, "Anthropic-Organization-Id", organization)
}

func (anthropic) identify(h http.Header, id string) {
	h.Set("Request-Id", "req_"+id)
	h.Set("Anthropic-Organization-Id", anthropicOrganization)
}

// limits writes the amounts left and the time until each limit is whole again. Tokens are rounded
// to the nearest thousand, as documented, so the figure may be more than there is.
func (anthropic) limits(h http.Header, v [families]view, now time.Time) {
	tokens := scarcer(v[total], v[totalDay])
	if !tokens.there && v[input].there && v[output].there { // both limits together
		tokens = view{true, v[input].limit + v[output].limit, v[input].left + v[output].left,
			max(v[input].reset, v[output].reset)}
	}
	for _, field := range []struct {
		name string
		view
	}{
		{"Requests", scarcer(v[requests], v[requestsDay])},
		{"Tokens", tokens},
		{"Input-Tokens", v[input]},
		{"Output-Tokens", v[output]},
	} {
		if !field.there {
			continue
		}
		left := field.left
		if field.name != "Requests" {
			left = min((left+500)/1000*1000, field.limit)
		}
		at := now.UTC().Add(field.reset)
		if field.reset > 0 && at.Nanosecond() > 0 {
			at = at.Truncate(time.Second).Add(time.Second)
		}
		h.Set("Anthropic-Ratelimit-"+field.name+"-Limit", strconv.FormatInt(field.limit, 10))
		h.Set("Anthropic-Ratelimit-"+field.name+"-Remaining", strconv.FormatInt(left, 10))
		h.Set("Anthropic-Ratelimit-"+field.name+"-Reset", at.Format(time.RFC3339))
	}
}

func (anthropic) retryAfter(h http.Header, d time.Duration) {
	h.Set("Retry-After", strconv.FormatInt(int64(host.RoundUp(d, time.Second)/time.Second), 10))
	h.Set("X-Should-Retry", "true")
}

// statusOverloaded is a status code of Anthropic alone.
const statusOverloaded = 529

func (anthropic) refusal(p *problem, id string) (int, any) {
	status, kind, text := http.StatusBadRequest, "invalid_request_error", p.text
	switch p.kind {
	case badRequest:
	case badKey:
		status, kind, text = http.StatusUnauthorized, "authentication_error", "invalid x-api-key"
		if p.missing {
			text = "x-api-key header is required"
		}
	case noModel:
		status, kind, text = http.StatusNotFound, "not_found_error", fmt.Sprintf("model: %.200s", p.model)
	case noPath:
		status, kind = http.StatusNotFound, "not_found_error"
	case badMethod:
		status = http.StatusMethodNotAllowed
	case badMedia:
		status = http.StatusUnsupportedMediaType
	case tooLong:
		status, kind = http.StatusRequestEntityTooLarge, "request_too_large"
	case rateLimited:
		status, kind, text = http.StatusTooManyRequests, "rate_limit_error", p.anthropic()
	case noCredit:
		text = "Your credit balance is too low to access the Anthropic API."
	case overloaded:
		status, kind, text = statusOverloaded, "overloaded_error", "Overloaded"
	case closing:
		status, kind, text = http.StatusServiceUnavailable, "api_error", "The server is closing"
	default:
		status, kind, text = http.StatusInternalServerError, "api_error", "Internal server error"
	}
	return status, m{"type": "error", "error": m{"type": kind, "message": text}, "request_id": "req_" + id}
}

// anthropic returns the message of a refusal.
func (p *problem) anthropic() string {
	if p.injected {
		return "Rate limited"
	}
	what := strings.ReplaceAll(words[p.by].long, "per min", "per minute")
	if p.by < requestsDay && p.window != time.Minute {
		what = strings.TrimSuffix(what, "minute") + p.window.String()
	}
	if p.by == requests || p.by == requestsDay {
		return fmt.Sprintf("This request would exceed the rate limit for your organization (%s) of %s %s.",
			anthropicOrganization, thousands(p.limit), what)
	}
	return fmt.Sprintf("This request would exceed the rate limit for your organization (%s) of %s %s. Please reduce the "+
		"prompt length or the maximum tokens requested, or try again later.",
		anthropicOrganization, thousands(p.limit), what)
}

// thousands writes a number with commas, such as 20,000.
func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// usage returns the usage. Its input excludes tokens read from the cache, as the provider's totals
// do.
func (anthropic) usage(c *call, output int64) m {
	u := c.used
	return m{
		"input_tokens": u.Input - u.Cached, "cache_creation_input_tokens": 0, "cache_read_input_tokens": u.Cached,
		"cache_creation": m{"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
		"output_tokens":  output, "service_tier": "standard",
	}
}

func (anthropic) stop(c *call) string {
	if c.tool != nil {
		return "tool_use"
	}
	if _, cut := c.length(); cut {
		return "max_tokens"
	}
	return "end_turn"
}

func (a anthropic) message(c *call, content []any, stop any, output int64) m {
	answer := m{"id": "msg_" + c.id, "type": "message", "role": "assistant", "model": c.Model, "content": content,
		"stop_reason":   stop,
		"stop_sequence": nil}
	if !c.noUsage {
		answer["usage"] = a.usage(c, output)
	}
	return answer
}

func (a anthropic) whole(c *call) any {
	if c.tool != nil {
		return a.message(c, []any{a.use(c, c.tool.arguments)}, a.stop(c), c.used.Output)
	}
	return a.message(c, []any{m{"type": "text", "text": text(0, first(c.length()))}}, a.stop(c), c.used.Output)
}

func (a anthropic) events(c *call) iter.Seq[event] {
	return func(yield func(event) bool) {
		put := func(kind string, done int64, last bool, data m) bool {
			data["type"] = kind
			return yield(event{name: kind, data: data, done: done, last: last})
		}
		block := m{"type": "text", "text": ""}
		if c.tool != nil {
			block = a.use(c, m{})
		}
		if !put("message_start", 0, false, m{"message": a.message(c, []any{}, nil, min(1, c.used.Output))}) ||
			!put("content_block_start", 0, false, m{"index": 0, "content_block": block}) ||
			!put("ping", 0, false, m{}) {
			return
		}
		if c.tool != nil && !put("content_block_delta", c.used.Output, false,
			m{"index": 0, "delta": m{"type": "input_json_delta", "partial_json": c.arguments()}}) {
			return
		}
		for p := range c.chunks {
			if !put("content_block_delta", p.done, false,
				m{"index": 0, "delta": m{"type": "text_delta", "text": text(p.from, p.n)}}) {
				return
			}
		}
		end := c.used.Output
		delta := m{"delta": m{"stop_reason": a.stop(c), "stop_sequence": nil}}
		if !c.noUsage {
			delta["usage"] = m{"output_tokens": end}
		}
		_ = put("content_block_stop", end, false, m{"index": 0}) &&
			put("message_delta", end, true, delta) &&
			put("message_stop", end, false, m{})
	}
}

func (a anthropic) broken(c *call) event {
	_, body := a.refusal(&problem{kind: overloaded}, c.id)
	return event{name: "error", data: body}
}
