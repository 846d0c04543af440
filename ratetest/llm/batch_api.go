package llm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/ratetest/internal/model"
)

// batch is requests that are answered later, one after another. Its state is a function of the time
// since it was made.
type batch struct {
	owner, id string
	made      mono.Time
	lines     []batchLine
	api       string
	pace      time.Duration // a line's time
	canceled  mono.Time     // mono.Max: never
	ended     bool          // its answers have been made
	served    int           // lines with an answer of 200, once it has ended

	// Of OpenAI's alone.
	endpoint, input, output, errors string
	metadata                        any
	faults                          []m // mistakes in the file, for which nothing is served
}

type batchLine struct {
	id   string // the client's
	body json.RawMessage
}

const (
	mostLines   = 50_000
	mostBatches = 1000
	batchLife   = 24 * time.Hour
)

// done returns the lines that have been served by an instant, and the end of the batch.
func (b *batch) done(now mono.Time) (n int, end mono.Time) {
	late := b.made.Add(batchLife)
	end = min(b.made.Add(time.Duration(len(b.lines)+1)*b.pace), b.canceled.Add(b.pace), late)
	return int(min(int64(min(now, b.canceled, late).Sub(b.made)/b.pace), int64(len(b.lines)))), end
}

var batchRoutes = []freeRoute{
	{"POST /v1/batches", (*Server).makeBatch}, {"GET /v1/batches", (*Server).listBatches},
	{"GET /v1/batches/{}", ofBatch((*Server).oneBatch)},
	{"POST /v1/batches/{}/cancel", ofBatch((*Server).cancelBatch)},
}

// batchEndpoints are the endpoints that batches may have, by their APIs.
var batchEndpoints = []string{"/v1/chat/completions", "/v1/responses", "/v1/embeddings", "/v1/moderations"}

// makeBatch makes a batch of a file. Mistakes in the file show in the batch.
func (l *Server) makeBatch(q *freeCall) (any, *problem) {
	fields, p := q.object()
	if p != nil {
		return nil, p
	}
	b := &batch{owner: q.owner, id: "batch_" + q.id, made: q.now, canceled: mono.Max, pace: l.config.BatchPace}
	var window string
	for name, to := range map[string]any{"input_file_id": &b.input, "endpoint": &b.endpoint, "completion_window": &window,
		"metadata": &b.metadata} {
		if raw := fields[name]; raw != nil && json.Unmarshal(raw, to) != nil {
			return nil, badParam(name, "%s is of a wrong type", name)
		}
	}
	f := l.fileOf(q, b.input)
	switch {
	case !slices.Contains(batchEndpoints, b.endpoint):
		return nil, invalidValue("endpoint", "Invalid value: '%.50s'. Supported values are: '%s'.", b.endpoint,
			strings.Join(batchEndpoints, "', '"))
	case window != "24h":
		return nil, invalidValue("completion_window", "Invalid value: '%.50s'. Value must be '24h'.", window)
	case f == nil:
		return nil, badParam("input_file_id", "No file with ID '%.100s' found.", b.input)
	case len(l.batches) >= mostBatches:
		return nil, wrong(badRequest, fmt.Sprintf("This server keeps %d batches and no more.", mostBatches))
	}
	b.api = l.speak.api(b.endpoint)
	b.read(f.text)
	l.batches = append(l.batches, b)
	return l.showBatch(b, q.now), nil
}

