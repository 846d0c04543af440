package permit

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/paceline-go/paceline/internal/app/proxy"
	"github.com/paceline-go/paceline/limit"
)

// upstreams is the proxy whose upstreams give permits, too; nil: there is none now.
func (s *Server) upstreams() *proxy.Proxy {
	if s.c.Proxy == nil {
		return nil
	}
	return s.c.Proxy()
}

// outside is a request of a client in the line of an upstream. Its client is one like a run of the proxy,
// and no run has such a name.
func (s *Server) outside(client, credential string, cost limit.Cost) proxy.Outside {
	about := s.about(client)
	name := "permits"
	if client != "" {
		name += " of " + client
	}
	return proxy.Outside{Client: proxy.Client{Name: name, Weight: about.Weight, HeadStart: about.HeadStart},
		Credential: credential, Cost: cost}
}

// turnThere waits for the turn in the line of an upstream, and takes as many more as may go then.
func (s *Server) turnThere(ctx context.Context, m *acquire) (all []grant, x *refusal) {
	p := s.upstreams()
	if p == nil {
		return nil, s.noLimit(m.limit)
	}
	o := s.outside(m.client, m.credential, m.cost)
	if o.MaxWait = longestWait; m.bounded {
		o.MaxWait = m.maxWait
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.over, func() { cancel(context.Cause(s.over)) })()
	for len(all) < m.n {
		l, err := p.Leave(ctx, m.limit, o)
		switch {
		case l == nil && len(all) > 0:
			return all, nil
		case l == nil && err == nil:
			return nil, s.noLimit(m.limit)
		case err != nil:
			return nil, noTurnThere(ctx, m.limit, err)
		}
		all, o.MaxWait = append(all, grant{leave: l}), 0
	}
	return all, nil
}

// namesThere are the keys and the targets of an upstream in whose limits permits count, one for each permit.
// Nil: the permits have none.
func namesThere(all []grant) (keys, targets []string) {
	of := func(name func(l *proxy.Leave) string) (names []string) {
		for i := range all {
			if l := all[i].leave; l != nil && name(l) != "" {
				if names == nil {
					names = make([]string, len(all))
				}
				names[i] = name(l)
			}
		}
		return names
	}
	return of(func(l *proxy.Leave) string { return l.Key }), of(func(l *proxy.Leave) string { return l.Target })
}

// noTurnThere is why there is no turn at an upstream.
func noTurnThere(ctx context.Context, upstream string, err error) *refusal {
	e, ok := errors.AsType[*proxy.NoLeaveError](err)
	switch {
	case errors.Is(context.Cause(ctx), errStopping):
		return refuse(http.StatusServiceUnavailable, "stopping", "the daemon is stopping; nothing was granted")
	case !ok:
		return &refusal{gone: true}
	}
	x := refuse(e.Status, e.Kind, "%s", e.Detail)
	x.Title, x.Limit, x.Ahead = e.Title, upstream, &e.Ahead
	x.WaitMS = int64((e.Wait + time.Millisecond - 1) / time.Millisecond)
	if titles[e.Kind] == "" {
		x.Type = proxy.Kinds + e.Kind
	}
	return x
}

// settle ends a request in the line of an upstream as its holder reports.
func (m *settlement) settle(l *proxy.Leave) {
	h := m.header
	if m.retryAfter > 0 { // a header of a report goes with a status, and has its own
		h = http.Header{"Retry-After": {strconv.FormatInt(int64((m.retryAfter+time.Second-1)/time.Second), 10)}}
	}
	switch {
	case m.status != 0:
		l.Answered(m.status, h, m.body, m.actual)
	case m.result == "accepted":
		l.Answered(http.StatusOK, h, "", m.actual)
	case m.result == "refused":
		l.Answered(http.StatusTooManyRequests, h, "", m.actual)
	case m.result == "failed":
		l.Answered(http.StatusInternalServerError, h, "", m.actual)
	case m.result == "unsent":
		l.Unsent()
	default:
		l.Lost()
	}
}
