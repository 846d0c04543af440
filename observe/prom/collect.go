package prom

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/paceline-go/paceline/observe"
)

// requests collects the outcomes of each client's requests, and the limits for which they waited.
func (c *collection) requests(s *source, v *observe.Snapshot) {
	c.count(resent, float64(v.Resent))
	clients := map[string]*observe.ClientState{}
	for i := range v.Clients {
		is := &v.Clients[i]
		name := s.clients.Of(is.Name)
		if sum := clients[name]; sum != nil {
			add(sum, is)
		} else {
			sum := *is
			clients[name] = &sum
		}
	}
	for _, name := range slices.Sorted(maps.Keys(clients)) {
		is := clients[name]
		for _, r := range [...]struct {
			result string
			n      int64
		}{
			{"accepted", is.Accepted}, {"limited", is.Limited}, {"failed", is.Failed}, {"unknown", is.Unknown},
			{"unsent", is.Unsent},
			{"never", is.Never}, {"late", is.Late}, {"full", is.Full}, {"cancelled", is.Cancelled},
		} {
			c.count(requests, float64(r.n), name, r.result)
		}
		c.count(sent, float64(is.Sent), name)
		c.gauge(waiting, float64(is.Waiting), name)
		c.gauge(inFlight, float64(is.InFlight), name)
		c.gauge(longestWait, is.LongestWait.Seconds(), name)
		if known := !is.LastGoes.IsZero(); known || is.Waiting == 0 {
			left := 0.0
			if known {
				left = max(is.LastGoes.Sub(v.At).Seconds(), 0)
			}
			c.gauge(lastGoes, left, name)
		}
		c.count(tokens, float64(is.Used.Input), name, "input")
		c.count(tokens, float64(is.Used.Output), name, "output")
		c.count(tokens, float64(max(is.Used.Tokens-is.Used.Input-is.Used.Output, 0)), name, "other")
		c.count(money, float64(is.Used.Money)/1e6, name)
	}
	c.waits(s, v)
}

// add sums up clients that share a series.
func add(sum, is *observe.ClientState) {
	sum.Waiting += is.Waiting
	sum.InFlight += is.InFlight
	sum.LongestWait = max(sum.LongestWait, is.LongestWait)
	if is.LastGoes.After(sum.LastGoes) {
		sum.LastGoes = is.LastGoes
	}
	for _, f := range [...]struct {
		to *int64
		n  int64
	}{
		{&sum.Sent, is.Sent}, {&sum.Accepted, is.Accepted}, {&sum.Limited, is.Limited}, {&sum.Failed, is.Failed},
		{&sum.Unknown, is.Unknown},
		{&sum.Unsent, is.Unsent}, {&sum.Never, is.Never}, {&sum.Late, is.Late}, {&sum.Full, is.Full},
		{&sum.Cancelled, is.Cancelled},
		{&sum.Used.Input, is.Used.Input}, {&sum.Used.Output, is.Used.Output}, {&sum.Used.Tokens, is.Used.Tokens},
		{&sum.Used.Money, is.Used.Money},
	} {
		*f.to += f.n
	}
}

func (c *collection) waits(s *source, v *observe.Snapshot) {
	type series struct{ limit, client string }
	all := map[series]*observe.Times{}
	for i := range v.Waits {
		w := &v.Waits[i]
		limit := "none"
		if w.Limit != "" {
			limit = s.waits.Of(w.Limit)
		}
		merge(all, series{limit, s.clients.Of(w.Client)}, &w.Times)
	}
	for k, t := range all {
		c.histogram(waits, v.Bounds, t, k.limit, k.client)
	}
}

// merge adds durations to those of a series.
func merge[K comparable](all map[K]*observe.Times, k K, t *observe.Times) {
	sum := all[k]
	if sum == nil {
		sum = &observe.Times{Upto: make([]int64, len(t.Upto))}
		all[k] = sum
	}
	sum.Count += t.Count
	sum.Sum += t.Sum
	for i, n := range t.Upto {
		sum.Upto[i] += n
	}
}

