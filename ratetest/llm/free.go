package llm

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/ratetest/internal/host"
	"github.com/paceline-go/paceline/ratetest/internal/model"
)

// freeCall is a request to an endpoint that counts in no limit.
type freeCall struct {
	*http.Request
	parts []string // those of the path that the pattern leaves open
	body  []byte
	owner string // the name of the key, or of its organization
	id    string // of the answer
	now   mono.Time
}

// raw is a body that is sent as it is, and not as JSON.
type raw []byte

// freeRoute is such an endpoint: its pattern as in host.Match. The lock is held during answer.
type freeRoute struct {
	pattern string
	answer  func(l *Server, q *freeCall) (body any, p *problem)
}

// freeRoutes are the endpoints of a provider that count in no limit: lists of models, the counting
// of tokens, files and batches.
func freeRoutes(p Provider) []freeRoute {
	if p == Anthropic {
		return slices.Concat([]freeRoute{
			{"POST /v1/messages/count_tokens", (*Server).countTokens},
			{"GET /v1/models", (*Server).anthropicModels}, {"GET /v1/models/{}", (*Server).anthropicModel},
		}, messageBatchRoutes)
	}
	return slices.Concat([]freeRoute{
		{"GET /v1/models", (*Server).openAIModels}, {"GET /v1/models/{}", (*Server).openAIModel},
	}, fileRoutes, batchRoutes)
}

// free answers a request to an endpoint that counts in no limit. It reports whether it is one. Such
// requests are not in the log, since there is nothing to judge.
func (l *Server) free(w http.ResponseWriter, r *http.Request, c *call, rng *rand.Rand) bool {
	q := &freeCall{Request: r, id: c.ID}
	i := slices.IndexFunc(l.routes, func(f freeRoute) (ok bool) {
		q.parts, ok = host.Match(f.pattern, r.Method, r.URL.Path)
		return ok
	})
	if i < 0 {
		return false
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostFile))
	if err != nil {
		l.refuse(w, c, wrong(tooLong, fmt.Sprintf("Request exceeds the maximum size of %d bytes", mostFile)))
		return true
	}
	if q.body = body; !l.work.Wait(l.config.Before.Draw(rng)) {
		l.refuse(w, c, &problem{kind: closing})
		return true
	}
	answer, p := l.answered(q, l.routes[i])
	switch text, plain := answer.(raw); {
	case p != nil:
		l.refuse(w, c, p)
	case plain:
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Content-Length", strconv.Itoa(len(text)))
		w.Write(text)
	default:
		respond(w, http.StatusOK, answer)
	}
	return true
}

func (l *Server) answered(q *freeCall, f freeRoute) (body any, p *problem) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := l.speak.key(q.Header)
	name, known := l.named(key)
	if !known {
		return nil, &problem{kind: badKey, Problem: model.Problem{Missing: key == ""}}
	}
	if p := l.speak.needs(q.Header); p != nil {
		return nil, p
	}
	if whose := l.config.Organizations[key]; whose != "" {
		name = whose
	}
	q.owner, q.now = name, l.now()
	return f.answer(l, q)
}

// wall returns an instant by the clock of the wall.
func (l *Server) wall(at mono.Time) time.Time { return l.base.Add(time.Duration(at)) }

// catalog returns the names of the models that the server lists, sorted.
func (l *Server) catalog() []string {
	names := slices.Clone(l.config.Models)
	if l.config.Published || len(names) == 0 {
		names = append(names, model.Published(l.config.Provider.family())...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

const modelsBegan = 1_735_689_600 // made up: a second of 2025

func openAIModel(name string) m {
	return m{"id": name, "object": "model", "created": modelsBegan, "owned_by": "system"}
}

func (l *Server) openAIModels(*freeCall) (any, *problem) {
	all := []m{}
	for _, name := range l.catalog() {
		all = append(all, openAIModel(name))
	}
	return m{"object": "list", "data": all}, nil
}

func (l *Server) openAIModel(q *freeCall) (any, *problem) {
	if !l.config.knows(q.parts[0]) {
		return nil, &problem{kind: noModel, model: q.parts[0]}
	}
	return openAIModel(q.parts[0]), nil
}

func anthropicModel(name string) m {
	return m{"type": "model", "id": name, "display_name": name,
		"created_at": time.Unix(modelsBegan, 0).UTC().Format(time.RFC3339)}
}

func (l *Server) anthropicModels(q *freeCall) (any, *problem) {
	return idPage(q, 20, l.catalog(), func(name string) string { return name }, anthropicModel)
}

func (l *Server) anthropicModel(q *freeCall) (any, *problem) {
	if !l.config.knows(q.parts[0]) {
		return nil, &problem{kind: noModel, model: q.parts[0]}
	}
	return anthropicModel(q.parts[0]), nil
}

// countTokens counts the input of a message as the server counts that of messages, without chance.
func (l *Server) countTokens(q *freeCall) (any, *problem) {
	ask, p := model.ReadCount(q.body)
	if p != nil {
		return nil, &problem{kind: badRequest, Problem: *p}
	}
	if !l.config.knows(ask.Model) {
		return nil, &problem{kind: noModel, model: ask.Model}
	}
	input := ask.Estimate
	if l.config.Input != nil {
		if n, ok := l.config.Input("messages", q.body); ok {
			input = max(n, 1)
		}
	}
	return m{"input_tokens": input}, nil
}

// idPage returns a page of a list that is paged by ids: after_id or after, before_id and limit.
// usual is the size without a limit.
func idPage[T any](q *freeCall, usual int, all []T, id func(T) string, show func(T) m) (list any, p *problem) {
	query := q.URL.Query()
	n, from, to := usual, 0, len(all)
	if s := query.Get("limit"); s != "" {
		var err error
		if n, err = strconv.Atoi(s); err != nil || n < 1 || n > 10_000 {
			return nil, badParam("limit", "limit: %.20q is not a number from 1 to 10000", s)
		}
	}
	for _, name := range []string{"after", "after_id", "before_id"} {
		s := query.Get(name)
		if s == "" {
			continue
		}
		at := slices.IndexFunc(all, func(one T) bool { return id(one) == s })
		if at < 0 {
			return nil, badParam(name, "%s: there is no %.100q", name, s)
		}
		if name != "before_id" {
			from = at + 1
			continue
		}
		to = at
		from = max(from, to-n)
	}
	page := all[from:min(from+n, to)]
	shown, ends := []m{}, [2]any{}
	for i, one := range page {
		if shown = append(shown, show(one)); i == 0 {
			ends[0] = id(one)
		}
		ends[1] = id(one)
	}
	more := from+n < to || to < len(all) && from > 0
	return m{"data": shown, "has_more": more, "first_id": ends[0], "last_id": ends[1]}, nil
}

// openAIList adds what a list of OpenAI's form has, too.
func openAIList(list any, p *problem) (any, *problem) {
	if list, ok := list.(m); ok {
		list["object"] = "list"
	}
	return list, p
}

// object reads the body as an object. It is nil, with the problem, if the body is none.
func (q *freeCall) object() (map[string]json.RawMessage, *problem) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(q.body, &all); err != nil || all == nil {
		return nil, wrong(badRequest, "We could not parse the JSON body of your request.")
	}
	return maps.Clone(all), nil
}
