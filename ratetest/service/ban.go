package service

import (
	"time"

	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/provider"
)

// outlaw counts the refusals of a client or address, which may be banned.
type outlaw struct {
	inARow int
	until  mono.Time
	next   time.Duration // the length of the next ban
}

// banRule is a rule for bans. A client or address is banned after a number of refusals without a
// request between them that passed.
type banRule struct {
	scope  provider.Scope
	after  int
	by     string // only refusals by this limit count; empty: all
	beyond string // after is the difference between this limit and by; refused requests count towards it
	atOnce bool   // the last of those refusals announces the ban
	// first is the length of the first ban. Each ban is twice as long as the one before, up to
	// most.
	first, most time.Duration
}

// banOf returns the provider's rule for bans with these limits, nil if there is none.
func banOf(row *tableRow, limits []provider.Policy) *banRule {
	if row.ban == nil || row.ban.beyond == "" {
		return row.ban
	}
	b, above := *row.ban, map[string]int64{}
	for _, p := range limits {
		above[p.Name] = p.Limit
	}
	b.after = int(max(above[b.beyond]-above[b.by], 1))
	return &b
}

func (b *banRule) who(a *asked) string {
	if b.scope == provider.IP {
		return a.Addr
	}
	return a.Client
}

// outlaw returns the record of a client or address that may be banned, and its name. The lock is
// held.
func (s *Server) outlaw(who string) (*outlaw, string) {
	o := s.outlaws[who]
	if o == nil && len(s.outlaws) >= mostGauges {
		who = everybody
		o = s.outlaws[who]
	}
	if o == nil {
		o = &outlaw{until: mono.Min, next: s.ban.first}
		s.outlaws[who] = o
	}
	return o, who
}

// banish counts a refusal, and bans after too many. The lock is held.
func (s *Server) banish(a *reply, o *outlaw, now mono.Time) {
	b := s.ban
	if b == nil || b.by != "" && b.by != a.by.Name {
		return
	}
	if o.inARow++; o.inARow < b.after {
		return
	}
	o.inARow, o.until = 0, now.Add(o.next)
	a.until = a.now.Add(o.next)
	o.next = min(2*o.next, b.most)
}
