package permit

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/paceline-go/paceline/internal/app/proxy"
	"github.com/paceline-go/paceline/observe"
)

// listed is the answer to /v1/limits: a Snapshot, and what it has no place for.
type listed struct {
	observe.Snapshot
	// Named are the limits, by name.
	Named []about `json:"named"`
	// Held is how many permits are held, and Lapsed how many ended as unknown by themselves.
	Held   int   `json:"held"`
	Lapsed int64 `json:"lapsed"`
	// UnknownIDs is how many ids were settled or renewed that were nobody's.
	UnknownIDs int64 `json:"unknown_ids"`
}

type about struct {
	Name     string `json:"name"`
	Limit    string `json:"limit"`
	Provider string `json:"provider,omitempty"`
	// Upstream says that it is the limit of an upstream, whose counts are not in the Snapshot.
	Upstream bool `json:"upstream,omitempty"`
}

func (s *Server) list(w http.ResponseWriter, _ *http.Request) *refusal {
	return answerJSON(w, s.listed())
}

func (s *Server) listed() listed {
	all := listed{Snapshot: s.group.Snapshot(), Held: s.Held(), Lapsed: s.lapsed.Load(), UnknownIDs: s.unread.Load()}
	for _, name := range slices.Sorted(maps.Keys(*s.limits.Load())) {
		l := s.limit(name)
		all.Named = append(all.Named, about{Name: name, Limit: l.text(), Provider: l.Provider})
	}
	if p := s.upstreams(); p != nil {
		for _, line := range p.Lines() {
			all.Named = append(all.Named, about{Name: line[0], Limit: line[1], Upstream: true})
		}
	}
	return all
}

// ask forecasts the wait of a cost, and changes nothing.
func (s *Server) ask(w http.ResponseWriter, r *http.Request) *refusal {
	client, x := clientOf(r)
	if x != nil {
		return x
	}
	q := r.URL.Query()
	cost, err := ParseCost(q.Get("cost"))
	if err != nil {
		return refuse(http.StatusBadRequest, "bad-message", "cost: %v", err)
	}
	l := s.limit(q.Get("limit"))
	if l == nil {
		return s.askThere(w, q.Get("limit"), s.outside(client, "", cost))
	}
	lane, release := s.lane(l, client)
	defer release()
	if _, _, err := lane.Ask(cost); err != nil {
		return s.noTurn(r.Context(), l, client, err, 0)
	}
	at, ahead := lane.Expect(cost)
	wait := time.Duration(0)
	if !at.IsZero() {
		wait = max(time.Until(at), 0)
	}
	return forecast(w, wait, ahead)
}

// askThere is ask at an upstream.
func (s *Server) askThere(w http.ResponseWriter, upstream string, o proxy.Outside) *refusal {
	p := s.upstreams()
	if p == nil {
		return s.noLimit(upstream)
	}
	wait, ahead, ok, err := p.Expect(upstream, o)
	switch {
	case !ok:
		return s.noLimit(upstream)
	case err != nil:
		return noTurnThere(context.Background(), upstream, err)
	}
	return forecast(w, wait, ahead)
}

func forecast(w http.ResponseWriter, wait time.Duration, ahead int) *refusal {
	return answerJSON(w, struct {
		WaitMS int64 `json:"wait_ms"`
		Ahead  int   `json:"ahead"`
	}{int64((wait + time.Millisecond - 1) / time.Millisecond), ahead})
}
