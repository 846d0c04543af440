package format

import (
	"crypto/sha256"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/paceline-go/paceline/internal/app/run/meter"
	"github.com/paceline-go/paceline/provider"
)

type openAIResult struct {
	ID       string          `json:"id"`
	CustomID string          `json:"custom_id"`
	Response *openAIResponse `json:"response"`
	Error    *openAIProblem  `json:"error"`
	additions
}

type openAIResponse struct {
	Status    int             `json:"status_code"`
	RequestID string          `json:"request_id"`
	Body      json.RawMessage `json:"body"`
}

type openAIProblem struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

type anthropicResult struct {
	CustomID string           `json:"custom_id"`
	Result   anthropicOutcome `json:"result"`
	additions
	Skipped string `json:"skipped,omitempty"` // by paceline, if the line of the input was no request
}

type anthropicOutcome struct {
	Type    string          `json:"type"` // succeeded, errored, expired, canceled
	Message json.RawMessage `json:"message,omitempty"`
	Error   json.RawMessage `json:"error,omitempty"`
}

// additions are members of paceline, for which the providers' formats have no place.
type additions struct {
	Hidden int             `json:"hidden,omitempty"` // see Result.Hidden
	Digest Digest          `json:"request_digest,omitempty"`
	Repeat bool            `json:"possible_repeat,omitempty"`
	Late   bool            `json:"late,omitempty"` // see Result.Late
	Course *batchCourse    `json:"paceline,omitempty"`
	Partly *provider.Parts `json:"partly,omitempty"`
}

// batchCourse is how a request of a batch went. Its members are those of Result.
type batchCourse struct {
	State     string           `json:"state"`
	Attempts  int              `json:"attempts"`
	WaitedMS  float64          `json:"waited_ms"`
	LatencyMS float64          `json:"latency_ms,omitempty"`
	WaitedFor map[string]int64 `json:"waited_for_ms,omitempty"`
	Key       string           `json:"key,omitempty"`
	At        string           `json:"at,omitempty"`
	Refused   int              `json:"refused,omitempty"`
	RefusedAt []string         `json:"refused_at,omitempty"`
	Ceiling   float64          `json:"ceiling_sustained,omitempty"`
}

func additionsOf(r *Result) additions {
	return additions{r.Hidden, r.Digest, r.PossibleRepeat, r.Late, &batchCourse{r.State, r.Attempts, r.WaitedMS, r.LatencyMS,
		r.WaitedFor, r.Key, r.At, r.Refused, r.RefusedAt, r.Ceiling}, r.Partly}
}

func (l *LLM) Start() string {
	return [...]string{`{"id":"batch_req_`, `{"custom_id":"`}[l.c.Provider]
}

func (l *LLM) DeadSuffix() string { return ".errors.jsonl" }

func (l *LLM) Line(b []byte, r *Result) []byte {
	body := bodyOf(r)
	served := r.State == "done" && r.Status != 0
	var v any
	switch l.c.Provider {
	case OpenAI:
		// The same request has the same id in every run, so that two files of results can be
		// compared.
		sum := sha256.Sum256([]byte(r.ID))
		o := openAIResult{ID: BatchID(sum[:]), CustomID: r.ID, additions: additionsOf(r)}
		switch {
		case r.State == "expired": // also after a refusal
			o.Error = &openAIProblem{"batch_expired", r.Error}
		case r.State == "cancelled": // of a backlog
			o.Error = &openAIProblem{"batch_cancelled", "it was cancelled before it was sent"}
		case served || r.Status >= http.StatusMultipleChoices:
			o.Response = &openAIResponse{r.Status, r.Headers["x-request-id"], body}
		default:
			o.Error = &openAIProblem{"no_answer", r.Error}
			if r.Class != DeadOutage.String() {
				o.Error.Code = r.Class
			}
		}
		v = o
	case Anthropic:
		o := anthropicResult{CustomID: r.ID, Result: anthropicOutcome{Type: "errored"}, additions: additionsOf(r)}
		switch {
		case served:
			o.Result = anthropicOutcome{Type: "succeeded", Message: body}
		case r.State == "expired":
			o.Result.Type = "expired"
		case r.State == "cancelled": // of a backlog
			o.Result.Type = "canceled"
		case r.Status >= http.StatusBadRequest && body[0] == '{':
			o.Result.Error = body
		default:
			kind, text := "api_error", r.Error
			if r.Class == DeadNoModel.String() {
				kind, text = "not_found_error", "model: "+text // in the words of Anthropic's own API
			}
			if r.Class == DeadLength.String() {
				kind = r.Class
			}
			o.Result.Error, _ = json.Marshal(map[string]any{"type": "error",
				"error": map[string]string{"type": kind, "message": text}})
		}
		v = o
	}
	return append(b, LineOf(v)...) // lineOf cannot fail: v has only strings, numbers and valid JSON
}

