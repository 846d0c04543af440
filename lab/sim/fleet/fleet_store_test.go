package fleet_test

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/lab/sim/fleet"
	"github.com/paceline-go/paceline/lab/strategy"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/ratetest/latency"
)

// sharing is eight processes that share a quota by a store.
func sharing(q fleet.Quota, store fleet.Store) fleet.Scenario {
	store.Link = latency.Uniform(ms/4, 5*ms)
	return fleet.Scenario{Duration: 3 * time.Minute, Seed: 3, Server: q, Store: store,
		Groups: []fleet.Group{{Name: "replicas", Strategy: fleet.Share(), Processes: 8, Threads: 40, Link: latency.Uniform(0, 50*ms)}}}
}

// Whatever the server counts by, those who share by a store are refused nothing, and use what there is, each as much as another.
func TestShareIsExact(t *testing.T) {
	for _, q := range []fleet.Quota{
		{Kind: fleet.Bucket, Limit: 100, Window: time.Second, Capacity: 50},
		{Kind: fleet.GCRA, Limit: 100, Window: time.Second, Capacity: 50},
		{Kind: fleet.Rolling, Limit: 200, Window: time.Second},
		{Kind: fleet.Weighted, Limit: 200, Window: time.Second, Into: 300 * ms},
		{Kind: fleet.Rolling, Limit: 100, Window: 2 * time.Second, Tick: 100 * ms},
		{Kind: fleet.Rolling, Limit: 20_000, Window: 10 * time.Second, Unit: limit.Tokens},
	} {
		if !need.Long() && (q.Kind == fleet.Bucket || q.Kind == fleet.Rolling && q.Unit != limit.Tokens) {
			continue // GCRA is a bucket, and tokens of a rolling window are harder than requests
		}
		s := sharing(q, fleet.Store{})
		if q.Unit == limit.Tokens {
			s.Groups[0].Costs = fleet.Costs{Mean: 80, Exponential: true}
		}
		r := ran(t, s)
		t.Logf("%v of %v: %d served, %.1f %% unused, CV %.1f %%, %.1f turns a second", q.Limit, q.Kind, r.Served, r.UnusedPercent, r.SharesSteady.Processes, r.Store.PerSecond)
		if r.Limited > 0 || r.UnusedPercent > 12 || r.SharesSteady.Processes > 5 {
			t.Errorf("%v: %d limited, %.1f %% unused, CV %.1f %%", q, r.Limited, r.UnusedPercent, r.SharesSteady.Processes)
		}
		if r.Store.Turns == 0 || r.Store.PerSecond > 40 || r.Store.PerRequest <= 0 {
			t.Errorf("%v: %+v", q, r.Store)
		}
	}
}

// Processes that are told weights have their parts; one group that leaves gives back what it had, and who comes later has a part.
func TestShareByWeight(t *testing.T) {
	s := sharing(fleet.Quota{Kind: fleet.Rolling, Limit: 200, Window: time.Second}, fleet.Store{})
	s.Groups[0].Processes = 3
	s.Groups = append(s.Groups, s.Groups[0])
	s.Groups[1].Name, s.Groups[1].Processes, s.Groups[1].Params = "large", 1, strategy.Params{Weight: 3}
	r := ran(t, s)
	if small, large := sum(r.Groups[0].Requests), sum(r.Groups[1].Requests); r.Limited > 0 || math.Abs(float64(large)/float64(small)-1) > 0.07 {
		t.Errorf("three of weight 1 sent %d, one of weight 3 %d; %d limited", small, large, r.Limited)
	}
	s.Groups[1].Params, s.Groups[0].Leave, s.Groups[1].Join = strategy.Params{}, time.Minute, time.Minute
	r = ran(t, s)
	if before, after := sum(r.Groups[0].Requests), sum(r.Groups[1].Requests); r.Limited > 0 || before < 10_000 || after < 20_000 {
		t.Errorf("those who leave after a minute sent %d, who comes then %d in two; %d limited", before, after, r.Limited)
	}
}

