package costs

import (
	"fmt"
	"strings"
	"time"

	"github.com/paceline-go/paceline/internal/text/rate"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/provider/classify"
)

// use compares the use of one limit, as answers of a window state it, with what counted here since the first of
// them. What was in flight when its attempt began counts, too. So a server that counts as we do never states more.
type use struct {
	first  point
	latest point // with the most use in this window
	jump   int64 // the most by which the use rose from one answer to the next: it may be a stranger's
	// more says that the server counts at least half as much again, without the jump. about and most are how much it
	// counts for what counts as one here, rounded up: at least, and at most. What is in flight may not be counted yet, and
	// what was in flight at first may have been. If sure, the two are close.
	more, sure, said bool
	about, most      int64
}

// point is an answer. Its use is of some instant between the beginning of its attempt and its end.
type point struct {
	used          int64
	counted, open limit.Cost // when the attempt began: what had begun, and the part of it in flight, without its own
	after         limit.Cost // what had begun when the answer came
	reset         time.Time
}

// enough is how much has to count here before the use is compared.
const enough = 3

// takes takes in the statement of an answer.
func (s *use) takes(now point, window time.Duration, u limit.Unit) {
	switch {
	case s.first.reset.IsZero() || now.reset.After(s.first.reset.Add(window/2)):
		s.first, s.latest, s.jump = now, now, 0
		return
	case now.used <= s.latest.used, now.reset.Before(s.first.reset.Add(-window / 2)): // late, or of the window before
		return
	}
	s.jump = max(s.jump, now.used-s.latest.used)
	s.latest = now
	begun := now.after[u] - s.first.counted[u]
	if begun < s.first.open[u] { // too much may have counted before
		if 2*now.open[u] <= s.first.open[u] {
			s.first, s.jump = now, 0
		}
		return
	}
	counted, rose := begun+s.first.open[u], now.used-s.first.used // at most
	settled := now.counted[u] - now.open[u] - s.first.after[u]    // at least
	if sure := 8*(counted-settled) <= counted; counted >= enough && settled > 0 && (sure || !s.sure) {
		s.more, s.sure = 2*(rose-s.jump) >= 3*counted, sure
		s.about, s.most = upwards(rose, counted), upwards(rose, settled)
	}
}

// between is the middle of about and most, if it is sure, and otherwise what is proven.
func (s *use) between() int64 {
	if !s.sure {
		return s.about
	}
	return upwards(s.about+s.most, 2)
}

func upwards(a, b int64) int64 { return (a + b - 1) / b }

// Remark is a limit that counts another thing than its server.
type Remark struct {
	Rule limit.Rule // as configured
	Unit limit.Unit // what the server counts
	For  limit.Unit // what it is compared with: requests, or the Unit
	// From and Each are about how much of it for one of what it is compared with: From, if the limit is of the
	// address, and
	// Each, if it is of the key.
	From, Each int64
}

// Limit is the configured limit as users write it.
func (r *Remark) Limit() string { return counted(&r.Rule, r.Rule.Unit) }

// Says is what the server counts.
func (r *Remark) Says() string {
	about := fmt.Sprint(r.Each)
	if r.From < r.Each {
		about = fmt.Sprintf("%d to %d", r.From, r.Each)
	}
	if r.Unit == r.For {
		return fmt.Sprintf("the server counts about %s times the %v that counts here, or others use it, too", about,
			r.Unit)
	}
	ours := 1
	if r.Unit == r.Rule.Unit {
		ours = 0
	}
	return fmt.Sprintf("the server counts a %v of about %s for each request, and %s counts %d, or others use it, too",
		r.Unit, about, r.Limit(), ours)
}

// Mends returns the limit that counts as the server does, as users write it.
func (r *Remark) Mends() string { return counted(&r.Rule, r.Unit) }

// Charge returns what the requests of a route cost, as users write it.
func (r *Remark) Charge() string { return fmt.Sprintf("%d %v", r.Each, r.Unit) }

func counted(rule *limit.Rule, u limit.Unit) string {
	text := rate.Rate{N: rule.N, Per: rule.Per}.String()
	if u == limit.Requests {
		return text
	}
	return strings.Replace(text, "/", fmt.Sprintf(" %v/", u), 1)
}

// Configured are the limits of a request that are configured for one scope.
type Configured struct {
	Scope provider.Scope
	Rules []limit.Rule
}

