package costs

import (
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/provider/classify"
)

// A configured limit is named if the server states less in the same unit, in a window that is not longer. Of several
// the strictest counts. What is only documented, or without a window, says nothing, and the limit of a route is not
// the key's.
func TestHighest(t *testing.T) {
	rule := func(n int64, per time.Duration) limit.Rule { return limit.Rule{Unit: limit.Requests, N: n, Per: per} }
	key := func(all ...limit.Rule) []Configured { return []Configured{{provider.Key, all}} }
	stated := provider.Policy{Unit: provider.Requests, Scope: provider.Key, Limit: 60, Window: time.Minute, Source: provider.Stated}
	with := func(change func(p *provider.Policy)) provider.Policy { p := stated; change(&p); return p }
	for _, c := range []struct {
		name string
		all  []Configured
		said provider.Policy
		want int64 // N of the configured limit; 0: none is named
	}{
		{"more", key(rule(61, time.Minute)), stated, 61},
		{"as much", key(rule(60, time.Minute)), stated, 0},
		{"less", key(rule(59, time.Minute)), stated, 0},
		{"more in an hour", key(rule(3601, time.Hour)), stated, 3601},
		{"less in an hour", key(rule(3599, time.Hour)), stated, 0},
		{"a shorter window", key(rule(61, 59*time.Second)), stated, 0},
		{"the strictest of two", key(rule(90, time.Minute), rule(70, time.Minute)), stated, 70},
		{"the strictest comes first", key(rule(70, time.Minute), rule(90, time.Minute)), stated, 70},
		{"of which one is enough", key(rule(90, time.Minute), rule(50, time.Minute)), stated, 0},
		{"two limits", []Configured{{provider.Key, []limit.Rule{rule(90, time.Minute)}}, {provider.IP, []limit.Rule{rule(80, time.Minute)}}}, stated, 80},
		{"another unit", key(limit.Rule{Unit: limit.Tokens, N: 90, Per: time.Minute}), stated, 0},
		{"no limit", nil, stated, 0},
		{"documented", key(rule(90, time.Minute)), with(func(p *provider.Policy) { p.Source = provider.Documented }), 0},
		{"inferred", key(rule(90, time.Minute)), with(func(p *provider.Policy) { p.Source = provider.Inferred }), 0},
		{"a limit of 0", key(rule(90, time.Minute)), with(func(p *provider.Policy) { p.Limit = 0 }), 0},
		{"a limit of 1", key(rule(90, time.Minute)), with(func(p *provider.Policy) { p.Limit = 1 }), 90},
		{"no window", key(rule(90, time.Minute)), with(func(p *provider.Policy) { p.Window = 0 }), 0},
		{"a unit that nobody counts", key(rule(90, time.Minute)), with(func(p *provider.Policy) { p.Unit = "hugs" }), 0},
		{"of a route", key(rule(90, time.Minute)), with(func(p *provider.Policy) { p.Scope = provider.Route }), 0},
		{"of a resource", key(rule(90, time.Minute)), with(func(p *provider.Policy) { p.Scope = provider.Resource }), 0},
		{"of the same resource", []Configured{{provider.Resource, []limit.Rule{rule(90, time.Minute)}}}, with(func(p *provider.Policy) { p.Scope = provider.Resource }), 90},
		{"of the address", key(rule(90, time.Minute)), with(func(p *provider.Policy) { p.Scope = provider.IP }), 90},
	} {
		v := &classify.Verdict{}
		v.Said.Policies = []provider.Policy{c.said}
		list := Highest(v, c.all)
		if got := len(list) > 0; got != (c.want > 0) || got && (list[0].Rule.N != c.want || list[0].Stated.N != c.said.Limit || len(list) > 1) {
			t.Errorf("%s: %+v, want %d", c.name, list, c.want)
		}
	}
}

// A wrong charge with conditions is mended in itself, since others are of the same route.
func TestMends(t *testing.T) {
	for on, want := range map[string]string{"": "GET /depth", "GET /*": "GET /depth", "GET /depth?limit=500": "GET /depth?limit=500"} {
		if got := (Charged{Route: "GET /depth", On: on}).Mends(); got != want {
			t.Errorf("a charge on %q is mended on %q, want %q", on, got, want)
		}
	}
}

