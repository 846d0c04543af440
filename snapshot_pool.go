package paceline

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/paceline-go/paceline/internal/core/histogram"
	"github.com/paceline-go/paceline/internal/text/humanize"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/pool/dispatch"
)

// poolLook is what a Pool keeps for its Snapshots, guarded by its lock.
type poolLook struct {
	waits  waits
	atOnce int64
	resent int64
	times  histogram.Named // of answers, by host
	events events
}

// soon is the time within which a request of a Pool counts as having gone at once.
const soon = time.Millisecond

// went counts how long the request of an attempt has waited. Only its first attempt counts.
func (v *poolLook) went(a *dispatch.Attempt) {
	if a.Number > 1 {
		v.resent++
		return
	}
	d := a.At.Sub(a.Submitted)
	if d < soon || len(v.waits.each) == 0 {
		v.atOnce++
		return
	}
	v.waits.each[v.waits.bound].Add(d)
}

// sampleLocked looks, now and then, at what the head of the queue waits for: of the key that may go first.
func (p *Pool) sampleLocked(now mono.Time) {
	if !p.look.waits.due(now) {
		return
	}
	_, r, ok := p.queue.Head(now)
	if !ok {
		return
	}
	first, name := limit.Never, "keys"
	for i := range p.config.Keys {
		if at, b := p.dispatcher.Explain(now, i, r.Cost); at < first && at > now {
			first, name = at, b.Name
		}
	}
	p.look.waits.sees(now, name)
}

// answered notes what an answer has shown.
func (v *poolLook) answered(now mono.Time, p *Pool, a *dispatch.Attempt, ans *dispatch.Answer) {
	host := a.Host()
	if ans.Result == limit.Accepted || ans.Result == limit.Failed || ans.Result == limit.Limited {
		v.times.Add(time.Duration(now), host, cmp.Or(ans.RTT, now.Sub(a.At)))
	}
	whose := Whose{Host: host, Key: p.config.Keys[a.Key].Name}
	switch {
	case ans.Banned:
		v.events.note(p.time(now), Event{Kind: EventBanned, Whose: whose, Text: because("the key is out of use", ans.Reason)})
	case ans.Result == limit.Limited:
		text := because("the server refused a request", ans.Reason)
		if ans.RetryAfter > 0 {
			text += "; it asks to stay away for " + humanize.Span(ans.RetryAfter)
		}
		v.events.note(p.time(now), Event{Kind: EventRefused, Whose: whose, Text: text})
	}
}

func because(what, why string) string {
	if why == "" {
		return what
	}
	return what + ": " + why
}

// outage notes that a host is down, or back.
func (v *poolLook) outage(h *dispatch.HostInfo) {
	e := Event{Kind: EventBack, Whose: Whose{Host: h.Host}, Text: "the host is back after " + humanize.Span(h.Lasted)}
	if h.Down {
		e.Kind, e.Text = EventDown, because(fmt.Sprintf("nothing arrives at the host (%v)", h.Kind), h.Reason)
	}
	v.events.note(time.Now(), e)
}

// noteOf returns what makes an Event of what happened to the limit of a key.
func (p *Pool) noteOf(key string) func(kind, text string) {
	return func(kind, text string) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.look.events.note(time.Now(), Event{Kind: kind, Whose: Whose{Key: key}, Text: text})
	}
}

// time returns an instant of the Pool's scale as a time.
func (p *Pool) time(t mono.Time) time.Time { return p.epoch.Add(time.Duration(t)) }

// Snapshot returns the state of the Pool now: its keys, the limits of each, and all requests as those of one client without a name.
func (p *Pool) Snapshot() Snapshot {
	var s Snapshot
	p.mu.Lock()
	now := p.Now()
	s.At, s.Since = p.time(now), p.began
	all := past{atOnce: p.look.atOnce}
	usage := make([]limit.Usage, 0, 8)
	var listed []*dispatch.Shared // limits that keys share are listed once, under their own name
	for i := range p.config.Keys {
		k := p.dispatcher.KeyInfo(now, i)
		key := KeyState{Name: k.Name, State: KeyOK, InFlight: k.InFlight, Counts: countsOf(int64(k.Sent), &k.Tally)}
		pause := PauseState{Whose: Whose{Key: k.Name}}
		switch k.State {
		case dispatch.Banned:
			key.State, key.Why = KeyBanned, k.Reason
		case dispatch.Cooling:
			key.State, key.Until = KeyPaused, p.time(k.Until)
			pause.Until, pause.Next, pause.Why = key.Until, p.time(k.Next), fmt.Sprintf("refused, %d in a row", k.Refusals)
			key.Why = pause.Why
			s.Paused = append(s.Paused, pause)
		}
		s.Keys, s.InFlight = append(s.Keys, key), s.InFlight+k.InFlight
		all.Counts.add(&key.Counts)
		usage = p.dispatcher.AppendUsage(usage[:0], now, i)
		for _, u := range usage {
			s.Limits = append(s.Limits, p.limitLocked(now, i, &u, &key))
		}
		for _, together := range k.Shared {
			if slices.Contains(listed, together) {
				continue
			}
			listed = append(listed, together)
			key.Name = together.Name
			usage = together.AppendUsage(usage[:0], now)
			for _, u := range usage {
				s.Limits = append(s.Limits, p.limitLocked(now, i, &u, &key))
			}
		}
	}
	s.Clients = make([]ClientState, 1)
	p.waitingLocked(now, &s)
	for _, h := range p.dispatcher.Hosts(now) {
		if h.Down {
			s.Paused = append(s.Paused, PauseState{Whose: Whose{Host: h.Host}, Since: p.time(h.Since), Next: p.time(h.Next), Down: true, Why: h.Reason})
		}
	}
	all.waits = append(all.waits, p.look.waits.each...)
	s.Events, s.Resent = p.look.events.all(), p.look.resent
	told := p.look.times.Told(time.Duration(now))
	p.mu.Unlock()
	for i := range told {
		h := &told[i]
		s.Upstream = append(s.Upstream, UpstreamTimes{h.Name, h.P50, h.P90, h.P99, h.Max, times(&h.Classes)})
	}
	s.Counts = all.Counts
	s.Waits = all.appendWaits(nil, "")
	one := &s.Clients[0]
	one.Waiting, one.InFlight, one.LongestWait, one.Weight, one.Counts = s.Waiting, s.InFlight, s.LongestWait, 1, s.Counts
	s.order()
	return s
}

