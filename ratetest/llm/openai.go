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

// openAI is the language of OpenAI's API: https://platform.openai.com/docs/api-reference. Its
// fields and errors are from /docs/guides/rate-limits and /docs/guides/error-codes.
type openAI struct{ model.OpenAI }

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

func (openAI) refusal(p *problem, _ string) (int, any) {
	status, e := 0, model.OpenAIError{Message: p.Text, Type: model.InvalidRequest}
	code := func(s string) { e.Code = &s }
	switch p.kind {
	case badRequest:
		status, e = http.StatusBadRequest, p.OpenAI()
	case badKey:
		status = http.StatusUnauthorized
		if e.Message = "Incorrect API key provided."; p.Missing {
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
	case notThere:
		status = http.StatusNotFound
	case conflict:
		status = http.StatusConflict
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

func (o openAI) broken(c *call) model.Event {
	if c.API == "responses" {
		return model.Event{Name: "error",
			Data: m{"type": "error", "sequence_number": 999, "code": "server_error", "message": openAIFailure, "param": nil}}
	}
	_, body := o.refusal(&problem{kind: serverFailed}, c.ID)
	return model.Event{Data: body}
}
