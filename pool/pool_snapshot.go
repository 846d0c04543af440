package pool

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/paceline-go/paceline/internal/text"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/observe"
)

// look is the material of a Pool's Snapshots, guarded by the Pool's lock.
type look struct {
	waits   observe.Waits
	resent  int64
	answers observe.Answers
	events  observe.EventLog
}

// soon is the longest wait that counts as no wait.
const soon = time.Millisecond

// went counts the wait of an attempt's request, at its first attempt alone.
func (v *look) went(a *Attempt) {
	if a.Number > 1 {
		v.resent++
		return
	}
	d := a.At.Sub(a.Submitted)
	if d < soon || !v.waits.Noted() {
		v.waits.AtOnce++
		return
	}
	v.waits.Add(v.waits.Head(), d)
}

// sampleLocked records, now and then, the limit for which the head of the queue waits. It is a
// limit of the key that may go first.
func (p *Pool) sampleLocked(now mono.Time) {
	if p.queue.Counts().Waiting == 0 || !p.look.waits.Due(now) {
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
	p.look.waits.Note(now, name)
}

// answered records the evidence of an answer.
func (v *look) answered(now mono.Time, p *Pool, a *Attempt, ans *Answer) {
	host := a.Host()
	if ans.Result == limit.Accepted || ans.Result == limit.Failed || ans.Result == limit.Limited {
		v.answers.Add(now, host, cmp.Or(ans.RTT, now.Sub(a.At)))
	}
	e := observe.Event{Whose: observe.Whose{Host: host, Key: p.config.Keys[a.Key].Name}}
	switch {
	case ans.Banned:
		e.Kind, e.Text = observe.EventBanned, because("the key is out of use", ans.Reason)
		if ans.Out == observe.KeyDenied {
			e.Kind = observe.EventDenied
		}
	case ans.Result == limit.Limited:
		e.Kind, e.Text = observe.EventRefused, because("the server refused a request", ans.Reason)
		if ans.RetryAfter > 0 {
			e.Text += "; it asks to stay away for " + text.Span(ans.RetryAfter)
		}
	default:
		return
	}
	v.events.Note(p.time(now), e)
}

func because(what, why string) string {
	if why == "" {
		return what
	}
	return what + ": " + why
}

// outage notes that a host is down, or back.
func (v *look) outage(h *HostInfo) {
	e := observe.Event{Whose: observe.Whose{Host: h.Host}}
	e.Kind, e.Text = observe.EventBack, "the host is back after "+text.Span(h.Lasted)
	if h.Down {
		e.Kind, e.Text = observe.EventDown, because(fmt.Sprintf("nothing arrives at the host (%v)", h.Kind), h.Reason)
	}
	v.events.Note(time.Now(), e)
}

// slow notes that a host answers too slowly for its requests.
func (v *look) slow(s *slowHost) {
	v.events.Note(time.Now(), observe.Event{Kind: observe.EventSlow, Whose: observe.Whose{Host: s.Host}, Text: s.String()})
}

// noteOf returns a function that makes an Event about the limit of a key.
func (p *Pool) noteOf(key string) func(kind, text string) {
	return func(kind, text string) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.look.events.Note(time.Now(), observe.Event{Kind: kind, Whose: observe.Whose{Key: key}, Text: text})
	}
}

// time converts an instant of the Pool's scale to a time.
func (p *Pool) time(t mono.Time) time.Time { return p.epoch.Add(time.Duration(t)) }

// Snapshot returns the state of the Pool now: its keys, the limits of each, and all requests as
// those of one client without a name.
func (p *Pool) Snapshot() observe.Snapshot {
	var s observe.Snapshot
	p.mu.Lock()
	now := p.Now()
	s.At, s.Since = p.time(now), p.began
	p.keysLocked(now, &s)
	s.Clients = make([]observe.ClientState, 1)
	p.waitingLocked(now, &s)
	for _, h := range p.dispatcher.Hosts(now) {
		if h.Down {
			s.Paused = append(s.Paused, observe.PauseState{
				Whose: observe.Whose{Host: h.Host}, Since: p.time(h.Since), Next: p.time(h.Next),
				Down: true, Why: h.Reason,
			})
		}
	}
	var waits observe.Waits
	waits.Merge(&p.look.waits)
	s.Events, s.Resent = p.look.events.All(), p.look.resent
	s.Upstream = p.look.answers.Append(nil, now)
	p.mu.Unlock()
	s.Waits = waits.Append(nil, "")
	one := &s.Clients[0]
	one.Waiting, one.InFlight, one.LongestWait = s.Waiting, s.InFlight, s.LongestWait
	one.Weight, one.Counts = 1, s.Counts
	s.Sort()
	return s
}

