package costs_test

import (
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/send/costs"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/provider/classify"
)

var depth = costs.Charged{Host: "api.test", Route: "GET /depth"}

// used is a served answer that states how much of the weight is used.
func used(n int64) *classify.Verdict {
	v := &classify.Verdict{}
	v.Result = limit.Accepted
	v.Said.Limits = []provider.ServiceLimit{{Unit: provider.Weight, Used: provider.Count{N: n, OK: true}}}
	return v
}

// ask sends a request by itself, which counts with a weight of 1, and gets an answer.
func ask(n *costs.Notices, v *classify.Verdict, first bool) (wrong bool) {
	cost := limit.Cost{limit.Requests: 1, limit.Weight: 1}
	seen := n.Began("api.test", "a", limit.One, 10)
	return n.Answered(seen, depth, v, &cost, first)
}

func weight(n *costs.Notices) int64 {
	cost, _ := n.Taught(depth)
	return cost[limit.Weight]
}

// The stated use rises by 5 from one answer to the next, and the charge says 1: the second such step is
// believed.
func TestTwoEqualStepsMend(t *testing.T) {
	var n costs.Notices
	for i, c := range []struct {
		used   int64
		wrong  bool
		weight int64
	}{{5, false, 0}, {10, false, 0}, {13, false, 0}, {18, false, 0}, {23, true, 5}, {28, false, 5}, {29, false, 5}} {
		if wrong := ask(&n, used(c.used), false); wrong != c.wrong || weight(&n) != c.weight || n.HasTaught() != (c.weight > 0) {
			t.Errorf("answer %d, %d used: wrong %v, weight %d; expected %+v", i, c.used, wrong, weight(&n), c)
		}
	}
}

// While another request of the key is in flight, the use may rise by that one.
func TestOthersInFlightProveNothing(t *testing.T) {
	var n costs.Notices
	ask(&n, used(5), false)
	other := n.Began("api.test", "a", limit.One, 10)
	for _, c := range []int64{10, 15, 20} {
		if ask(&n, used(c), false) || weight(&n) != 0 {
			t.Errorf("%d used: %d is believed", c, weight(&n))
		}
	}
	n.Ends(other)
	if n.Ends(other); other.IsOpen() {
		t.Error("an attempt is open after its end")
	}
	for i, c := range []int64{25, 30, 35} {
		if wrong := ask(&n, used(c), false); wrong != (i == 2) {
			t.Errorf("%d used: wrong %v", c, wrong)
		}
	}
}

// The first step of a route that no row names is believed at once, and forgotten if the next differs.
func TestAnUnknownRouteIsGuessed(t *testing.T) {
	var n costs.Notices
	ask(&n, used(1), false)
	if ask(&n, used(6), true); weight(&n) != 5 || !n.HasTaught() {
		t.Errorf("the guess is %d", weight(&n))
	}
	if ask(&n, used(8), false); weight(&n) != 0 {
		t.Errorf("%d is left of a wrong guess", weight(&n))
	}
}

// expression finds nothing: Exceeds asks only whether there is one.
type expression struct{}

func (expression) Count([]byte) (int64, error) { return 0, nil }

// An answer that states more than the charge says teaches later requests, once for each amount. It does not where the
// body has the amount, or where the charge learns it.
func TestMoreThanTheCharge(t *testing.T) {
	type amounts = map[provider.Unit]int64
	found := map[provider.Unit]provider.Expression{provider.Weight: expression{}}
	for i, c := range []struct {
		row     provider.Charge
		states  []int64
		taught  int64
		lessons int64
	}{
		{provider.Charge{Answer: found, Cost: amounts{provider.Weight: 5}}, []int64{4, 5}, 0, 0},
		{provider.Charge{Answer: found, Cost: amounts{provider.Weight: 5}}, []int64{6, 6, 5, 9, 8}, 9, 2},
		{provider.Charge{Answer: found, Body: found, Cost: amounts{provider.Weight: 5}}, []int64{6}, 0, 0},
		{provider.Charge{Answer: found, Learns: true, Cost: amounts{provider.Weight: 5}}, []int64{6}, 0, 0},
		{provider.Charge{Cost: amounts{provider.Weight: 5}}, []int64{6}, 0, 0},
		{provider.Charge{Answer: found, Cost: amounts{provider.Orders: 5}}, []int64{6}, 0, 0},
	} {
		var n costs.Notices
		for _, states := range c.states {
			before := n.Lessons()
			wrong := n.Exceeds(depth, &c.row, limit.Cost{limit.Requests: 1, limit.Weight: states})
			if wrong != (n.Lessons() > before) {
				t.Errorf("%d: an answer of %d is news: %v", i, states, wrong)
			}
		}
		if weight(&n) != c.taught || n.Lessons() != c.lessons {
			t.Errorf("%d: %d lessons, of %d at last", i, n.Lessons(), weight(&n))
		}
	}
}

func TestMoves(t *testing.T) {
	var n costs.Notices
	for _, c := range []struct {
		resource string
		news     bool
		lessons  int64
	}{{"search", true, 1}, {"search", false, 1}, {"core", true, 2}} {
		if news := n.Moves(depth, c.resource); news != c.news || n.Lessons() != c.lessons {
			t.Errorf("%s: news %v, %d lessons", c.resource, news, n.Lessons())
		}
		if _, resource := n.Taught(depth); resource != c.resource {
			t.Errorf("it counts in %q, expected %q", resource, c.resource)
		}
	}
}

func TestRoute(t *testing.T) {
	for path, want := range map[string]string{
		"/v1/depth":                       "GET /v1/depth",
		"/v1beta/models":                  "GET /v1beta/models",
		"/orders/17/lines/4":              "GET /orders/*/lines/*",
		"/" + strings.Repeat("a", 41):     "GET /*",
		"/" + strings.Repeat("a", 40):     "GET /" + strings.Repeat("a", 40),
		"/a//b/":                          "GET /a//b/",
		"/2024":                           "GET /*",
		"/v12345678/x":                    "GET /*/x",
		"":                                "GET ",
		"/users/ann":                      "GET /users/ann",
		"/a/0":                            "GET /a/*",
		"/0a3f-11/" + "files" + "/x9/end": "GET /*/files/*/end",
	} {
		if got := costs.Route("", path); got != want {
			t.Errorf("%q: %q, expected %q", path, got, want)
		}
	}
}