// limits collects all limits. Those without their own series are summed up.
func (c *collection) limits(s *source, v *observe.Snapshot) {
	var rest observe.LimitState
	some := false
	taken := map[string]bool{}
	for i := range v.Limits {
		l := &v.Limits[i]
		window := ""
		if l.Window > 0 {
			window = l.Window.String()
		}
		is := []string{l.Server(), l.Key, l.Model, cmp.Or(l.Route, l.Resource), l.Client, l.Name, l.Unit, window}
		for k := range is {
			is[k] = observe.LabelValue(is[k])
		}
		name := is[5]
		id := strings.Join(is, "\x00")
		for n := 2; taken[id]; n++ { // two of the same kind, of one owner
			is[5] = name + " " + strconv.Itoa(n)
			id = strings.Join(is, "\x00")
		}
		taken[id] = true
		if s.limits.Has(id) {
			c.limit(l, is)
			continue
		}
		some = true
		rest.Used += l.Used
		rest.Allowed += l.Allowed
		rest.Total += l.Total
		rest.Waiting += l.Waiting
		rest.Share = max(rest.Share, l.Share)
	}
	if some {
		c.limit(&rest, []string{other, other, other, other, other, other, other, ""})
	}
}

func (c *collection) limit(l *observe.LimitState, is []string) {
	c.gauge(limitUsed, float64(l.Used), is...)
	c.gauge(limitCeiling, float64(l.Allowed), is...)
	c.gauge(limitShare, l.Share, is...)
	c.gauge(limitWaiting, float64(l.Waiting), is...)
	for _, state := range [...]string{observe.StoreOK, observe.StoreQuiet, observe.StoreAway, observe.StoreRefused} {
		if l.Store != "" {
			c.gauge(shareState, map[bool]float64{true: 1}[l.Store == state], append(slices.Clip(is), state)...)
		}
	}
	if l.Window > 0 || l.Total > 0 { // a limit in flight adds up nothing
		c.count(limitCounted, float64(l.Total), is...)
	}
	if l.Window > 0 {
		c.gauge(limitRate, float64(l.PerWindow), is...)
		c.gauge(limitFits, float64(cmp.Or(l.Fits, l.PerWindow)), is...)
		c.gauge(limitWindow, l.Window.Seconds(), is...)
	}
}

// servers collects the states of keys and hosts.
func (c *collection) servers(s *source, v *observe.Snapshot) {
	c.count(pauses, float64(v.Pauses))
	if f := &v.Frozen; f.Most > 0 {
		c.count(noRoom, float64(f.Refused))
		c.gauge(frozen, float64(f.Partitions), "partitions")
		c.gauge(frozenUsed, float64(f.Bytes), "partitions")
		c.gauge(frozenMost, float64(f.Most), "partitions")
		c.gauge(frozen, float64(f.Clients), "clients")
		c.gauge(frozenUsed, float64(f.ClientBytes), "clients")
		c.gauge(frozenMost, float64(f.ClientMost), "clients")
	}
	type owner [5]string
	left, down := map[owner]float64{}, map[string]float64{}
	for i := range v.Upstream {
		down[s.hosts.Of(v.Upstream[i].Host)] = 0
	}
	for i := range v.Paused {
		p := &v.Paused[i]
		if p.Down {
			down[s.hosts.Of(p.Server())] = 1
			continue
		}
		who := owner{s.hosts.Of(p.Server()), s.key(p.Host, p.Key), observe.LabelValue(p.Model),
			observe.LabelValue(cmp.Or(p.Route, p.Resource)), s.clients.Of(p.Client)}
		if len(left) >= mostLimits {
			who = owner{other, other, other, other, other}
		}
		left[who] = max(left[who], max(p.Until.Sub(v.At), 0).Seconds())
	}
	for who, d := range left {
		c.gauge(paused, d, who[:]...)
	}
	for host, is := range down {
		c.gauge(hostDown, is, host)
	}
	type key struct{ host, name string }
	taken := map[key]bool{}
	for i := range v.Keys {
		k := &v.Keys[i]
		is := key{s.hosts.Of(k.Host), s.key(k.Host, k.Name)}
		if taken[is] || is.host == other || is.name == other {
			continue
		}
		taken[is] = true
		for _, state := range [...]string{observe.KeyOK, observe.KeyPaused, observe.KeyBanned, observe.KeyNoCredit,
			observe.KeyDenied} {
			c.gauge(keyState, map[bool]float64{true: 1}[k.State == state], is.host, is.name, state)
		}
	}
	times := map[string]*observe.Times{}
	for i := range v.Upstream {
		merge(times, s.hosts.Of(v.Upstream[i].Host), &v.Upstream[i].Times)
	}
	for host, t := range times {
		c.histogram(upstream, v.Bounds, t, host)
	}
}
