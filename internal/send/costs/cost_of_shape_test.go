package costs_test

import (
	"testing"

	"github.com/paceline-go/paceline/internal/send/costs"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider"
)

func weighs(n int64) limit.Cost { return limit.Cost{limit.Requests: 1, limit.Weight: n} }

// Shapes are forgotten beyond 4,096, the one that was used least lately first.
func TestShapesAreBounded(t *testing.T) {
	var s costs.Shapes
	for id := range uint64(4096) {
		s.Teach(id, weighs(7))
	}
	s.Enter(0)
	for id := range uint64(4095) {
		s.Teach(4096+id, weighs(7))
	}
	if _, known := s.Taught(0); !known {
		t.Error("4,095 others came after its latest use, and it is forgotten")
	}
	s.Teach(9000, weighs(7))
	if _, known := s.Taught(0); known {
		t.Error("4,096 others came after its latest use, and it is known")
	}
}

// The first request of a shape is waited for, and after its end the next one. It is not where a cost is known,
// or where an answer did not tell one.
func TestWhoIsWaitedFor(t *testing.T) {
	var s costs.Shapes
	waits := func(id uint64) bool {
		f, _, _, wait := s.Enter(id)
		if (f == nil) != (wait != nil) {
			t.Error("a request waits and goes")
		}
		return wait != nil
	}
	first, _, _, _ := s.Enter(1)
	_, _, _, wait := s.Enter(1)
	if wait == nil {
		t.Fatal("two find the cost out at once")
	}
	s.Ends(first)
	s.Ends(first) // its call may end it again
	<-wait
	second, _, known, _ := s.Enter(1)
	if known || second == nil || !waits(1) {
		t.Error("after an end without an answer, the next one does not find the cost out")
	}
	s.Untold(second)
	if !waits(1) {
		t.Error("a request goes before the limits know what the one that finds the cost out did cost")
	}
	s.Ends(second)
	for range 2 {
		if waits(1) {
			t.Error("a request waits for a cost that answers do not tell")
		}
	}
	s.Learn(second, weighs(3))
	if f, cost, known, _ := s.Enter(1); !known || cost != weighs(3) || f == nil {
		t.Errorf("it costs %v, known: %t", cost, known)
	}
	s.Learn(nil, weighs(9))
	s.Untold(nil)
}

// Those that wait in a line need another cost if none was known, or if it rose in some unit.
func TestTeach(t *testing.T) {
	var s costs.Shapes
	for i, c := range []struct {
		cost    int64
		changes bool
	}{{0, true}, {5, true}, {5, false}, {3, false}, {4, true}} {
		before := s.Lessons()
		if got := s.Teach(1, weighs(c.cost)); got != c.changes || (s.Lessons() > before) != c.changes {
			t.Errorf("answer %d: changes %t, %d lessons after %d", i, got, s.Lessons(), before)
		}
		if cost, known := s.Taught(1); !known || cost != weighs(c.cost) {
			t.Errorf("answer %d: it costs %v", i, cost)
		}
	}
	if _, known := s.Taught(2); known {
		t.Error("another shape is known")
	}
}

// Only GraphQL queries have a shape, and only if their charge states no bound, or gives it up.
func TestWhatHasAShape(t *testing.T) {
	type amounts = map[provider.Unit]int64
	answer := map[provider.Unit]provider.Expression{provider.Weight: nil}
	const query = `{"query":"{a{b}}"}`
	for _, c := range []struct {
		row  provider.Charge
		body string
		has  bool
	}{
		{provider.Charge{Answer: answer}, query, true},
		{provider.Charge{Answer: answer}, `{"query":"red shoes"}`, false},
		{provider.Charge{Answer: answer}, `{"query":{"match":"a"}}`, false},
		{provider.Charge{Answer: answer}, `{"model":"m"}`, false},
		{provider.Charge{Answer: answer}, `[` + query + `]`, false},
		{provider.Charge{Answer: answer}, "", false},
		{provider.Charge{Answer: answer, Cost: amounts{provider.Orders: 1}}, query, true},
		{provider.Charge{Answer: answer, Cost: amounts{provider.Weight: 400}}, query, false},
		{provider.Charge{Answer: answer, Cost: amounts{provider.Weight: 400}, Learns: true}, query, true},
		{provider.Charge{Answer: answer, Cost: amounts{provider.Weight: 400}, Learns: true}, `{"model":"m"}`, false},
		{provider.Charge{Cost: amounts{provider.Weight: 400}, Learns: true}, query, false},
	} {
		if got := costs.ShapeOf("a.test", &c.row, []byte(c.body)) != 0; got != c.has {
			t.Errorf("%s with %+v has a shape: %t", c.body, c.row, got)
		}
	}
}

// A unit that only the answer knows has the cost of the shape, or that of the charge, or all.
func TestReserved(t *testing.T) {
	row := &provider.Charge{On: "POST *", Answer: map[provider.Unit]provider.Expression{provider.Weight: nil}, Learns: true}
	bound := limit.Cost{limit.Weight: 50, limit.Orders: 2}
	for _, c := range []struct {
		worth, cost limit.Cost
		known       bool
		weight      int64
	}{{bound, weighs(7), true, 7}, {bound, weighs(0), true, 0}, {bound, limit.Cost{}, false, 50}, {limit.Cost{}, limit.Cost{}, false, limit.MaxCost}} {
		got := costs.Reserved(c.worth, row, c.cost, c.known)
		if got[limit.Weight] != c.weight || got[limit.Orders] != c.worth[limit.Orders] || got[limit.Requests] != 0 {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
