package rate

import (
	"math"
	"sort"
	"time"

	"github.com/paceline-go/paceline/limit"
)

// Server is one of several servers that divide requests among each other.
type Server struct {
	Name string // empty: it is the only one
	// Limits are those of the server. If there are none, it takes any number of requests at once.
	Limits []Repeated
}

// Repeated is a limit that there is Times over: for each of so many keys.
type Repeated struct {
	Limit
	Times int
}

// Begun is the largest cost that may have been sent d after from, from a standing start. All of a window's
// cost may go at its beginning.
func (l Limit) Begun(from time.Time, d time.Duration) float64 {
	if l.Bucket || l.Zone != "" {
		return l.Within(from, d, false)
	}
	return float64(l.N) * (float64(d/l.Per) + 1)
}

// perRequest is the average cost of a request.
type perRequest = [len(limit.Cost{})]float64

func eachOf(cost limit.Cost) (each perRequest) {
	for u, units := range cost {
		each[u] = float64(units) / float64(max(cost[limit.Requests], 1))
	}
	return each
}

// least is how many requests the tightest limit allows, by how many units each allows.
func (s Server) least(each perRequest, allows func(l Limit) float64) float64 {
	least := math.Inf(1)
	for _, l := range s.Limits {
		if each[l.Unit] > 0 {
			least = min(least, allows(l.Limit)*float64(l.Times)/each[l.Unit])
		}
	}
	return least
}

// SpeedAtServers is how many requests a second the servers together allow in the long run, of requests that all cost cost.
func SpeedAtServers(cost limit.Cost, servers []Server) (perSecond float64) {
	for _, s := range servers {
		perSecond += s.least(eachOf(cost), Limit.Speed)
	}
	return perSecond
}

// AtServers is how long the limits of the servers together need from now on for requests that all cost cost: from the
// first send to the last, and at most 292 years. parts is the part of each server.
func AtServers(now time.Time, cost limit.Cost, servers []Server) (d time.Duration, parts []float64) {
	n, each := float64(cost[limit.Requests]), eachOf(cost)
	begun := func(s Server, d time.Duration) float64 {
		return s.least(each, func(l Limit) float64 { return l.Begun(now, d) })
	}
	sum := func(d time.Duration) (sum float64) {
		for _, s := range servers {
			sum += begun(s, d)
		}
		return sum
	}
	if sum(0) < n {
		most := time.Second
		for most < longest/2 && sum(most) < n {
			most *= 2
		}
		d = time.Duration(sort.Search(int(most), func(d int) bool { return sum(time.Duration(d)) >= n }))
	}
	parts = make([]float64, len(servers))
	all := sum(d)
	for i, s := range servers {
		if parts[i] = begun(s, d) / all; math.IsNaN(parts[i]) { // any number goes at once
			parts[i] = 1
			break
		}
	}
	return d, parts
}
