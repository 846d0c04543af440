package jobs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
)

// mostWindow bounds the time of a batch.
const mostWindow = 7 * 24 * time.Hour

// openAI answers /v1/files and /v1/batches.
func (v *visit) openAI(parts []string) {
	id := ""
	if len(parts) > 1 {
		id = parts[1]
	}
	switch ask := v.r.Method + " " + parts[0] + strings.Repeat("/", len(parts)-1); {
	case ask == "POST files":
		v.upload()
	case ask == "GET files":
		v.files()
	case ask == "GET files/":
		v.file(v.s.File(v.c.Owner, id))
	case ask == "GET files//" && parts[2] == "content":
		v.content(id)
	case ask == "DELETE files/":
		if err := v.s.Remove(v.c.Owner, id); err != nil {
			v.openAIError(err, "")
			return
		}
		v.answer(http.StatusOK, m{"id": id, "object": "file", "deleted": true})
	case ask == "POST batches":
		v.create()
	case ask == "GET batches":
		v.batches()
	case ask == "GET batches/":
		v.batch(v.s.Batch(v.c.Owner, id))
	case ask == "POST batches//" && parts[2] == "cancel":
		v.batch(v.s.Cancel(v.c.Owner, id))
	default:
		v.openAIProblem(http.StatusNotFound, "", "unknown_url",
			"Unknown request URL: %s %s. This proxy keeps files and batches itself.", v.r.Method, v.c.Path)
	}
}

// openAIProblem answers with an error. param and code may be empty.
func (v *visit) openAIProblem(status int, param, code, text string, args ...any) {
	null := func(s string) any {
		if s == "" {
			return nil
		}
		return s
	}
	kind := "invalid_request_error"
	if status >= http.StatusInternalServerError {
		kind = "server_error"
		v.w.Header().Set("X-Should-Retry", "false")
	}
	v.answer(status, m{"error": m{"message": fmt.Sprintf(text, args...), "type": kind, "param": null(param),
		"code": null(code)}})
}

// openAIError answers with an error of the Store.
func (v *visit) openAIError(err error, param string) {
	status := statusOf(err)
	code := map[int]string{http.StatusInsufficientStorage: "insufficient_storage",
		http.StatusRequestEntityTooLarge: "file_too_large"}[status]
	text := err.Error()
	if status == http.StatusNotFound {
		text = "No such file or batch."
	}
	v.openAIProblem(status, param, code, "%s", text)
}

// file answers with a file.
func (v *visit) file(f File, err error) {
	if err != nil {
		v.openAIError(err, "id")
		return
	}
	v.answer(http.StatusOK, showFile(f))
}

func showFile(f File) m {
	return m{"id": f.ID, "object": "file", "bytes": f.Bytes, "created_at": f.Created.Unix(), "filename": f.Name,
		"purpose": f.Purpose, "status": "processed", "status_details": nil, "expires_at": unixSeconds(f.Expires)}
}

func (v *visit) files() {
	q := v.r.URL.Query()
	all := v.s.Files(v.c.Owner)
	if want := q.Get("purpose"); want != "" {
		all = slices.DeleteFunc(all, func(f File) bool { return f.Purpose != want })
	}
	id := func(f File) string { return f.ID }
	const most = 10_000
	some, more, err := page(q, most, most, all, id)
	v.list(shownAs(some, showFile), more, err)(ends(some, id))
}

// shownAs shows each of some.
func shownAs[T any](some []T, show func(T) m) []m {
	all := make([]m, 0, len(some))
	for _, one := range some {
		all = append(all, show(one))
	}
	return all
}

// list answers with a page, or with the error of its query.
func (v *visit) list(shown []m, more bool, err error) func(first, last any) {
	return func(first, last any) {
		if err != nil {
			name, _, _ := strings.Cut(err.Error(), ":")
			v.openAIProblem(http.StatusBadRequest, name, "invalid_value", "%s", err)
			return
		}
		v.answer(http.StatusOK, m{"object": "list", "data": shown, "has_more": more, "first_id": first, "last_id": last})
	}
}