// Attempts are open until their answer is looked at or their end is noted, once.
func TestSeenIsOpen(t *testing.T) {
	var n Notices
	if (*Seen)(nil).IsOpen() || new(Seen).IsOpen() {
		t.Error("an attempt that was not noted is open")
	}
	one, two := n.Began("api.test", "a", limit.One, 10), n.Began("api.test", "a", limit.One, 10)
	if !one.IsOpen() || !two.IsOpen() {
		t.Error("an attempt is over before its end")
	}
	n.Ends(one)
	n.Ends(one)
	if one.IsOpen() || !two.IsOpen() || two[0].of.inFlight != 1 || two[0].of.open != limit.One {
		t.Errorf("after the end of one: %+v", two[0].of)
	}
	n.Ends(two)
	n.Ends(nil)
	for key := range 11 { // those without a request in flight make room
		n.Began("api.test", string(rune('b'+key)), limit.One, 5)
	}
	third := n.Began("api.test", "a", limit.One, 5)
	if third[0].of.began != 1 {
		t.Error("what is idle is not forgotten")
	}
}

// The use of a window is compared from its first answer on, once three have counted. Statements that are late, or of
// the window before, teach nothing; one of a later window begins anew.
func TestTakes(t *testing.T) {
	end := time.Date(2026, 1, 1, 0, 1, 0, 0, time.UTC)
	at := func(used, counted, open, after int64, reset time.Time) point {
		one := func(n int64) limit.Cost { return limit.Cost{limit.Requests: n} }
		return point{used, one(counted), one(open), one(after), reset}
	}
	for _, c := range []struct {
		name        string
		points      []point
		more, sure  bool
		about, most int64
	}{
		{"as much as counts", []point{at(1, 0, 0, 1, end), at(6, 5, 0, 6, end)}, false, false, 1, 2},
		{"as much, and surely", []point{at(1, 0, 0, 1, end), at(21, 20, 0, 21, end)}, false, true, 1, 2},
		{"not as sure as before", []point{at(5, 0, 0, 1, end), at(50, 9, 0, 10, end), at(100, 19, 0, 20, end), at(105, 19, 4, 24, end)}, true, true, 5, 6},
		{"five times as much", []point{at(5, 0, 0, 1, end), at(15, 2, 0, 3, end), at(30, 5, 0, 6, end)}, true, false, 5, 7},
		{"five times, of many", []point{at(5, 0, 0, 1, end), at(50, 9, 0, 10, end), at(100, 19, 0, 20, end)}, true, true, 5, 6},
		{"one jump is another's", []point{at(1, 0, 0, 1, end), at(100, 9, 0, 10, end)}, false, false, 10, 13},
		{"too few", []point{at(5, 0, 0, 1, end), at(10, 1, 0, 2, end)}, false, false, 0, 0},
		{"the same use is late", []point{at(5, 0, 0, 1, end), at(5, 9, 0, 10, end)}, false, false, 0, 0},
		{"the same use of many is late", []point{at(5, 0, 0, 1, end), at(5, 19, 0, 20, end)}, false, false, 0, 0},
		{"most of those in flight at first still are", []point{at(5, 3, 3, 4, end), at(10, 4, 2, 5, end), at(40, 9, 0, 10, end)}, false, false, 4, 7},
		{"half of them are", []point{at(5, 3, 4, 4, end), at(10, 4, 2, 5, end), at(40, 9, 0, 10, end)}, false, false, 4, 8},
		{"less is late", []point{at(5, 0, 0, 1, end), at(4, 9, 0, 10, end)}, false, false, 0, 0},
		{"of the window before", []point{at(5, 0, 0, 1, end), at(50, 9, 0, 10, end.Add(-time.Minute))}, false, false, 0, 0},
		{"of the next window", []point{at(5, 0, 0, 1, end), at(50, 9, 0, 10, end.Add(time.Minute))}, false, false, 0, 0},
		{"in flight at first", []point{at(5, 3, 3, 4, end), at(30, 9, 0, 10, end)}, false, false, 3, 5},
		{"all in flight", []point{at(5, 0, 0, 1, end), at(30, 9, 8, 10, end)}, false, false, 0, 0},
	} {
		var u use
		for _, p := range c.points {
			u.takes(p, time.Minute, limit.Requests)
		}
		if u.more != c.more || u.sure != c.sure || u.about != c.about || u.most != c.most {
			t.Errorf("%s: more %t, sure %t, %d to %d; want %t, %t, %d to %d", c.name, u.more, u.sure, u.about, u.most, c.more, c.sure, c.about, c.most)
		}
	}
}

