package jobs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
)

// inlineTime is the time of a batch of Anthropic's.
const inlineTime = 24 * time.Hour

// anthropic answers /v1/messages/batches.
func (v *visit) anthropic(parts []string) {
	id := ""
	if len(parts) > 0 {
		id = parts[0]
	}
	switch ask := v.r.Method + strings.Repeat("/", len(parts)); {
	case ask == "POST":
		v.createInline()
	case ask == "GET":
		v.messageBatches()
	case ask == "GET/":
		v.messageBatch(v.s.Batch(v.c.Owner, id))
	case ask == "POST//" && parts[1] == "cancel":
		b, err := v.s.Cancel(v.c.Owner, id)
		if errors.Is(err, errEnded) { // it is said as it is
			err = nil
		}
		v.messageBatch(b, err)
	case ask == "GET//" && parts[1] == "results":
		v.results(id)
	case ask == "DELETE/":
		if err := v.s.RemoveBatch(v.c.Owner, id); err != nil {
			v.anthropicError(err)
			return
		}
		v.answer(http.StatusOK, m{"id": id, "type": "message_batch_deleted"})
	default:
		v.anthropicProblem(http.StatusNotFound, "not_found_error", "Not Found: %s %s", v.r.Method, v.c.Path)
	}
}

func (v *visit) anthropicProblem(status int, kind, text string, args ...any) {
	if status >= http.StatusInternalServerError {
		v.w.Header().Set("X-Should-Retry", "false")
	}
	v.answer(status, m{"type": "error", "error": m{"type": kind, "message": fmt.Sprintf(text, args...)}})
}

// anthropicError answers with an error of the Store.
func (v *visit) anthropicError(err error) {
	switch status := statusOf(err); {
	case status == http.StatusNotFound:
		v.anthropicProblem(status, "not_found_error", "There is no such batch.")
	case errors.Is(err, errGoesOn):
		v.anthropicProblem(http.StatusBadRequest, "invalid_request_error", "The batch is in progress: cancel it first.")
	case status == http.StatusRequestEntityTooLarge:
		v.anthropicProblem(status, "request_too_large", "The requests of a batch may have %d bytes.", mostInlineSize)
	case status == http.StatusTooManyRequests:
		v.anthropicProblem(status, "rate_limit_error", "%v", err)
	default:
		v.anthropicProblem(status, "api_error", "%v", err)
	}
}

// badRequest is a mistake of the client's.
type badRequest struct{ error }

// createInline makes a batch of the requests in the body, one after the other.
func (v *visit) createInline() {
	header := http.Header{}
	for _, name := range []string{"Anthropic-Version", "Anthropic-Beta"} {
		if values := v.r.Header.Values(name); len(values) > 0 {
			header[name] = values
		}
	}
	b, err := v.s.CreateInline(Batch{Owner: v.c.Owner, Form: format.Anthropic, Bare: v.bare, Header: header,
		Deadline: time.Now().Add(inlineTime)}, func(w io.Writer) error { return inlineRequests(v.r.Body, w) })
	if wrong, is := errors.AsType[*mistakeError](err); is {
		v.anthropicProblem(http.StatusBadRequest, "invalid_request_error", "requests.%d.%s", wrong.Line-1, wrong.Message)
		return
	}
	if bad, is := errors.AsType[badRequest](err); is {
		v.anthropicProblem(http.StatusBadRequest, "invalid_request_error", "%v", bad)
		return
	}
	v.messageBatch(b, err)
}

// inlineRequests writes the requests of a body as lines.
func inlineRequests(in io.Reader, w io.Writer) error {
	bad := func(text string, args ...any) error { return badRequest{fmt.Errorf(text, args...)} }
	d := json.NewDecoder(in)
	if err := expect(d, '{'); err != nil {
		return bad("the body is no object of JSON: %v", err)
	}
	total, seen := 0, map[format.Hash]bool{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return bad("the body is no whole JSON: %v", err)
		}
		if name != "requests" {
			var skipped json.RawMessage
			if err := d.Decode(&skipped); err != nil {
				return bad("%v: %v", name, err)
			}
			continue
		}
		if err := expect(d, '['); err != nil || total > 0 {
			return bad("requests: Input should be a valid list")
		}
		for d.More() {
			if err := inlineLine(d, w, total, seen, bad); err != nil {
				return err
			}
			if total++; total > mostInline {
				return bad("requests: List should have at most %d items", mostInline)
			}
		}
		if err := expect(d, ']'); err != nil {
			return bad("requests: %v", err)
		}
	}
	if err := expect(d, '}'); err != nil {
		return bad("the body is no whole JSON: %v", err)
	}
	if total == 0 {
		return bad("requests: List should have at least 1 item")
	}
	return nil
}