func (v *visit) content(id string) {
	in, f, err := v.s.Content(v.c.Owner, id)
	if err != nil {
		v.openAIError(err, "id")
		return
	}
	defer in.Close()
	v.w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(v.w, v.r, "", f.Created, in)
}

// upload streams a file of a form to the disk.
func (v *visit) upload() {
	form, err := v.r.MultipartReader()
	if err != nil {
		v.openAIProblem(http.StatusBadRequest, "file", "", "the body is no multipart form with a purpose and a file: %v", err)
		return
	}
	u, err := v.s.Upload(v.c.Owner)
	if err != nil {
		v.openAIError(err, "file")
		return
	}
	f, problem := readForm(form, u)
	if problem == nil && f.purpose != purposeBatch {
		problem = &badForm{"purpose",
			fmt.Errorf("'%.50s' is not one of ['batch'] - 'purpose': this proxy keeps files of batches alone", f.purpose)}
	}
	if problem == nil && !f.file {
		problem = &badForm{"file", errors.New("'file' is a required property")}
	}
	if problem != nil {
		u.Drop()
		if status := statusOf(problem.err); status != http.StatusInternalServerError {
			v.openAIError(problem.err, problem.field)
			return
		}
		v.openAIProblem(http.StatusBadRequest, problem.field, "", "%v", problem.err)
		return
	}
	v.file(u.Keep(f.name, f.purpose, f.expires))
}

// form is what a form says of its file.
type form struct {
	name, purpose string
	file          bool
	expires       time.Time
}

// badForm is a mistake in a field of a form, or why its file cannot be written.
type badForm struct {
	field string
	err   error
}

// readForm reads a form, and writes its file.
func readForm(in *multipart.Reader, to io.Writer) (f form, bad *badForm) {
	const most = 1 << 10
	for {
		part, err := in.NextPart()
		if err == io.EOF {
			return f, nil
		}
		if err != nil {
			return f, &badForm{"file", fmt.Errorf("the form breaks off: %w", err)}
		}
		name := part.FormName()
		if name == "file" {
			if f.file {
				return f, &badForm{name, errors.New("there are two files")}
			}
			f.file, f.name = true, strings.ToValidUTF8(part.FileName(), "?")
			if _, err := io.CopyBuffer(onlyWriter{to}, part, make([]byte, 256<<10)); err != nil {
				return f, &badForm{name, err}
			}
			continue
		}
		text, err := io.ReadAll(io.LimitReader(part, most))
		if err != nil {
			return f, &badForm{name, err}
		}
		switch name {
		case "purpose":
			f.purpose = string(text)
		case "expires_after[seconds]":
			n, err := strconv.ParseInt(string(text), 10, 32)
			if err != nil || n < 1 {
				return f, &badForm{name, fmt.Errorf("%.20q is no number of seconds above 0", text)}
			}
			f.expires = time.Now().Add(time.Duration(n) * time.Second)
		}
	}
}

// onlyWriter hides other methods, so that io.CopyBuffer uses its buffer.
type onlyWriter struct{ io.Writer }

// create makes a batch of a file.
func (v *visit) create() {
	var ask struct {
		Input    string          `json:"input_file_id"`
		Endpoint string          `json:"endpoint"`
		Window   string          `json:"completion_window"`
		Metadata json.RawMessage `json:"metadata"`
	}
	if err := v.object(&ask); err != nil {
		v.openAIProblem(http.StatusBadRequest, "", "", "We could not parse the JSON body of your request: %v", err)
		return
	}
	if all := format.Endpoints(); !slices.Contains(all, ask.Endpoint) {
		v.openAIProblem(http.StatusBadRequest, "endpoint", "invalid_value",
			"Invalid value: '%.50s'. Supported values are: '%s'.", ask.Endpoint, strings.Join(all, "', '"))
		return
	}
	window, ok := parseWindow(ask.Window)
	if !ok {
		v.openAIProblem(http.StatusBadRequest, "completion_window", "invalid_value",
			"Invalid value: '%.50s'. Expected 24h, or another time from 1m to 7d.", ask.Window)
		return
	}
	var tags map[string]string
	if len(ask.Metadata) > 0 && json.Unmarshal(ask.Metadata, &tags) != nil {
		v.openAIProblem(http.StatusBadRequest, "metadata", "invalid_type", "metadata has to be an object of strings.")
		return
	}
	b, err := v.s.Create(Batch{Owner: v.c.Owner, Form: format.OpenAI, Endpoint: ask.Endpoint, Input: ask.Input,
		Window: ask.Window, Metadata: ask.Metadata, Bare: v.bare, Deadline: time.Now().Add(window)})
	if errors.Is(err, errNotThere) {
		v.openAIProblem(http.StatusBadRequest, "input_file_id", "", "No file of purpose 'batch' with ID '%.100s' found.",
			ask.Input)
		return
	}
	v.batch(b, err)
}

