package llm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/ratetest/internal/model"
)

// messageBatchRoutes are those of Anthropic's batches. Their requests are in the body, and their
// results at an address.
var messageBatchRoutes = []freeRoute{
	{"POST /v1/messages/batches", (*Server).makeMessageBatch}, {"GET /v1/messages/batches", (*Server).listMessageBatches},
	{"GET /v1/messages/batches/{}", ofBatch((*Server).oneMessageBatch)},
	{"POST /v1/messages/batches/{}/cancel", ofBatch((*Server).cancelMessageBatch)},
	{"GET /v1/messages/batches/{}/results", ofBatch((*Server).messageBatchResults)},
	{"DELETE /v1/messages/batches/{}", ofBatch((*Server).deleteMessageBatch)},
}

func (l *Server) makeMessageBatch(q *freeCall) (any, *problem) {
	fields, p := q.object()
	if p != nil {
		return nil, p
	}
	var requests []struct {
		ID     string          `json:"custom_id"`
		Params json.RawMessage `json:"params"`
	}
	if json.Unmarshal(fields["requests"], &requests) != nil || len(requests) == 0 || len(requests) > mostLines {
		return nil, wrong(badRequest, fmt.Sprintf("requests: List should have from 1 to %d items", mostLines))
	}
	if len(l.batches) >= mostBatches {
		return nil, wrong(badRequest, fmt.Sprintf("This server keeps %d batches and no more.", mostBatches))
	}
	b := &batch{owner: q.owner, id: "msgbatch_" + q.id, made: q.now, canceled: mono.Max, pace: l.config.BatchPace,
		api: "messages"}
	seen := map[string]bool{}
	for i, r := range requests {
		switch {
		case r.ID == "" || len(r.ID) > 64:
			return nil, wrong(badRequest, fmt.Sprintf("requests.%d.custom_id: String should have from 1 to 64 characters", i))
		case seen[r.ID]:
			return nil, wrong(badRequest, fmt.Sprintf("requests.%d.custom_id: custom_id %q is there twice", i, r.ID))
		case r.Params == nil:
			return nil, wrong(badRequest, fmt.Sprintf("requests.%d.params: Field required", i))
		}
		seen[r.ID] = true
		b.lines = append(b.lines, batchLine{r.ID, r.Params})
	}
	l.batches = append(l.batches, b)
	return l.showMessageBatch(q, b), nil
}

func (l *Server) listMessageBatches(q *freeCall) (any, *problem) {
	return idPage(q, 20, l.ownBatches(q), func(b *batch) string { return b.id },
		func(b *batch) m { return l.showMessageBatch(q, b) })
}

func (l *Server) oneMessageBatch(q *freeCall, b *batch) (any, *problem) {
	return l.showMessageBatch(q, b), nil
}

func (l *Server) cancelMessageBatch(q *freeCall, b *batch) (any, *problem) {
	if _, end := b.done(q.now); end > q.now {
		b.canceled = min(b.canceled, q.now)
	}
	return l.showMessageBatch(q, b), nil
}

func (l *Server) deleteMessageBatch(q *freeCall, b *batch) (any, *problem) {
	if _, end := b.done(q.now); end > q.now {
		return nil, wrong(badRequest, "The batch is in progress: cancel it first.")
	}
	l.batches = slices.DeleteFunc(l.batches, func(other *batch) bool { return other == b })
	return m{"id": b.id, "type": "message_batch_deleted"}, nil
}

// messageBatchResults has a line for each request, in their order.
func (l *Server) messageBatchResults(q *freeCall, b *batch) (any, *problem) {
	n, end := b.done(q.now)
	if q.now < end {
		return nil, wrong(notThere, "The batch has no results yet.")
	}
	var all bytes.Buffer
	for i, line := range b.lines {
		result := m{"type": b.unserved()}
		if i < n {
			status, body := l.batched(b, i)
			if result = (m{"type": "succeeded", "message": body}); status != http.StatusOK {
				result = m{"type": "errored", "error": body}
			}
		}
		fmt.Fprintf(&all, "%s\n", model.Encode(m{"custom_id": line.id, "result": result}))
	}
	return raw(all.Bytes()), nil
}

// unserved is the result of the requests that an ended batch has not served.
func (b *batch) unserved() string {
	if b.canceled < mono.Max {
		return "canceled"
	}
	return "expired"
}

// showMessageBatch returns a batch of Anthropic's form.
func (l *Server) showMessageBatch(q *freeCall, b *batch) m {
	n, end := b.done(q.now)
	counts := m{"processing": len(b.lines), "succeeded": 0, "errored": 0, "canceled": 0, "expired": 0}
	at := func(t mono.Time) string { return l.wall(t).UTC().Format(time.RFC3339) }
	r := m{"id": b.id, "type": "message_batch", "processing_status": "in_progress", "request_counts": counts,
		"ended_at": nil, "created_at": at(b.made), "expires_at": at(b.made.Add(batchLife)), "archived_at": nil,
		"cancel_initiated_at": nil, "results_url": nil}
	if b.canceled < mono.Max {
		r["processing_status"], r["cancel_initiated_at"] = "canceling", at(b.canceled)
	}
	if q.now < end {
		return r // the counts stay until the batch has ended, as documented
	}
	if !b.ended {
		b.ended = true
		for i := range n {
			if status, _ := l.batched(b, i); status == http.StatusOK {
				b.served++
			}
		}
	}
	counts["processing"], counts["succeeded"], counts["errored"] = 0, b.served, n-b.served
	counts[b.unserved()] = len(b.lines) - n
	r["processing_status"], r["ended_at"] = "ended", at(end)
	r["results_url"] = "http://" + q.Host + "/v1/messages/batches/" + b.id + "/results"
	return r
}
