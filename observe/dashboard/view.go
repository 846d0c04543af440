package dashboard

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paceline-go/paceline/observe"
)

// How much of each list is in a frame. The rest is a sum or a number; all.json has all of it.
const (
	mostClients    = 50
	mostLimits     = 50
	mostKeys       = 50
	mostPaused     = 20
	mostHosts      = 20
	mostWaits      = 20
	mostEvents     = 20
	mostPastEvents = 100
	mostRows       = 500 // in an answer of all.json
)

// sourceJSON is a Snapshot with bounded lists, and the page's conclusions.
type sourceJSON struct {
	observe.Snapshot
	Bounds  []time.Duration `json:"bounds_ns,omitempty"`
	Waits   []waitJSON      `json:"waits"`
	Verdict verdict         `json:"verdict"`
	Point   point           `json:"point"`
	// Allowed is how many requests a second the limits allow in the long run; 0: not known.
	Allowed float64 `json:"allowed,omitempty"`
	// All has the full length of each list.
	All struct {
		Limits  int `json:"limits"`
		Clients int `json:"clients"`
		Keys    int `json:"keys"`
		Paused  int `json:"paused"`
		Hosts   int `json:"upstream"`
	} `json:"all"`
	// Rest is the sum of the clients that are left out.
	Rest observe.ClientState `json:"rest"`
}

// waitJSON is the waits for one limit, of all clients together.
type waitJSON struct {
	Limit string        `json:"limit"`
	Count int64         `json:"count"`
	Mean  time.Duration `json:"mean_ns"`
	P50   time.Duration `json:"p50_ns"`
	P99   time.Duration `json:"p99_ns"`
}

// view makes the page's data from a Snapshot.
func view(s observe.Snapshot, p point) sourceJSON {
	v := sourceJSON{Snapshot: s, Point: p, Verdict: judge(&s), Waits: waits(&s), Allowed: allowed(s.Limits)}
	v.All.Limits, v.All.Clients, v.All.Keys, v.All.Paused, v.All.Hosts = len(s.Limits), len(s.Clients), len(s.Keys),
		len(s.Paused), len(s.Upstream)
	clients := ranked(s.Clients, clientsFirst)
	v.Clients = first(clients, mostClients)
	for _, c := range clients[len(v.Clients):] {
		v.Rest.Waiting += c.Waiting
		v.Rest.InFlight += c.InFlight
		v.Rest.LongestWait = max(v.Rest.LongestWait, c.LongestWait)
		v.Rest.Accepted += c.Accepted
		v.Rest.Limited += c.Limited
		v.Rest.Sent += c.Sent
		v.Rest.Share += c.Share
		if c.LastGoes.After(v.Rest.LastGoes) {
			v.Rest.LastGoes = c.LastGoes
		}
	}
	v.Limits = first(ranked(s.Limits, limitsFirst), mostLimits)
	v.Keys = first(ranked(s.Keys, keysFirst), mostKeys)
	v.Paused = first(s.Paused, mostPaused)
	v.Events = last(s.Events, mostEvents)
	v.Upstream = first(ranked(s.Upstream, func(a, b observe.UpstreamTimes) int { return cmp.Compare(b.Count, a.Count) }),
		mostHosts)
	for i := range v.Upstream {
		v.Upstream[i].Upto = nil
	}
	v.Snapshot.Waits, v.Snapshot.Bounds = nil, nil
	return v
}

// allowed adds up how many requests a second the limits allow, of each key, model and the like. Requests that
// count in two of these count twice, so it is at least what may go.
func allowed(all []observe.LimitState) (perSecond float64) {
	of := map[observe.Whose]float64{}
	for _, l := range all {
		if l.Unit != "requests" || l.Window <= 0 || l.PerWindow <= 0 {
			continue
		}
		each := float64(l.PerWindow) / l.Window.Seconds()
		if least, is := of[l.Whose]; !is || each < least {
			of[l.Whose] = each
		}
	}
	for _, each := range of {
		perSecond += each
	}
	return perSecond
}

// ranked returns a sorted copy; equal ones stay in order.
func ranked[T any](list []T, order func(a, b T) int) []T {
	list = append([]T{}, list...)
	slices.SortStableFunc(list, order)
	return list
}

func first[T any](list []T, most int) []T { return append([]T{}, list[:min(len(list), most)]...) }
func last[T any](list []T, most int) []T  { return append([]T{}, list[max(0, len(list)-most):]...) }

// clientsFirst sorts clients by their waiting requests, most first. Equal ones go by the longest
// wait, then by requests in flight, then by accepted requests.
func clientsFirst(a, b observe.ClientState) int {
	return cmp.Or(cmp.Compare(b.Waiting, a.Waiting), cmp.Compare(b.LongestWait, a.LongestWait),
		cmp.Compare(b.InFlight, a.InFlight), cmp.Compare(b.Accepted, a.Accepted))
}