// read takes the lines from a file.
func (b *batch) read(text []byte) {
	seen, number := map[string]bool{}, 0
	fault := func(code, says string) {
		b.faults = append(b.faults, m{"code": code, "line": number, "message": says, "param": nil})
	}
	for line := range bytes.Lines(text) {
		if number++; len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var r struct {
			ID     string `json:"custom_id"`
			Method string
			URL    string
			Body   json.RawMessage
		}
		switch err := json.Unmarshal(line, &r); {
		case err != nil:
			fault("invalid_json_line", "This line is not parseable as valid JSON.")
		case r.ID == "":
			fault("missing_required_parameter", "Missing required parameter: 'custom_id'.")
		case seen[r.ID]:
			fault("duplicate_custom_id", fmt.Sprintf("The custom_id %.100q is used by several requests.", r.ID))
		case r.Method != http.MethodPost:
			fault("invalid_method", "The method of a request must be 'POST'.")
		case r.URL != b.endpoint:
			fault("mismatched_url", fmt.Sprintf("The URL %.100q is not the batch's endpoint %s.", r.URL, b.endpoint))
		case len(b.lines) == mostLines:
			fault("too_many_requests", fmt.Sprintf("The batch has more than %d requests.", mostLines))
			return
		default:
			seen[r.ID] = true
			b.lines = append(b.lines, batchLine{r.ID, bytes.Clone(r.Body)})
		}
	}
	if len(b.lines) == 0 && b.faults == nil {
		fault("empty_file", "The input file is empty.")
	}
}

func invalidValue(param, format string, args ...any) *problem {
	p := badParam(param, format, args...)
	p.Code = "invalid_value"
	return p
}

// ofBatch answers a request for the batch in its path.
func ofBatch(answer func(l *Server, q *freeCall, b *batch) (any, *problem)) func(*Server, *freeCall) (any, *problem) {
	return func(l *Server, q *freeCall) (any, *problem) {
		i := slices.IndexFunc(l.batches, func(b *batch) bool { return b.id == q.parts[0] && b.owner == q.owner })
		if i < 0 {
			return nil, wrong(notThere, fmt.Sprintf("No batch found with id '%.100s'.", q.parts[0]))
		}
		return answer(l, q, l.batches[i])
	}
}

// ownBatches are the batches of the key's owner, the newest first.
func (l *Server) ownBatches(q *freeCall) (own []*batch) {
	for _, b := range slices.Backward(l.batches) {
		if b.owner == q.owner {
			own = append(own, b)
		}
	}
	return own
}

func (l *Server) listBatches(q *freeCall) (any, *problem) {
	return openAIList(idPage(q, 20, l.ownBatches(q), func(b *batch) string { return b.id },
		func(b *batch) m { return l.showBatch(b, q.now) }))
}

func (l *Server) oneBatch(q *freeCall, b *batch) (any, *problem) { return l.showBatch(b, q.now), nil }

func (l *Server) cancelBatch(q *freeCall, b *batch) (any, *problem) {
	if _, end := b.done(q.now); b.faults != nil || end <= q.now {
		return nil, wrong(conflict, fmt.Sprintf("Cannot cancel a batch with status '%s'.", l.showBatch(b, q.now)["status"]))
	}
	b.canceled = min(b.canceled, q.now)
	return l.showBatch(b, q.now), nil
}

// endBatches makes the files of the batches that have ended.
func (l *Server) endBatches(q *freeCall) {
	for _, b := range l.ownBatches(q) {
		l.endBatch(b, q.now)
	}
}

// endBatch makes the files of a batch when it has ended. The lock is held.
func (l *Server) endBatch(b *batch, now mono.Time) {
	n, end := b.done(now)
	if b.ended || b.faults != nil || now < end {
		return
	}
	b.ended = true
	var output, errors bytes.Buffer
	for i, line := range b.lines {
		number := fmt.Sprintf("batch_req_%s_%d", strings.TrimPrefix(b.id, "batch_"), i)
		if i >= n {
			code := "batch_expired"
			if b.canceled < mono.Max {
				code = "batch_cancelled"
			}
			fmt.Fprintf(&errors, "%s\n", model.Encode(m{"id": number, "custom_id": line.id, "response": nil,
				"error": m{"code": code, "message": "This request was not executed."}}))
			continue
		}
		status, body := l.batched(b, i)
		to := &errors
		if status == http.StatusOK {
			b.served++
			to = &output
		}
		fmt.Fprintf(to, "%s\n", model.Encode(m{"id": number, "custom_id": line.id, "error": nil,
			"response": m{"status_code": status, "request_id": "req_" + number, "body": body}}))
	}
	for _, made := range []struct {
		text bytes.Buffer
		id   *string
		name string
	}{{output, &b.output, "output"}, {errors, &b.errors, "error"}} {
		f := &file{owner: b.owner, id: "file-" + strings.TrimPrefix(b.id, "batch_") + made.name, purpose: "batch_output",
			name: b.id + "_" + made.name + ".jsonl", created: l.wall(end).Unix(), text: made.text.Bytes()}
		if len(f.text) > 0 && l.keep(f) {
			*made.id = f.id
		}
	}
}