// Of limits that allow as much the first is compared with a use: one of the unit that is stated, if there is one.
func TestCompares(t *testing.T) {
	rule := func(name string, u limit.Unit, n int64, per time.Duration) limit.Rule {
		return limit.Rule{Name: name, Unit: u, N: n, Per: per}
	}
	for _, c := range []struct {
		rules []limit.Rule
		want  string
	}{
		{nil, ""},
		{[]limit.Rule{rule("a", limit.Requests, 60, time.Minute)}, "a"},
		{[]limit.Rule{rule("a", limit.Requests, 60, time.Minute), rule("b", limit.Requests, 3600, time.Hour)}, "a"},
		{[]limit.Rule{rule("a", limit.Requests, 60, time.Minute), rule("b", limit.Requests, 3599, time.Hour)}, "b"},
		{[]limit.Rule{rule("a", limit.Requests, 60, time.Minute), rule("b", limit.Weight, 6000, time.Minute)}, "b"},
		{[]limit.Rule{rule("a", limit.Requests, 60, time.Minute), rule("b", limit.Weight, 6000, time.Hour)}, ""},
		{[]limit.Rule{rule("a", limit.Orders, 60, time.Minute)}, ""},
	} {
		all, got := []Configured{{provider.Key, c.rules}}, ""
		if r := compares(all, &all[0], limit.Weight, time.Minute); r != nil {
			got = r.Name
		}
		if got != c.want {
			t.Errorf("%v: %q, want %q", c.rules, got, c.want)
		}
	}
}

// A remark says how much the server counts for what, and what counts here.
func TestRemarkSays(t *testing.T) {
	minute := limit.Rule{Unit: limit.Requests, N: 600, Per: time.Minute}
	weight := limit.Rule{Unit: limit.Weight, N: 1200, Per: time.Minute}
	for want, r := range map[string]Remark{
		"the server counts about 3 times the weight that counts here": {Rule: weight, Unit: limit.Weight, For: limit.Weight, From: 3, Each: 3},
		"counts about 2 to 3 times the weight":                        {Rule: weight, Unit: limit.Weight, For: limit.Weight, From: 2, Each: 3},
		"a weight of about 5 for each request, and 600/m counts 1":    {Rule: minute, Unit: limit.Weight, For: limit.Requests, From: 5, Each: 5},
		"1200 weight/m counts 0, or others":                           {Rule: weight, Unit: limit.Weight, For: limit.Requests, From: 5, Each: 5},
	} {
		if says := r.Says(); !strings.Contains(says, want) {
			t.Errorf("%q, want %q in it", says, want)
		}
	}
}

// The first request of a route is that of its host and key.
func TestFirstOf(t *testing.T) {
	seen := map[uint64]bool{0: true}
	for _, of := range [][3]string{{"a", "b", "c"}, {"x", "b", "c"}, {"a", "x", "c"}, {"a", "b", "x"}, {"ab", "", "c"}, {"a", "", "bc"}} {
		id := FirstOf(of[0], of[1], of[2])
		if seen[id] || id != FirstOf(of[0], of[1], of[2]) {
			t.Errorf("%q is not told from others", of)
		}
		seen[id] = true
	}
}

// The words of a charge are all units but requests: those that are too low are named, and are as high as they cost.
func TestWords(t *testing.T) {
	of := func(requests, weight, orders int64) limit.Cost {
		return limit.Cost{limit.Requests: requests, limit.Weight: weight, limit.Orders: orders}
	}
	for _, c := range []struct {
		worth, cost limit.Cost
		is, not     string
	}{
		{of(1, 1, 0), of(1, 5, 0), "5 weight", "1 weight"},
		{of(1, 0, 0), of(1, 5, 0), "5 weight", "0 weight"},
		{of(1, 5, 2), of(1, 5, 3), "5 weight, 3 orders", "2 orders"},
		{of(1, 1, 1), of(9, 2, 2), "2 weight, 2 orders", "1 weight, 1 orders"},
		{of(1, 7, 0), of(1, 5, 0), "7 weight", ""},
		{of(1, 0, 0), of(9, 0, 0), "", ""},
	} {
		if is, not := Words(c.worth, c.cost); is != c.is || not != c.not {
			t.Errorf("%v for %v: %q, not %q; want %q, not %q", c.worth, c.cost, is, not, c.is, c.not)
		}
	}
}

// The first answer of a host that states a used weight, or used orders, is news. Others are not.
func TestFirstUse(t *testing.T) {
	used := func(u provider.Unit, ok bool) *classify.Verdict {
		v := &classify.Verdict{}
		v.Said.Limits = []provider.ServiceLimit{{Unit: u, Used: provider.Count{N: 3, OK: ok}}}
		return v
	}
	for _, c := range []struct {
		name string
		said *classify.Verdict
		news bool
	}{
		{"weight", used(provider.Weight, true), true}, {"orders", used(provider.Orders, true), true}, {"requests", used(provider.Requests, true), false},
		{"a weight that is left", used(provider.Weight, false), false}, {"a unit that nobody counts", used("hugs", true), false}, {"nothing", &classify.Verdict{}, false},
	} {
		var n Notices
		if first, again, other := n.FirstUse("a", c.said), n.FirstUse("a", c.said), n.FirstUse("b", c.said); first != c.news || again || other != c.news {
			t.Errorf("%s: news %t, again %t, at another host %t", c.name, first, again, other)
		}
	}
}
