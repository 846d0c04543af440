package prom

import (
	"cmp"
	"slices"

	"github.com/paceline-go/paceline/observe"
)

// WithoutNames returns a Source whose Snapshots name no client, key, host or target, for readers who
// must not know them. What differs in such a name alone is one: counts, usage and ceilings are sums,
// shares and times to wait are those of the worst. The state of all keys is the worst of one. Models,
// routes, resources and the names of limits stay, as does the name of the Source. It is safe for
// concurrent use if s is.
func WithoutNames(s observe.Source) observe.Source { return nameless{s} }

type nameless struct{ observe.Source }

// Snapshot implements observe.Source.
func (n nameless) Snapshot() observe.Snapshot {
	s := n.Source.Snapshot()
	s.Limits, s.Clients, s.Events = mergedLimits(s.Limits), mergedClients(s.Clients), nil
	s.Keys = worstKey(s.Keys)
	s.Paused = slices.Clone(s.Paused)
	for i := range s.Paused {
		s.Paused[i].Whose, s.Paused[i].Why = unnamed(s.Paused[i].Whose), ""
	}
	s.Waits = slices.Clone(s.Waits)
	for i := range s.Waits {
		s.Waits[i].Client = ""
	}
	s.Upstream = slices.Clone(s.Upstream)
	for i := range s.Upstream {
		s.Upstream[i].Host = ""
	}
	return s
}

func unnamed(w observe.Whose) observe.Whose {
	return observe.Whose{Model: w.Model, Route: w.Route, Resource: w.Resource}
}

// mergedLimits makes one of limits that differ in their owner alone.
func mergedLimits(all []observe.LimitState) (merged []observe.LimitState) {
	for i := range all {
		l := all[i]
		l.Whose, l.Why, l.Fits = unnamed(l.Whose), "", cmp.Or(l.Fits, l.PerWindow)
		at := slices.IndexFunc(merged, func(m observe.LimitState) bool {
			return m.Whose == l.Whose && m.Name == l.Name && m.Unit == l.Unit && m.Window == l.Window
		})
		if at < 0 {
			merged = append(merged, l)
			continue
		}
		m := &merged[at]
		m.Used, m.Open, m.Allowed = m.Used+l.Used, m.Open+l.Open, m.Allowed+l.Allowed
		m.PerWindow, m.Fits = m.PerWindow+l.PerWindow, m.Fits+l.Fits
		m.Total, m.Recent, m.Waiting = m.Total+l.Total, m.Recent+l.Recent, m.Waiting+l.Waiting
		m.Share = max(m.Share, l.Share)
	}
	return merged
}

func mergedClients(all []observe.ClientState) []observe.ClientState {
	if len(all) == 0 {
		return nil
	}
	var sum observe.ClientState
	for i := range all {
		add(&sum, &all[i])
	}
	return []observe.ClientState{sum}
}

// badness orders the states of keys.
var badness = map[string]int{observe.KeyPaused: 1, observe.KeyDenied: 2, observe.KeyNoCredit: 3, observe.KeyBanned: 4}

func worstKey(all []observe.KeyState) []observe.KeyState {
	if len(all) == 0 {
		return nil
	}
	worst := slices.MaxFunc(all, func(a, b observe.KeyState) int { return cmp.Compare(badness[a.State], badness[b.State]) })
	return []observe.KeyState{{State: worst.State}}
}
