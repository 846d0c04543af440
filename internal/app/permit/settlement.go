package permit

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider/classify"
)

// said returns the client of a call about its permits, and the call's body.
func said(w http.ResponseWriter, r *http.Request) (client string, b []byte, x *refusal) {
	if client, x = clientOf(r); x == nil {
		b, x = body(w, r)
	}
	return client, b, x
}

// settle ends permits as their holder reports.
func (s *Server) settle(w http.ResponseWriter, r *http.Request) *refusal {
	client, b, x := said(w, r)
	if x != nil {
		return x
	}
	all, err := parseSettle(b)
	if err != nil {
		return badMessage(err)
	}
	settled, unknown := s.settleAll(client, all)
	return answerJSON(w, struct {
		Settled int `json:"settled"`
		Unknown int `json:"unknown"`
	}{settled, unknown})
}

// settleAll ends permits. Unknown ids are counted, and are no error: the permit is another's, or over.
func (s *Server) settleAll(client string, all []settlement) (settled, unknown int) {
	for i := range all {
		m := &all[i]
		unknown += m.unread
		var few [16]grant
		all := slices.Grow(few[:0], len(m.ids))
		s.mu.Lock()
		for _, id := range m.ids {
			if g, ok := s.book.Settle(id, client); ok {
				all = append(all, g)
			}
		}
		s.mu.Unlock()
		s.finish(all, m)
		settled, unknown = settled+len(all), unknown+len(m.ids)-len(all)
	}
	s.unread.Add(int64(unknown))
	return settled, unknown
}

// outcome is what limiters learn from a settlement.
func (m *settlement) outcome(l *namedLimit) limit.Outcome {
	if m.status == 0 {
		return limit.Outcome{Result: results[m.result], RetryAfter: m.retryAfter, Metered: m.metered, Actual: m.actual}
	}
	judge := classify.Policy{Dialect: l.dialect}
	v := judge.Of(&classify.Evidence{Status: m.status, Header: m.header, Body: []byte(m.body), Wrote: classify.Something,
		Now: time.Now(), Took: m.took})
	o := v.Outcome
	if m.metered {
		o.Metered, o.Actual = true, m.actual
	}
	return o
}

// renew lets permits be held for a TTL more, by the connection that asks.
func (s *Server) renew(w http.ResponseWriter, r *http.Request) *refusal {
	client, b, x := said(w, r)
	if x != nil {
		return x
	}
	ids, unknown, err := parseRenew(b)
	if err != nil {
		return badMessage(err)
	}
	k, renewed := connectionOf(r.Context()), 0
	s.mu.Lock()
	if s.watchLocked(k) {
		now := s.now()
		for _, id := range ids {
			if s.book.Renew(now, id, client, k.line) {
				renewed++
			} else {
				unknown++
			}
		}
		s.armLocked()
	}
	s.mu.Unlock()
	s.unread.Add(int64(unknown))
	return answerJSON(w, struct {
		Renewed int   `json:"renewed"`
		Unknown int   `json:"unknown"`
		TTLMS   int64 `json:"ttl_ms"`
	}{renewed, unknown, s.c.TTL.Milliseconds()})
}

// clientOf is the client that a URL names.
func clientOf(r *http.Request) (string, *refusal) {
	client := r.URL.Query().Get("client")
	if err := checkClient(client); err != nil {
		return "", refuse(http.StatusBadRequest, "bad-message", "client: %v", err)
	}
	return client, nil
}

// answerJSON answers with a value.
func answerJSON(w http.ResponseWriter, v any) *refusal {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // cannot fail: every field has a JSON form
	}
	return answer(w, append(b, '\n'))
}

// typeJSON is shared by all answers: a slice for each costs as much as a map of fields.
var typeJSON = []string{"application/json"}

// answer writes an answer, whose length simple clients want to know.
func answer(w http.ResponseWriter, b []byte) *refusal {
	h := w.Header()
	h["Content-Type"] = typeJSON
	h.Set("Content-Length", strconv.Itoa(len(b)))
	_, _ = w.Write(b)
	return nil
}