// expect reads a delimiter.
func expect(d *json.Decoder, want json.Delim) error {
	t, err := d.Token()
	if err == nil && t != want {
		err = fmt.Errorf("expected %v", want)
	}
	return err
}

// mostName is how many characters an id has at most.
const mostName = 64

// inlineLine writes one request.
func inlineLine(d *json.Decoder, w io.Writer, i int, seen map[format.Hash]bool, bad func(string, ...any) error) error {
	var one struct {
		ID     string          `json:"custom_id"`
		Params json.RawMessage `json:"params"`
	}
	if err := d.Decode(&one); err != nil {
		return bad("requests.%d: %v", i, err)
	}
	plain := strings.Trim(one.ID, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == ""
	switch id := format.HashOf(one.ID); {
	case one.ID == "" || len(one.ID) > mostName || !plain:
		return bad("requests.%d.custom_id: String should have from 1 to %d of letters, digits, _ and -", i, mostName)
	case seen[id]:
		return bad("requests.%d.custom_id: custom_id %q is there twice", i, one.ID)
	case len(one.Params) == 0 || one.Params[0] != '{':
		return bad("requests.%d.params: Input should be a valid object", i)
	default:
		seen[id] = true
	}
	var params bytes.Buffer
	if err := json.Compact(&params, one.Params); err != nil {
		return bad("requests.%d.params: %v", i, err)
	}
	_, err := w.Write(format.LineOf(m{"custom_id": one.ID, "params": json.RawMessage(params.Bytes())}))
	return err
}

// messageBatch answers with a batch.
func (v *visit) messageBatch(b Batch, err error) {
	if err == nil && b.Form != format.Anthropic {
		err = errNotThere
	}
	if err != nil {
		v.anthropicError(err)
		return
	}
	v.answer(http.StatusOK, v.showMessageBatch(b))
}

func (v *visit) messageBatches() {
	id := func(b Batch) string { return b.ID }
	const usual, most = 20, 1000
	some, more, err := page(v.r.URL.Query(), usual, most, v.s.Batches(v.c.Owner, format.Anthropic), id)
	if err != nil {
		v.anthropicProblem(http.StatusBadRequest, "invalid_request_error", "%v", err)
		return
	}
	first, last := ends(some, id)
	v.answer(http.StatusOK, m{"data": shownAs(some, v.showMessageBatch), "has_more": more, "first_id": first,
		"last_id": last})
}

// showMessageBatch shows counts once the batch has ended, as documented.
func (v *visit) showMessageBatch(b Batch) m {
	at := func(t time.Time) any {
		if t.IsZero() {
			return nil
		}
		return t.UTC().Format(time.RFC3339Nano)
	}
	counts := m{"processing": b.Counts.Total, "succeeded": 0, "errored": 0, "canceled": 0, "expired": 0}
	r := m{"id": b.ID, "type": "message_batch", "processing_status": "in_progress", "request_counts": counts,
		"ended_at": nil, "created_at": at(b.Created), "expires_at": at(b.Deadline), "archived_at": nil,
		"cancel_initiated_at": at(b.Asked), "results_url": nil}
	if b.State == Cancelling {
		r["processing_status"] = "canceling"
	}
	if b.State.Ended() {
		counts["processing"], counts["succeeded"], counts["errored"] = 0, b.Counts.Done, b.Counts.Failed
		counts["canceled"], counts["expired"] = b.Counts.Cancelled, b.Counts.Expired
		r["processing_status"], r["ended_at"] = "ended", at(b.Finished)
		r["results_url"] = v.c.Base + "/v1/messages/batches/" + b.ID + "/results"
	}
	return r
}

func (v *visit) results(id string) {
	in, b, err := v.s.Results(v.c.Owner, id)
	switch {
	case err == nil && b.Form != format.Anthropic:
		in.Close()
		v.anthropicError(errNotThere)
	case errors.Is(err, errGoesOn):
		v.anthropicProblem(http.StatusNotFound, "not_found_error", "The batch has no results yet.")
	case err != nil:
		v.anthropicError(err)
	default:
		defer in.Close()
		v.w.Header().Set("Content-Type", "application/x-jsonl")
		http.ServeContent(v.w, v.r, "", b.Finished, in)
	}
}