// Compares compares the use that the answer to an attempt states with the configured limits, which are
// of all scopes. Where the server counts as a limit does, or more, it puts into the verdict what is left of
// the limit. slow means that the answer states more than has counted here, and nothing is known yet of why:
// many requests at once might then be more than the server takes. Call it before Answered.
//
// A limit in requests is compared with the weight that is used. It is so if no limit of the request is in weight and the
// server counts more than 1 for one. The same goes for a limit in weight whose requests have no charge. If the server
// states what is left, that holds. Otherwise the number of the limit is believed to be one of weight.
func (n *Notices) Compares(seen *Seen, v *classify.Verdict, all []Configured) (wrong []Remark, slow bool) {
	if !seen.IsOpen() || v.Result != limit.Accepted {
		return nil, false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := range len(v.Said.Limits) {
		l := v.Said.Limits[i]
		u, ok := classify.UnitOf(l.Unit)
		policy, _ := v.Said.Policy(l.Policy)
		if !ok || u != limit.Weight && u != limit.Orders || !l.Used.OK || l.Reset.IsZero() ||
			policy.Window <= 0 {
			continue
		}
		for c := range all {
			rule := compares(all, &all[c], u, policy.Window)
			if rule == nil {
				continue
			}
			unit := rule.Unit
			if u == limit.Weight && seen[0].of.counted[unit] == 0 { // no charge says what a request weighs
				unit = limit.Requests
			}
			most := int64(float64(rule.N) * (float64(policy.Window) / float64(rule.Per)))
			each, remark, early := seen.uses(&l, policy.Window, unit, 2*l.Used.N >= most)
			slow = slow || early
			if remark != nil {
				remark.Rule, remark.Unit, remark.For = *rule, u, unit
				wrong = append(wrong, *remark)
			}
			left := most - l.Used.N
			switch {
			case rule.Unit != u && each <= 1: // a limit of requests may be as large as it is
				continue
			case l.Remaining.OK:
				left = l.Remaining.N
			}
			v.Add(provider.ServiceLimit{Policy: rule.Name, Unit: unitOf(unit, l.Unit), Scope: all[c].Scope,
				Remaining: provider.Count{N: max(left, 0) / each, OK: true}, Reset: l.Reset, Whole: l.Whole})
		}
	}
	return wrong, slow
}

// compares returns the rule of a scope to compare with a use in a unit; nil: there is none.
func compares(all []Configured, of *Configured, u limit.Unit, window time.Duration) (rule *limit.Rule) {
	own := false
	for i := range all {
		for k := range all[i].Rules {
			own = own || all[i].Rules[k].Unit == u
		}
	}
	for i := range of.Rules {
		switch r := &of.Rules[i]; {
		case own && (r.Unit != u || r.Per != window), !own && (u != limit.Weight || r.Unit != limit.Requests):
		case rule == nil || float64(r.N)*float64(rule.Per) < float64(rule.N)*float64(r.Per):
			rule = r
		}
	}
	return rule
}

// unitOf is the unit in which a limit counts: requests, or what is stated.
func unitOf(u limit.Unit, stated provider.Unit) provider.Unit {
	if u == limit.Requests {
		return provider.Requests
	}
	return stated
}

// uses takes in the stated use of a limit. It returns how much of that a unit is at most; 1: no more than one. It also
// returns what is to be said of that, if that is news: once it is sure, or soon. And it
// returns whether the first statement is more than what has counted.
func (s *Seen) uses(l *provider.ServiceLimit, window time.Duration, u limit.Unit, soon bool) (each int64,
	news *Remark, early bool) {
	is := statement{l.Unit, l.Policy, l.Resource}
	var of [2]*use
	for i := range of {
		k := s[i].of
		if of[i] = k.use(is); of[i] == nil {
			return 1, nil, false
		}
		if i == 0 {
			early = of[i].first.reset.IsZero() && l.Used.N > k.counted[u]
		}
		of[i].takes(point{l.Used.N, s[i].counted, s[i].open, k.counted, l.Reset}, window, u)
	}
	whose := 0
	if l.Scope == provider.IP || provider.OfAddress(l.Resource) {
		whose = 1
	}
	if !of[whose].more {
		return 1, nil, early
	}
	if !of[1].said && (of[whose].sure || soon) {
		of[1].said = true
		news = &Remark{From: of[whose].between(), Each: max(of[0].between(), of[whose].between())}
	}
	return max(of[0].most, of[whose].most), news, early
}

// use returns the comparisons of a limit; nil: there are too many.
func (k *steps) use(is statement) *use {
	u := k.uses[is]
	if u == nil && len(k.uses) < mostStatements {
		if k.uses == nil {
			k.uses = map[statement]*use{}
		}
		is.name, is.resource = strings.Clone(is.name), strings.Clone(is.resource)
		u = &use{}
		k.uses[is] = u
	}
	return u
}

// FirstUse looks at the answer to an attempt that did not begin here. It reports whether the answer is the first of its
// host that states what is used. Later attempts are to begin here.
func (n *Notices) FirstUse(host string, v *classify.Verdict) bool {
	for i := range v.Said.Limits {
		l := &v.Said.Limits[i]
		if u, ok := classify.UnitOf(l.Unit); ok && l.Used.OK && (u == limit.Weight || u == limit.Orders) {
			n.mu.Lock()
			defer n.mu.Unlock()
			return n.reads(host)
		}
	}
	return false
}
