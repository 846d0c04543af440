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

// Repeat returns limits of which each key has all.
func Repeat(limits []Limit, times int) []Repeated {
	all := make([]Repeated, len(limits))
	for i, l := range limits {
		all[i] = Repeated{l, times}
	}
	return all
}

// perRequest is the average cost of a request.
type perRequest = [len(limit.Cost{})]float64

func eachOf(cost limit.Cost) (each perRequest) {
	for u, units := range cost {
		each[u] = float64(units) / float64(max(cost[limit.Requests], 1))
	}
	return each
}

// SpeedAtServers is how many requests a second the servers together allow in the long run, of requests that all cost cost.
func SpeedAtServers(cost limit.Cost, servers []Server) (perSecond float64) {
	each := eachOf(cost)
	for _, s := range servers {
		least := math.Inf(1)
		for _, l := range s.Limits {
			if each[l.Unit] > 0 {
				least = min(least, l.Speed()*float64(l.Times)/each[l.Unit])
			}
		}
		perSecond += least
	}
	return perSecond
}

// AtServers is how long the limits of the servers together need from now on for requests that all cost cost: from the
// first send to the last, and at most 292 years. parts is the part of each server.
func AtServers(now time.Time, cost limit.Cost, servers []Server) (d time.Duration, parts []float64) {
	n := float64(cost[limit.Requests])
	played := make([]*Played, len(servers))
	for i, s := range servers {
		played[i] = Play(now, s.Limits, cost, nil, n, 0)
	}
	sum := func(d time.Duration) (sum float64) {
		for _, p := range played {
			sum += p.Begun(d)
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
	for i, p := range played {
		if parts[i] = p.Begun(d) / all; math.IsNaN(parts[i]) { // any number goes at once
			parts[i] = 1
			break
		}
	}
	return d, parts
}
