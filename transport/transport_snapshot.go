package transport

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/internal/core/histogram"
	"github.com/paceline-go/paceline/internal/core/stack"
	"github.com/paceline-go/paceline/internal/text"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/observe"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/provider/classify"
	"github.com/paceline-go/paceline/tokens"
)

// look is the material of a Transport's Snapshots, besides that of its Group.
type look struct {
	mu      sync.Mutex
	answers observe.Answers
	used    map[string]observe.Amounts // used tokens by the answers, by client
	rests   map[*call]rest             // calls between two attempts

	// gone is the counts of forgotten partitions, by host and key; guarded by the Transport's lock.
	gone map[Partition]observe.Counts
}

// rest is the wait of a call until its next attempt. It is in no lane.
type rest struct {
	client string
	since  time.Time
}

// begins notes that a call rests, until ends.
func (v *look) begins(c *call) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.rests == nil {
		v.rests = map[*call]rest{}
	}
	v.rests[c] = rest{c.leaf.partition.Client, time.Now()}
}

func (v *look) ends(c *call) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.rests, c)
}

// restsLocked counts resting calls as waiting. A Group knows only those in line.
func (v *look) restsLocked(s *observe.Snapshot) {
	for _, r := range v.rests {
		long := s.At.Sub(r.since)
		s.Waiting++
		s.LongestWait = max(s.LongestWait, long)
		for i := range s.Clients {
			if c := &s.Clients[i]; c.Name == r.client {
				c.Waiting++
				c.LongestWait = max(c.LongestWait, long)
			}
		}
	}
}

// answered counts how long an answer of a host took.
func (v *look) answered(now time.Duration, host string, took time.Duration) {
	if took <= 0 {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.answers.Add(mono.Time(now), host, took)
}

// uses adds the used tokens that an answer states, however the server counts them.
func (v *look) uses(client string, u *tokens.Usage) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.used == nil {
		v.used = map[string]observe.Amounts{}
	}
	if _, ok := v.used[client]; !ok && len(v.used) >= maxGone {
		client = histogram.Other
	}
	a := v.used[client]
	a.Input += u.Input
	a.Output += u.Output
	a.Tokens += u.Total
	v.used[client] = a
}

// whose returns a partition in the form of Snapshots.
func (p Partition) whose() observe.Whose {
	return observe.Whose{Target: p.Target, Host: p.Host, Key: p.Key, Model: p.Model, Resource: p.Resource, Route: p.Route,
		Client: p.Client}
}

// looks adds a node's description for Snapshots to the configuration of its limit.
func (n *node) looks(c paceline.LimitConfig) paceline.LimitConfig {
	c.Whose = n.in().whose()
	c.Paused = n.paused
	return c
}

// paused returns the pause of a node. It is called under the Group's lock.
func (n *node) paused(now mono.Time) (s observe.PauseState, on bool) {
	at := n.t.group.Time
	if p, is := n.stack.Paused(now); is {
		s = observe.PauseState{Since: at(p.Since), Until: at(p.Until), Next: at(p.Next), Why: pauseWords(&p, n.refusal)}
		on = true
	}
	if r, is := n.rested(now); is && (r.Until.IsZero() || r.Until.After(s.Until)) {
		s, on = r, true
	}
	s.Whose = n.in().whose()
	return s, on
}

// downs returns the outage of a host, if nothing goes there. It is called under the Group's lock.
func (n *node) downs(now mono.Time) (s observe.PauseState, on bool) {
	st := n.health.State(now)
	if !st.Down {
		return s, false
	}
	s = observe.PauseState{Whose: n.in().whose(), Since: n.t.group.Time(st.Since), Next: n.t.group.Time(st.Next),
		Down: true}
	s.Why = fmt.Sprintf("nothing arrives at the host (%v)", st.Kind)
	return s, true
}

func pauseWords(p *stack.Pause, why provider.Refusal) string {
	who := map[stack.Why]string{stack.Asked: "the server asks for it",
		stack.Guessed: "the server did not say for how long", stack.Held: "held"}[p.Why]
	if why == provider.None {
		return who
	}
	return fmt.Sprintf("refused: %s; %s", why, who)
}

// note makes an Event of a partition.
func (t *Transport) note(kind string, p Partition, text string) {
	t.view.Note(observe.Event{Kind: kind, Whose: p.whose(), Text: text})
}

// noteRefused makes an Event of a refusal, in words.
func (t *Transport) noteRefused(s *sent, status int, o provider.Observation, p Partition) {
	kind := observe.EventRefused
	if o.Refusal == provider.Banned {
		kind = observe.EventBanned
	}
	t.note(kind, p, classify.DescribeRefusal(s.headed, status, o))
}