// limitsFirst sorts limits by their waiting requests, most first. Equal ones go by the end of their
// pause, latest first, then by the used part.
func limitsFirst(a, b observe.LimitState) int {
	return cmp.Or(cmp.Compare(b.Waiting, a.Waiting), b.PausedUntil.Compare(a.PausedUntil), cmp.Compare(b.Share, a.Share))
}

// keysFirst puts keys that cannot be used first.
func keysFirst(a, b observe.KeyState) int {
	out := func(k observe.KeyState) int {
		if k.State == observe.KeyOK {
			return 1
		}
		return 0
	}
	return cmp.Or(out(a)-out(b), cmp.Compare(b.InFlight, a.InFlight), cmp.Compare(b.Accepted, a.Accepted))
}

// waits adds up the waits for each limit, most of them first.
func waits(s *observe.Snapshot) []waitJSON {
	sums := map[string]*observe.Times{}
	var order []string
	for _, w := range s.Waits {
		sum := sums[w.Limit]
		if sum == nil {
			sum = &observe.Times{Upto: make([]int64, len(s.Bounds))}
			sums[w.Limit] = sum
			order = append(order, w.Limit)
		}
		sum.Count += w.Count
		sum.Sum += w.Sum
		for i := range min(len(w.Upto), len(sum.Upto)) {
			sum.Upto[i] += w.Upto[i]
		}
	}
	all := []waitJSON{}
	for _, name := range order {
		sum := sums[name]
		if sum.Count == 0 {
			continue
		}
		w := waitJSON{Limit: name, Count: sum.Count, Mean: sum.Sum / time.Duration(sum.Count)}
		w.P50, _ = quantile(s.Bounds, sum.Upto, sum.Count, 0.5)
		w.P99, _ = quantile(s.Bounds, sum.Upto, sum.Count, 0.99)
		all = append(all, w)
	}
	return first(ranked(all, func(a, b waitJSON) int { return cmp.Compare(b.Count, a.Count) }), mostWaits)
}

// allJSON is a part of a list as it was in the latest frame.
type allJSON struct {
	Number int   `json:"number"`
	At     int64 `json:"at"`
	// Total is the length of the list. Found is how many of them match the text of the query. From
	// is the place of the first row among those.
	Total int `json:"total"`
	Found int `json:"found"`
	From  int `json:"from"`
	Rows  any `json:"rows"`
}

// serveAll answers with as much of a list as fits, of rows with the text find in a name:
// all.json?source=0&list=clients&find=…&from=500.
func (p *Page) serveAll(w http.ResponseWriter, r *http.Request) {
	p.look()
	p.mu.Lock()
	a := allJSON{Number: p.frame.number, At: p.looked.UnixMilli()}
	snapshots := p.snapshots
	p.mu.Unlock()
	q := r.URL.Query()
	n, err := strconv.Atoi(cmp.Or(q.Get("source"), "0"))
	if err != nil || n < 0 || n >= len(snapshots) {
		refuse(w, http.StatusBadRequest, "source=%q: there are %d sources, counted from 0", q.Get("source"), len(snapshots))
		return
	}
	if a.From, err = strconv.Atoi(cmp.Or(q.Get("from"), "0")); err != nil || a.From < 0 {
		refuse(w, http.StatusBadRequest, "from=%q is not the place of a row, 0 or more", q.Get("from"))
		return
	}
	s, find := &snapshots[n], strings.ToLower(q.Get("find"))
	switch list := q.Get("list"); list {
	case "clients":
		part(&a, s.Clients, clientsFirst, find, func(c observe.ClientState) string { return c.Name })
	case "limits":
		part(&a, s.Limits, limitsFirst, find, func(l observe.LimitState) string { return l.Name + "\n" + whom(l.Whose) })
	case "keys":
		part(&a, s.Keys, keysFirst, find, func(k observe.KeyState) string { return k.Name + "\n" + k.Host + "\n" + k.State })
	default:
		refuse(w, http.StatusBadRequest, "list=%q is none of clients, limits, keys", list)
		return
	}
	data, err := json.Marshal(a)
	if err != nil {
		refuse(w, http.StatusInternalServerError, "%v", err)
		return
	}
	serveJSON(w, r, data)
}

func part[T any](a *allJSON, list []T, order func(a, b T) int, find string, name func(T) string) {
	a.Total = len(list)
	found := []T{}
	for _, row := range list {
		if find == "" || strings.Contains(strings.ToLower(name(row)), find) {
			found = append(found, row)
		}
	}
	slices.SortStableFunc(found, order)
	a.Found, a.From = len(found), min(a.From, len(found))
	a.Rows = first(found[a.From:], mostRows)
}

// whom says in words whom a limit or an Event concerns; "" if it is all clients.
func whom(w observe.Whose) string {
	var words []string
	for _, f := range []struct{ before, name string }{{"target ", w.Target}, {"", w.Host}, {"key ", w.Key},
		{"model ", w.Model}, {"resource ", w.Resource}, {"", w.Route}, {"client ", w.Client}} {
		if f.name != "" {
			words = append(words, fmt.Sprint(f.before, f.name))
		}
	}
	return strings.Join(words, ", ")
}