// bodyOf returns the body of an answer unchanged if it is JSON, and otherwise as a JSON string.
func bodyOf(r *Result) json.RawMessage {
	text := string(r.BodyBase64)
	if r.Body != nil {
		text = *r.Body
	}
	if json.Valid([]byte(text)) { // its strings may still hold bytes that are not UTF-8
		return json.RawMessage(strings.ToValidUTF8(text, "\ufffd"))
	}
	quoted, _ := json.Marshal(text)
	return quoted
}

func (l *LLM) Entry(line []byte, isDead bool) (Entry, bool) {
	e := Entry{State: "dead"}
	var body json.RawMessage
	switch l.c.Provider {
	case OpenAI:
		var v struct {
			ID       string          `json:"id"`
			CustomID string          `json:"custom_id"`
			Response *openAIResponse `json:"response"`
			Error    *openAIProblem  `json:"error"`
			Digest   Digest          `json:"request_digest"`
		}
		if json.Unmarshal(line, &v) != nil || v.ID == "" || v.Response == nil && v.Error == nil {
			return e, false
		}
		if v.Error != nil && v.Error.Code == skippedCode {
			return skippedEntry(v.ID), true
		}
		if v.CustomID == "" {
			return e, false
		}
		e.ID, e.Digest = v.CustomID, v.Digest
		if v.Response != nil {
			if e.Status = v.Response.Status; SaysNoModel(e.Status, v.Response.Body) {
				e.Class = DeadNoModel.String()
			}
		} else if e.Class = v.Error.Code; e.Class == "batch_expired" {
			e.Class = DeadExpired.String()
		}
		if v.Response != nil && v.Response.Status < http.StatusMultipleChoices && !isDead {
			e.State, body = "done", v.Response.Body
		}
	case Anthropic:
		var v anthropicResult
		if json.Unmarshal(line, &v) != nil || v.CustomID == "" && v.Skipped == "" || v.Result.Type == "" {
			return e, false
		}
		if v.Skipped != "" {
			return skippedEntry(v.Skipped), true
		}
		e.ID, e.Digest = v.CustomID, v.Digest
		if v.Result.Type == "succeeded" && !isDead {
			e.State, body = "done", v.Result.Message
		}
		e.Class = v.Result.class()
	}
	if e.Body = body; meter.IsCut(body) {
		e.Finish = meter.Length
	}
	return e, true
}

// class returns the class of a dead letter with this outcome. An api_error counts as an outage,
// since it is also written if no answer came.
func (o *anthropicOutcome) class() string {
	if o.Type == "expired" {
		return DeadExpired.String()
	}
	var e struct {
		Error struct {
			Type string `json:"type"`
		} `json:"error"`
	}
	_ = json.Unmarshal(o.Error, &e) // the server may have answered anything; then the type is empty
	switch e.Error.Type {
	case "not_found_error":
		if SaysNoModel(http.StatusNotFound, o.Error) {
			return DeadNoModel.String()
		}
		return DeadInvalid.String()
	case "invalid_request_error", "request_too_large":
		return DeadInvalid.String()
	case "authentication_error", "permission_error", "billing_error":
		return DeadRefused.String()
	case DeadLength.String(): // of a run, and not of Anthropic
		return DeadLength.String()
	case "rate_limit_error":
		return DeadLimited.String()
	}
	return DeadOutage.String()
}

// OutputOf reads the tokens of output that an answer of any of the APIs reports.
func OutputOf(body json.RawMessage) (tokens int64, ok bool) {
	var u struct {
		Usage struct {
			Chat  *int64 `json:"completion_tokens"`
			Other *int64 `json:"output_tokens"`
		} `json:"usage"`
	}
	if body == nil || json.Unmarshal(body, &u) != nil {
		return 0, false
	}
	for _, n := range []*int64{u.Usage.Chat, u.Usage.Other} {
		if n != nil && *n >= 0 {
			return *n, true
		}
	}
	return 0, false
}