// parseWindow reads 24h or 7d.
func parseWindow(s string) (d time.Duration, ok bool) {
	if days, is := strings.CutSuffix(s, "d"); is {
		n, err := strconv.Atoi(days)
		return time.Duration(n) * 24 * time.Hour, err == nil && n > 0 && n <= 7
	}
	d, err := time.ParseDuration(s)
	return d, err == nil && d >= time.Minute && d <= mostWindow
}

// batch answers with a batch.
func (v *visit) batch(b Batch, err error) {
	switch {
	case errors.Is(err, errEnded):
		v.openAIProblem(http.StatusConflict, "", "", "Cannot cancel a batch with status '%s'.", b.State)
	case err == nil && b.Form != format.OpenAI:
		v.openAIError(errNotThere, "id")
	case err != nil:
		v.openAIError(err, "id")
	default:
		v.answer(http.StatusOK, showBatch(b))
	}
}

func (v *visit) batches() {
	id := func(b Batch) string { return b.ID }
	const usual, most = 20, 100
	some, more, err := page(v.r.URL.Query(), usual, most, v.s.Batches(v.c.Owner, format.OpenAI), id)
	v.list(shownAs(some, showBatch), more, err)(ends(some, id))
}

func showBatch(b Batch) m {
	only := func(at time.Time, in ...State) any {
		if slices.Contains(in, b.State) {
			return unixSeconds(at)
		}
		return nil
	}
	r := m{"id": b.ID, "object": "batch", "endpoint": b.Endpoint, "errors": nil, "input_file_id": b.Input,
		"completion_window": b.Window, "status": b.State, "output_file_id": nil, "error_file_id": nil,
		"created_at": b.Created.Unix(), "in_progress_at": unixSeconds(b.Began), "expires_at": b.Deadline.Unix(),
		"finalizing_at": unixSeconds(b.Finalized), "completed_at": only(b.Finished, Completed),
		"failed_at": only(b.Finished, Failed), "expired_at": only(b.Finished, Expired),
		"cancelling_at": unixSeconds(b.Asked), "cancelled_at": only(b.Finished, Cancelled), "metadata": tagged(&b),
		"request_counts": m{"total": b.Counts.Total, "completed": b.Counts.Done, "failed": b.Counts.Failed}}
	if len(b.Mistakes) > 0 {
		var data []m
		for _, e := range b.Mistakes {
			at := any(e.Line)
			if e.Line == 0 {
				at = nil
			}
			data = append(data, m{"code": e.Code, "message": e.Message, "line": at, "param": nil})
		}
		r["errors"] = m{"object": "list", "data": data}
	}
	if b.OutputMade {
		r["output_file_id"] = b.Output
	}
	if b.ErrorsMade {
		r["error_file_id"] = b.Errors
	}
	return r
}

// tagged returns the owner's metadata. As long as the batch goes on, it says when that will have an
// end, and why nothing goes on.
func tagged(b *Batch) any {
	if b.ETA.IsZero() && b.Why == "" || b.State.Ended() {
		return b.Metadata
	}
	tags := map[string]string{}
	_ = json.Unmarshal(b.Metadata, &tags) // it was read before
	if tags == nil {
		tags = map[string]string{}
	}
	if !b.ETA.IsZero() {
		tags["paceline_eta"] = b.ETA.UTC().Format(time.RFC3339)
	}
	if b.Why != "" {
		tags["paceline_waits"] = b.Why
	}
	return tags
}
