package postgres

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/backlog"
	"github.com/paceline-go/paceline/internal/testkit/need"
)

// node is a part of a plan that was executed.
type node struct {
	Rows    float64 `json:"Actual Rows"`
	Loops   float64 `json:"Actual Loops"`
	Removed float64 `json:"Rows Removed by Join Filter"`
	Plans   []node
}

// work returns how many rows the node and all below it made, or compared and left out.
func (n *node) work() float64 {
	sum := (n.Rows + n.Removed) * n.Loops
	for i := range n.Plans {
		sum += n.Plans[i].work()
	}
	return sum
}

// The database reads each request of a large turn a few times, and not once for each other request. The same holds for
// the requests of a worker that is given up.
func TestLargeTurn(t *testing.T) {
	const n = 2000
	jobs := make([]backlog.Job, 2*n)
	for i := range jobs {
		jobs[i].ID = fmt.Sprint(i)
	}
	s, list, w := registered(t, need.PostgreSQL(t).URL, jobs...)
	claims := &backlog.Turn{Worker: w.Worker, Beat: w.Beat, Claims: []backlog.Claim{{N: 2 * n}}}
	o, err := s.Turn(t.Context(), list, claims)
	if err != nil || len(o.Claimed) != 2*n {
		t.Fatalf("%d claimed, %v", len(o.Claimed), err)
	}
	var ends []backlog.End
	var sending []int64
	for i, j := range o.Claimed {
		if i < n {
			ends = append(ends, backlog.End{Seq: j.Seq, State: uint8(backlog.Done)})
		} else {
			sending = append(sending, j.Seq)
		}
	}
	marks := &backlog.Turn{Worker: w.Worker, Beat: w.Beat + 1, Sending: sending}
	if _, err := s.Turn(t.Context(), list, marks); err != nil {
		t.Fatal(err)
	}
	explain := func(sql string, args ...any) (plan string, work float64) {
		t.Helper()
		tx, err := s.pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback(t.Context())
		if _, err := tx.Exec(t.Context(), settings); err != nil {
			t.Fatal(err)
		}
		sql = "EXPLAIN (ANALYZE, VERBOSE, FORMAT JSON) " + sql
		if err := tx.QueryRow(t.Context(), sql, args...).Scan(&plan); err != nil {
			t.Fatal(err)
		}
		var all []struct{ Plan node }
		if err := json.Unmarshal([]byte(plan), &all); err != nil || len(all) != 1 {
			t.Fatalf("%s\n%v", plan, err)
		}
		return plan, all[0].Plan.work()
	}
	if plan, work := explain(end, endsOf(list, w.Worker, ends)...); work > 20*n || work < 3*n {
		t.Errorf("%d results take %.0f rows\n%s", n, work, plan)
	}
	plan, work := explain(giveUp, w.Worker, w.Beat+2)
	if work > 20*n || work < 3*n || !strings.Contains(plan, "hashed SubPlan") {
		t.Errorf("giving up %d requests takes %.0f rows\n%s", 2*n, work, plan)
	}
}