func sum(all []int) (n int) {
	for _, v := range all {
		n += v
	}
	return n
}

// While the store is away for all, parts come to no more than the limit; where two of eight are cut off, they come to a quarter more, and that is
// refused. Who waits sends no more than was granted. A run is as exact as another.
func TestShareThroughOutages(t *testing.T) {
	quota := fleet.Quota{Kind: fleet.Rolling, Limit: 200, Window: time.Second}
	two := fleet.Outage{At: time.Minute, Lasts: time.Minute, Group: "replicas", Processes: 2}
	for _, c := range []struct {
		name        string
		split       bool
		outage      fleet.Outage
		cut         int
		least, most float64 // percent of the quota
	}{
		{"two wait", false, two, 2, 92, 100},
		{"two have parts", true, two, 2, 115, 125},
		{"all wait", false, fleet.Outage{At: time.Minute, Lasts: time.Minute}, 8, 0.1, 5},
		{"all have parts", true, fleet.Outage{At: time.Minute, Lasts: time.Minute}, 8, 90, 100},
	} {
		s := sharing(quota, fleet.Store{Split: c.split, Outages: []fleet.Outage{c.outage}})
		r := ran(t, s)
		o := r.Store.Outages[0]
		t.Logf("%s: %+v, %d limited in all", c.name, o, r.Limited)
		if o.Cut != c.cut || o.Of != 8 || o.At != 60 || o.Seconds != 60 || o.SentPercent < c.least || o.SentPercent > c.most {
			t.Errorf("%s: %+v", c.name, o)
		}
		excess := c.split && c.cut < 8
		if (o.Limited > 0) != excess || o.Limited != r.Limited || c.split != (o.From != nil && o.Parts > 1000) || o.From != nil && *o.From < 68 {
			t.Errorf("%s: %+v, %d limited in all", c.name, o, r.Limited)
		}
		if !excess {
			continue
		}
		if again := ran(t, s); !reflect.DeepEqual(again, r) {
			t.Errorf("%s: again it is another run", c.name)
		}
	}
}

// What a store cannot be, or does not go with the groups, is refused.
func TestStoreRefusals(t *testing.T) {
	quota := fleet.Quota{Kind: fleet.Rolling, Limit: 200, Window: time.Second}
	outage := func(o fleet.Outage) fleet.Scenario { return sharing(quota, fleet.Store{Outages: []fleet.Outage{o}}) }
	nobody := sharing(quota, fleet.Store{})
	nobody.Groups[0].Strategy = spaced(time.Second)
	for _, c := range []struct {
		s           fleet.Scenario
		field, says string
	}{
		{nobody, "Store", "no group has the strategy share"},
		{sharing(fleet.Quota{Kind: fleet.Calendar}, fleet.Store{}), "Server.Kind", "of a calendar quota"},
		{sharing(fleet.Quota{Kind: fleet.Bucket, Level: 100}, fleet.Store{}), "Server.Level", "100 is not the 4500"},
		{outage(fleet.Outage{At: -1, Lasts: 1}), "Store.Outages[0].At", "-1ns is not from 0s"},
		{outage(fleet.Outage{}), "Store.Outages[0].Lasts", "0s is not from 1ns"},
		{outage(fleet.Outage{Lasts: 1, Processes: 2}), "Store.Outages[0].Processes", "2 of no group"},
		{outage(fleet.Outage{Lasts: 1, Group: "others"}), "Store.Outages[0].Group", `"others" is no group`},
		{outage(fleet.Outage{Lasts: 1, Group: "replicas", Processes: 9}), "Store.Outages[0].Processes", "9 is not from 0, for all, to the 8"},
	} {
		_, err := fleet.New(c.s)
		var field *fleet.FieldError
		if !errors.As(err, &field) || field.Field != c.field || !strings.Contains(err.Error(), c.says) {
			t.Errorf("got %v, want %s: %s", err, c.field, c.says)
		}
	}
}
