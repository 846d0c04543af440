package run

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"

	"github.com/paceline-go/paceline/internal/secret"
)

// shape makes the row of an answer that ends its request well.
func (r *Run) shape(j *job, attempt int) {
	row, err := r.c.Shape.Row(nil, r.selectable(j, attempt))
	text := string(row)
	j.row, j.res.body = &text, nil
	r.sender.memory.free(&j.res.share)
	if err == nil {
		return
	}
	message, _ := r.sender.of(j.r).HideIn(err.Error())
	if r.unselected.Add(1) == 1 {
		r.tell("--select %s, of the answer to %q: that is null, and how often this happens is said at the end", message,
			j.r.ID)
	}
}

// selectable returns the values that a --select expression can read: the fields of the result, the
// body as JSON if it is JSON, and the request.
func (r *Run) selectable(j *job, attempt int) map[string]any {
	res, secrets := &j.res, r.sender.of(j.r)
	headers := map[string]any{}
	kept := kept{more: []string{"*"}}
	var line Result
	line.setHeaders(res.header, &kept, secrets)
	for name, value := range line.Headers {
		headers[name] = value
	}
	address := r.sender.address(j.r)
	v := map[string]any{
		"id": j.r.ID, "state": "done", "status": res.status, "attempts": attempt, "key": j.key, "at": stamp(res.ended),
		"latency_ms": milliseconds(res.ended.Sub(res.began)), "headers": headers, "possible_repeat": j.repeat,
		"method": j.r.Method, "url": address, "body_cut": res.cut, "row": j.r.columns(secrets),
	}
	if j.hop.count > 0 {
		v["location"], _ = secrets.HideIn(j.hop.url.String())
	}
	cut := secret.Whole
	if res.cut {
		cut = secret.CutEnd
	}
	if res.status == http.StatusPartialContent {
		cut = secret.CutStart | secret.CutEnd
	}
	body, _ := secrets.Hide(res.body, cut)
	v["body"] = parsed(body)
	return v
}

// parsed returns a body for an expression: JSON with its numbers as they are written, null if it is
// empty, or else a string.
func parsed(body []byte) any {
	if len(body) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var v any
	if d.Decode(&v) == nil {
		if _, err := d.Token(); err == io.EOF {
			return v
		}
	}
	return string(bytes.ToValidUTF8(body, []byte("\ufffd")))
}