func countsOf(sent int64, t *limit.Tally) Counts {
	return Counts{
		Sent: sent, Accepted: t.Accepted, Limited: t.Limited, Failed: t.Failed, Unknown: t.Unknown, Unsent: t.Unsent, Used: AmountsOf(t.Used),
	}
}

func (p *Pool) limitLocked(now mono.Time, i int, u *limit.Usage, key *KeyState) LimitState {
	l := limitState(u)
	l.Key, l.PausedUntil, l.Why = key.Name, key.Until, key.Why
	cost := limit.One
	cost[u.Unit] = 1
	switch at, _ := p.dispatcher.Explain(now, i, cost); {
	case at >= limit.AfterSettle:
		l.NextUnknown = true
	case at > now:
		l.Next = p.time(at)
	}
	return l
}

// waitingLocked tells who waits: the head for longest, as far as the queue is in the order in which they came.
func (p *Pool) waitingLocked(now mono.Time, s *Snapshot) {
	if s.Waiting = p.queue.Counts().Waiting; s.Waiting == 0 {
		return
	}
	t, r, ok := p.queue.Head(now)
	if !ok {
		return
	}
	s.LongestWait = max(0, now.Sub(p.queue.Info(t).Submitted))
	on, first := -1, limit.Never
	var name string
	for i := range p.config.Keys {
		if at, b := p.dispatcher.Explain(now, i, r.Cost); at < first {
			on, first, name = i, at, b.Name
		}
	}
	if at := p.lastGoesLocked(now, s.Waiting, r.Cost); at > now && at < limit.AfterSettle {
		s.Clients[0].LastGoes = p.time(at)
	}
	if on < 0 || first <= now {
		return
	}
	whose := []string{p.config.Keys[on].Name}
	for _, together := range p.dispatcher.KeyInfo(now, on).Shared {
		whose = append(whose, together.Name)
	}
	for i := range s.Limits {
		if l := &s.Limits[i]; slices.Contains(whose, l.Key) && l.Name == name {
			l.Waiting = s.Waiting
			break
		}
	}
}

// mostKeys is how many keys are asked for a guess. Where there are more, they stand for the others.
const mostKeys = 8

// lastGoesLocked guesses when the last of n requests goes, if all cost as much as the head of the queue does: with all keys together, each of
// which takes as many as it can. At limit.AfterSettle or limit.Never no instant is known.
func (p *Pool) lastGoesLocked(now mono.Time, n int, cost limit.Cost) mono.Time {
	var keys []int
	step := (len(p.config.Keys) + mostKeys - 1) / mostKeys
	var seen []*dispatch.Shared
	for i := 0; i < len(p.config.Keys); i += step {
		k := p.dispatcher.KeyInfo(now, i)
		again := slices.ContainsFunc(k.Shared, func(s *dispatch.Shared) bool { return slices.Contains(seen, s) })
		if k.State != dispatch.Banned && !again { // of keys that share limits one stands for all
			keys, seen = append(keys, i), append(seen, k.Shared...)
		}
	}
	n = (n + step - 1) / step
	together := func(at mono.Time) (sum int) { // how many go until then
		for _, i := range keys {
			sum += sort.Search(n, func(k int) bool { return p.dispatcher.Expect(now, i, k+1, cost) > at })
		}
		return sum
	}
	last := limit.Never
	for _, i := range keys {
		last = min(last, p.dispatcher.Expect(now, i, n, cost))
	}
	if last >= limit.AfterSettle {
		return last
	}
	const parts = 1 << 10 // so exact is a guess
	between := last.Sub(now)
	k := sort.Search(parts, func(k int) bool { return together(now.Add(between/parts*time.Duration(k))) >= n })
	return now.Add(between / parts * time.Duration(k))
}