// keysLocked fills in the keys, their limits and pauses, and the outcomes of their attempts.
func (p *Pool) keysLocked(now mono.Time, s *observe.Snapshot) {
	usage := make([]limit.Usage, 0, 8)
	var listed []*Shared // limits that keys share are listed once, under their own name
	for i := range p.config.Keys {
		k := p.dispatcher.KeyInfo(now, i)
		key := observe.KeyState{
			Name: k.Name, State: observe.KeyOK, InFlight: k.InFlight,
			Counts: observe.StatsOf(int64(k.Sent), &k.Tally).Counts(),
		}
		pause := observe.PauseState{Whose: observe.Whose{Key: k.Name}}
		switch {
		case k.Banned():
			key.State, key.Why = cmp.Or(k.Out, observe.KeyBanned), k.Reason
		case k.Rests:
			if key.State = observe.KeyPaused; k.Until < limit.AfterSettle {
				key.Until = p.time(k.Until)
			}
			pause.Until, pause.Next, pause.Why, key.Why = key.Until, key.Until, text.ByUser, text.ByUser
			s.Paused = append(s.Paused, pause)
		case k.Cooling():
			key.State, key.Until = observe.KeyPaused, p.time(k.Until)
			pause.Until, pause.Next = key.Until, p.time(k.Next)
			pause.Why = fmt.Sprintf("refused, %d in a row", k.Refusals)
			key.Why = pause.Why
			s.Paused = append(s.Paused, pause)
		}
		s.Keys, s.InFlight = append(s.Keys, key), s.InFlight+k.InFlight
		observe.AddCounts(&s.Counts, &key.Counts)
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
}

// Stats returns the outcomes of the attempts of all keys, as of one instant. Keys has the same for
// each key. Waiting counts requests; the other fields count attempts: a request that was sent twice
// was admitted twice. Counts has the ends of requests.
func (p *Pool) Stats() observe.Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.Now()
	var all limit.Tally
	admitted, inFlight := int64(0), 0
	for i := range p.config.Keys {
		k := p.dispatcher.KeyInfo(now, i)
		inFlight += k.InFlight
		admitted += int64(k.Sent)
		all.Add(&k.Tally)
	}
	s := observe.StatsOf(admitted, &all)
	s.At, s.Waiting, s.InFlight = p.time(now), p.queue.Counts().Waiting, inFlight
	return s
}

func (p *Pool) limitLocked(now mono.Time, i int, u *limit.Usage, key *observe.KeyState) observe.LimitState {
	l := observe.LimitOf(u)
	l.Key, l.PausedUntil, l.Why = key.Name, key.Until, key.Why
	l.StoredIn(p.config.Keys[i].Limiter)
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

// waitingLocked fills in the waiting requests. The head has waited for longest, as far as the queue
// is in the order of arrival.
func (p *Pool) waitingLocked(now mono.Time, s *observe.Snapshot) {
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

// mostKeys is how many keys an estimate asks. If there are more, these represent the others.
const mostKeys = 8

// lastGoesLocked estimates when the last of n requests goes, if each costs as much as the head of
// the queue. All keys work together, each at its most. The result is limit.AfterSettle or
// limit.Never if no instant is known.
func (p *Pool) lastGoesLocked(now mono.Time, n int, cost limit.Cost) mono.Time {
	var keys []int
	step := (len(p.config.Keys) + mostKeys - 1) / mostKeys
	var seen []*Shared
	for i := 0; i < len(p.config.Keys); i += step {
		k := p.dispatcher.KeyInfo(now, i)
		again := slices.ContainsFunc(k.Shared, func(s *Shared) bool { return slices.Contains(seen, s) })
		if !k.Banned() && !again { // of keys that share limits, one represents all
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
	const parts = 1 << 10 // the resolution of the estimate
	between := last.Sub(now)
	k := sort.Search(parts, func(k int) bool { return together(now.Add(between/parts*time.Duration(k))) >= n })
	return now.Add(between / parts * time.Duration(k))
}
