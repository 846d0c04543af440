package permit

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
)

// acquire waits for the turn, and grants.
func (s *Server) acquire(w http.ResponseWriter, r *http.Request) *refusal {
	b, x := body(w, r)
	if x != nil {
		return x
	}
	m, err := parseAcquire(b)
	if err != nil {
		return badMessage(err)
	}
	k := connectionOf(r.Context())
	s.settleAll(m.client, m.settle) // even if there is no permit: these requests are over
	began := time.Now()
	var all []grant
	if l := s.limit(m.limit); l != nil {
		all, x = s.turnHere(r.Context(), l, &m)
	} else {
		all, x = s.turnThere(r.Context(), &m)
	}
	if x != nil {
		return x
	}
	waited := time.Since(began)
	i, x := s.issue(k, m.client, all)
	if x != nil {
		return x
	}
	return answer(w, i.json(waited, s.c.SendWithin, s.c.TTL))
}

// turnHere waits for the turn at a limit of the Server, and records what is about to be granted.
func (s *Server) turnHere(ctx context.Context, l *namedLimit, m *acquire) ([]grant, *refusal) {
	lane, release := s.lane(l, m.client)
	defer release()
	all, x := s.turn(ctx, l, lane, m)
	if x != nil {
		return nil, x
	}
	grants, err := s.record(l, all, m.cost)
	if err != nil {
		s.takeBack(grants)
		return nil, refuse(http.StatusServiceUnavailable, "no-state", "the state file cannot be written, so nothing is granted")
	}
	return grants, nil
}

// turn waits until the first of the permits may go, and takes as many more as may go then.
func (s *Server) turn(ctx context.Context, l *namedLimit, lane *paceline.Lane, m *acquire) ([]paceline.Permit, *refusal) {
	all := make([]paceline.Permit, m.n)
	n, retry := lane.TryWaitMany(m.cost, all)
	switch n = s.lasting(all[:n]); {
	case n > 0:
		return all[:n], nil
	case retry == paceline.RetryNever:
		_, _, err := lane.Ask(m.cost)
		return nil, s.noTurn(ctx, l, m.client, err, m.maxWait)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.over, func() { cancel(context.Cause(s.over)) })()
	var err error
	if all[0], err = s.wait(ctx, lane, m); err != nil {
		return nil, s.noTurn(ctx, l, m.client, err, m.maxWait)
	}
	n, _ = lane.TryWaitMany(m.cost, all[1:])
	return all[:1+s.lasting(all[1:1+n])], nil
}

// wait waits for a permit that lasts until its send.
func (s *Server) wait(ctx context.Context, lane *paceline.Lane, m *acquire) (paceline.Permit, error) {
	turn := paceline.Turn{Came: time.Now(), MaxWait: m.maxWait}
	if m.bounded && m.maxWait == 0 {
		turn.MaxWait = 1 // a wait of no time is one that does not come
	}
	for {
		p, _, err := lane.WaitTurn(ctx, m.cost, turn)
		if err != nil || s.lasts(p) {
			return p, err
		}
		if m.bounded {
			turn.MaxWait = max(m.maxWait-time.Since(turn.Came), 1)
		}
		select { // a turn at the store renews the term of this process
		case <-ctx.Done():
		case <-time.After(nextTurn):
		}
	}
}

// nextTurn is when a term that is about to end may be a new one.
const nextTurn = 50 * time.Millisecond

// lasting returns how many of the permits may be used for SendWithin from now on, up to the first that may
// not. It settles the others: a part of a shared limit is this process's for a term.
func (s *Server) lasting(all []paceline.Permit) int {
	n := slices.IndexFunc(all, func(p paceline.Permit) bool { return !p.FreshFor(s.c.SendWithin) })
	if n < 0 {
		return len(all)
	}
	paceline.SettleAll(all[n:], limit.Outcome{Result: limit.Unsent})
	return n
}

// lasts is lasting for one permit.
func (s *Server) lasts(p paceline.Permit) bool { return s.lasting([]paceline.Permit{p}) == 1 }

// json writes the answer to an acquire.
func (i *issued) json(waited, sendWithin, ttl time.Duration) []byte {
	b := make([]byte, 0, 128+26*len(i.ids))
	b = append(b, `{"permits":[`...)
	for n := range i.ids {
		if n > 0 {
			b = append(b, ',')
		}
		b = append(b, '"')
		b = base64.RawURLEncoding.AppendEncode(b, i.ids[n][:])
		b = append(b, '"')
	}
	b = append(b, ']')
	b = appendNames(b, `,"keys":`, i.keys)
	b = appendNames(b, `,"targets":`, i.targets)
	add := func(name string, n int64) {
		b = append(b, name...)
		b = strconv.AppendInt(b, n, 10)
	}
	add(`,"send_by":`, i.sendBy)
	add(`,"send_within_ms":`, sendWithin.Milliseconds())
	add(`,"ttl_ms":`, ttl.Milliseconds())
	add(`,"waited_ms":`, waited.Milliseconds())
	return append(b, '}', '\n')
}

// appendNames writes a field with a list of names; nil: nothing.
func appendNames(b []byte, field string, names []string) []byte {
	if names == nil {
		return b
	}
	list, err := json.Marshal(names)
	if err != nil {
		panic(err) // cannot fail: every text has a JSON form
	}
	return append(append(b, field...), list...)
}
