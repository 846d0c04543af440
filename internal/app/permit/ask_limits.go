package permit

import (
	"net/http"
	"time"

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
}

func (s *Server) list(w http.ResponseWriter, _ *http.Request) *refusal {
	return answerJSON(w, s.listed())
}

func (s *Server) listed() listed {
	all := listed{Snapshot: s.group.Snapshot(), Held: s.Held(), Lapsed: s.lapsed.Load(), UnknownIDs: s.unread.Load()}
	for _, name := range s.names {
		l := s.limits[name]
		all.Named = append(all.Named, about{name, l.text(), l.Provider})
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
	l := s.limits[q.Get("limit")]
	if l == nil {
		return s.noLimit(q.Get("limit"))
	}
	cost, err := ParseCost(q.Get("cost"))
	if err != nil {
		return refuse(http.StatusBadRequest, "bad-message", "cost: %v", err)
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
	return answerJSON(w, struct {
		WaitMS int64 `json:"wait_ms"`
		Ahead  int   `json:"ahead"`
	}{int64((wait + time.Millisecond - 1) / time.Millisecond), ahead})
}