// batched returns the answer to a line. It is the same whenever it is made.
func (l *Server) batched(b *batch, i int) (status int, body any) {
	h := fnv.New64a()
	fmt.Fprint(h, b.id, i)
	c := &call{Answer: model.Answer{N: h.Sum64(), ID: fmt.Sprintf("%024x", h.Sum64()), Created: l.wall(b.made).Unix()}}
	ask, bad := model.Read(l.config.Provider.family(), b.api, b.lines[i].body)
	if c.Ask = ask; bad != nil {
		return l.speak.refusal(&problem{kind: badRequest, Problem: *bad}, c.ID)
	}
	if !l.config.knows(ask.Model) {
		return l.speak.refusal(&problem{kind: noModel, model: ask.Model}, c.ID)
	}
	rng := rand.New(rand.NewPCG(l.config.Seed, c.N))
	l.uses(c, rng.NormFloat64(), rng.NormFloat64(), rng.Float64())
	return http.StatusOK, l.speak.Whole(&c.Answer)
}

// showBatch returns a batch of OpenAI's form at an instant.
func (l *Server) showBatch(b *batch, now mono.Time) m {
	l.endBatch(b, now)
	n, end := b.done(now)
	second := func(there bool, at mono.Time) any {
		if there {
			return l.wall(at).Unix()
		}
		return nil
	}
	canceled := b.canceled < mono.Max
	last := b.made.Add(time.Duration(len(b.lines)) * b.pace)
	status, expired := "in_progress", end == b.made.Add(batchLife)
	switch {
	case b.faults != nil && now.Sub(b.made) >= b.pace:
		status, n = "failed", 0
	case now.Sub(b.made) < b.pace && !canceled:
		status = "validating"
	case canceled && now < end:
		status = "cancelling"
	case canceled:
		status = "cancelled"
	case expired && now >= end:
		status = "expired"
	case now >= end:
		status = "completed"
	case now >= last:
		status = "finalizing"
	}
	r := m{"id": b.id, "object": "batch", "endpoint": b.endpoint, "errors": nil, "input_file_id": b.input,
		"completion_window": "24h", "status": status, "output_file_id": nil, "error_file_id": nil, "metadata": b.metadata,
		"created_at": l.wall(b.made).Unix(), "expires_at": l.wall(b.made.Add(batchLife)).Unix(),
		"in_progress_at": second(status != "validating" && status != "failed", b.made.Add(b.pace)),
		"finalizing_at":  second(status == "finalizing" || status == "completed", last),
		"completed_at":   second(status == "completed", end), "failed_at": second(status == "failed", b.made.Add(b.pace)),
		"expired_at": second(status == "expired", end), "cancelling_at": second(canceled, b.canceled),
		"cancelled_at":   second(status == "cancelled", end),
		"request_counts": m{"total": len(b.lines), "completed": n, "failed": 0}}
	if status == "failed" {
		r["errors"] = m{"object": "list", "data": b.faults}
	}
	if b.ended {
		r["request_counts"] = m{"total": len(b.lines), "completed": b.served, "failed": n - b.served}
	}
	for name, id := range map[string]string{"output_file_id": b.output, "error_file_id": b.errors} {
		if id != "" {
			r[name] = id
		}
	}
	return r
}