// notePaused makes an Event of a pause that begins.
func (t *Transport) notePaused(p Partition, d time.Duration, asked bool) {
	text := "stays away for " + text.Span(d.Round(time.Millisecond))
	if asked {
		text += ", as the server asks"
	}
	t.note(observe.EventPaused, p, text)
}

func (t *Transport) noteMisfit(p Partition, m *limit.Misfit) {
	t.note(observe.EventWrong, p, fmt.Sprintf("the limit of %v is wrong, or others use it, too: %d fit", m.Rule, m.Fits))
}

// forgetsLocked adds the counts of a partition that is to be forgotten to those of its key.
func (v *look) forgetsLocked(l *leaf) {
	if l.partition.Key == "" {
		return
	}
	p := Partition{Host: l.partition.Host, Key: l.partition.Key}
	if _, ok := v.gone[p]; !ok && len(v.gone) >= maxGone {
		return
	}
	if v.gone == nil {
		v.gone = map[Partition]observe.Counts{}
	}
	sum, more := v.gone[p], l.lane.Stats().Counts()
	observe.AddCounts(&sum, &more)
	v.gone[p] = sum
}

// mostGone is for how many keys the counts of forgotten partitions are kept.
const maxGone = 1000

// Snapshot returns the state of the Transport now. A request counts as often as it was sent.
func (t *Transport) Snapshot() observe.Snapshot {
	s := t.view.Snapshot()
	s.Pauses, s.Resent = t.pauses.Load(), t.resent.Load()
	for _, k := range t.choice.Load().keys {
		if !k.Away {
			s.Keys = append(s.Keys, t.shown(t.rested(t.keyState(k), k.account.name), k.account))
		}
	}
	s.Keys = append(s.Keys, t.keyStates()...)
	s.Frozen = t.frozenState()
	t.look.mu.Lock()
	t.look.restsLocked(&s)
	s.Upstream = t.look.answers.Append(s.Upstream, mono.Time(t.now()))
	for i := range s.Clients {
		c := &s.Clients[i]
		c.Used = withTokens(c.Used, t.look.used[c.Name])
	}
	all := observe.Amounts{}
	for _, used := range t.look.used {
		all.Input, all.Output, all.Tokens = all.Input+used.Input, all.Output+used.Output, all.Tokens+used.Tokens
	}
	s.Used = withTokens(s.Used, all)
	t.look.mu.Unlock()
	return s
}

// withTokens replaces the tokens that limits counted, which may be reserved ones, by those that
// answers stated.
func withTokens(a, told observe.Amounts) observe.Amounts {
	if told.Tokens > 0 {
		a.Input, a.Output, a.Tokens = told.Input, told.Output, told.Tokens
	}
	return a
}

// keyStates returns the states of the keys of all requests.
func (t *Transport) keyStates() (all []observe.KeyState) {
	t.mu.Lock()
	leaves := make([]*leaf, 0, len(t.leaves))
	for _, l := range t.leaves {
		if l.partition.Key != "" {
			l.active.Add(1) // to prevent that it is forgotten meanwhile
			leaves = append(leaves, l)
		}
	}
	states := map[Partition]*observe.KeyState{}
	state := func(p Partition) *observe.KeyState {
		if states[p] == nil {
			states[p] = &observe.KeyState{Host: p.Host, Name: p.Key, State: observe.KeyOK}
		}
		return states[p]
	}
	for p, c := range t.look.gone {
		state(p).Counts = c
	}
	t.mu.Unlock()
	for _, l := range leaves {
		k, stats := state(Partition{Host: l.partition.Host, Key: l.partition.Key}), l.lane.Stats()
		more := stats.Counts()
		observe.AddCounts(&k.Counts, &more)
		k.InFlight += stats.InFlight
		t.tellState(k, l.nodes[l.at(provider.Key)])
		l.release()
	}
	for _, k := range states {
		all = append(all, t.rested(*k, k.Name))
	}
	slices.SortFunc(all, func(a, b observe.KeyState) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// tellState fills in why requests with a key stay away.
func (t *Transport) tellState(k *observe.KeyState, n *node) {
	if n.in().Scope != provider.Key {
		return
	}
	t.group.Update(func(now mono.Time) {
		p, on := n.stack.Paused(now)
		if !on {
			return
		}
		k.State, k.Until, k.Why = observe.KeyPaused, t.group.Time(p.Until), pauseWords(&p, n.refusal)
		if n.refusal == provider.Banned {
			k.State = observe.KeyBanned
		}
	})
}
