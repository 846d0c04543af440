package llm

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/paceline-go/paceline/ratetest/internal/host"
	"github.com/paceline-go/paceline/ratetest/internal/model"
)

// anthropic is the language of Anthropic's Messages API:
// https://docs.anthropic.com/en/api/messages, /messages-streaming, /errors and /rate-limits.
type anthropic struct{ model.Anthropic }

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
		return wrong(badRequest, "anthropic-version: header is required")
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
	status, kind, text := http.StatusBadRequest, "invalid_request_error", p.Text
	switch p.kind {
	case badRequest:
	case badKey:
		status, kind, text = http.StatusUnauthorized, "authentication_error", "invalid x-api-key"
		if p.Missing {
			text = "x-api-key header is required"
		}
	case noModel:
		status, kind, text = http.StatusNotFound, "not_found_error", fmt.Sprintf("model: %.200s", p.model)
	case noPath, notThere:
		status, kind = http.StatusNotFound, "not_found_error"
	case conflict:
		status = http.StatusConflict
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

func (a anthropic) broken(c *call) model.Event {
	_, body := a.refusal(&problem{kind: overloaded}, c.ID)
	return model.Event{Name: "error", Data: body}
}
