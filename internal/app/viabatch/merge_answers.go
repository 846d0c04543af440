package viabatch

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/paceline-go/paceline/internal/app/durable"
	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/send"
	"github.com/paceline-go/paceline/internal/text"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/tokens"
)

// served counts what batches brought.
type served struct {
	done, dead, open int
	cut              int // of done: at the bound of the output
	usd              float64
	unpriced         bool
}

// line is a line of results of either API.
type line struct {
	ID       string `json:"custom_id"`
	Response *struct {
		Status    int             `json:"status_code"`
		RequestID string          `json:"request_id"`
		Body      json.RawMessage `json:"body"`
	} `json:"response"`
	Result *struct {
		Type    string          `json:"type"`
		Message json.RawMessage `json:"message"`
		Error   json.RawMessage `json:"error"`
	} `json:"result"`
}

// answer returns the answer to the request of a line; status 0: it was not served.
func (l *line) answer() (status int, body json.RawMessage, requestID string) {
	switch {
	case l.Response != nil:
		return l.Response.Status, l.Response.Body, l.Response.RequestID
	case l.Result == nil:
		return 0, nil, ""
	case l.Result.Type == "succeeded":
		return http.StatusOK, l.Result.Message, ""
	case l.Result.Type != "errored":
		return 0, nil, ""
	}
	var e struct {
		Error struct{ Type string }
	}
	_ = json.Unmarshal(l.Result.Error, &e) // of another form: it is not the request's own fault
	return map[string]int{"invalid_request_error": 400, "not_found_error": 404, "request_too_large": 413}[e.Error.Type],
		l.Result.Error, ""
}

// merge writes the results of a batch that has ended. What it did not serve is left to the run.
func (b *batches) merge(ctx context.Context, e *entry, s state) error {
	waiting, err := b.requests(e)
	if err == nil {
		err = b.results.Begin()
	}
	if err != nil {
		return err
	}
	for _, path := range s.results {
		resp, err := b.remote.ask(ctx, &call{method: http.MethodGet, path: path})
		if err != nil {
			return err
		}
		end, err := durable.Lines(resp.Body, path, func(text []byte, _ durable.End) error {
			return b.take(text, waiting)
		})
		resp.Body.Close()
		if err == nil && len(end.Rest) > 0 { // the last line needs no line break
			err = b.take(end.Rest, waiting)
		}
		if err != nil {
			return fmt.Errorf("the results of %s: %w", e.Batch, err)
		}
	}
	b.served.open += len(waiting)
	return b.results.Sync()
}

// requests are those of a batch by their ids at the provider. Rows are as the input has them. One that the input lacks
// by now, or has with other content, was paid all the same: its result has what the ledger knows.
func (b *batches) requests(e *entry) (map[string]*format.Request, error) {
	all := map[string]*format.Request{}
	for _, q := range e.Requests {
		at := *b.API
		at.Path += e.Path
		all[b.api.wire(q.ID)] = &format.Request{ID: q.ID, Hash: format.HashOf(q.ID), Method: http.MethodPost, URL: &at,
			Digest: q.Digest, Estimate: tokens.Estimate{API: tokens.APIOf(e.Path), Model: e.Model}}
	}
	if !b.Rows {
		return all, nil
	}
	return all, b.Each(func(q *format.Request) error {
		id := b.api.wire(q.ID)
		if was := all[id]; was != nil && was.Digest == q.Digest {
			all[id] = q
		}
		return nil
	})
}

// take writes one result.
func (b *batches) take(text []byte, waiting map[string]*format.Request) error {
	var l line
	if err := json.Unmarshal(text, &l); err != nil {
		return fmt.Errorf("what is no line of JSON: %w", err)
	}
	q := waiting[l.ID]
	status, body, requestID := l.answer()
	if q == nil || status == 0 || len(body) == 0 {
		return nil
	}
	was := b.results.Has(q.ID) // taken in before a crash
	v, err := b.results.Take(q, status, http.Header{"X-Request-Id": {requestID}}, body)
	if err != nil || !v.Done && !v.Dead {
		return err
	}
	delete(waiting, l.ID)
	switch n := &b.served; {
	case was:
		return nil
	case v.Dead:
		n.dead++
	default:
		if n.done++; v.Cut {
			n.cut++
		}
	}
	if status == http.StatusOK { // paid, whatever it says
		b.pays(q, body)
	}
	return nil
}

// pays adds half the price of an answer.
func (b *batches) pays(q *format.Request, body []byte) {
	api := q.Estimate.API
	m, known := provider.PriceOf(b.Seller, q.Estimate.Model)
	u, err := tokens.ParseUsage(api, body)
	if !known || err != nil {
		b.served.unpriced = true
		return
	}
	const part = 0.5 // as both providers publish it
	b.served.usd += part * send.Price(m, api, u)
}

// tell says what the batches brought, if there was one.
func (b *batches) tell() (told bool) {
	n := &b.served
	if n.done+n.dead+n.open == 0 {
		return false
	}
	cut := ""
	if n.cut > 0 {
		cut = fmt.Sprintf("%d of them cut (--retry-dead=length), ", n.cut)
	}
	text := fmt.Sprintf("batches of the provider: %s done, %s%d dead, %d left to send",
		text.Count(n.done, "request is", "requests are"), cut, n.dead, n.open)
	if n.usd > 0 {
		text += fmt.Sprintf("; at half the price they cost %.4f USD", n.usd)
	}
	if n.unpriced {
		text += "; the price of some is not known"
	}
	b.Notice(text)
	return true
}
