package run

import "github.com/paceline-go/paceline/internal/app/run/format"

// shape makes the row of an answer that ends its request well.
func (r *Run) shape(j *job, attempt int) {
	row, err := r.c.Shape.Row(nil, r.selectable(j, attempt))
	text := string(row)
	j.row, j.res.body = &text, nil
	r.sender.memory.free(&j.res.share)
	if err == nil {
		return
	}
	message, _ := r.secrets.Of(j.r).HideIn(err.Error())
	if r.unselected.Add(1) == 1 {
		r.tell("--select %s, of the answer to %q: that is null, and how often this happens is said at the end", message,
			j.r.ID)
	}
}

// selectable returns the values that a --select expression can read: the fields of the result, the
// body as JSON if it is JSON, and the request.
func (r *Run) selectable(j *job, attempt int) map[string]any {
	res, secrets := &j.res, r.secrets.Of(j.r)
	headers := map[string]any{}
	kept := format.Kept{More: []string{"*"}}
	var line format.Result
	line.SetHeaders(res.header, &kept, secrets)
	for name, value := range line.Headers {
		headers[name] = value
	}
	address := r.secrets.Address(j.r)
	v := map[string]any{
		"id": j.r.ID, "state": "done", "status": res.status, "attempts": attempt, "key": j.key, "at": format.Stamp(res.ended),
		"latency_ms": format.Milliseconds(res.ended.Sub(res.began)), "headers": headers, "possible_repeat": j.repeat,
		"method": j.r.Method, "url": address, "body_cut": res.cut, "row": j.r.Columns(secrets),
	}
	if j.hop.count > 0 {
		v["location"], _ = secrets.HideIn(j.hop.url.String())
	}
	body, _ := secrets.Hide(res.body, res.cutAt())
	v["body"] = format.Parsed(body)
	return v
}
