package run

import (
	"fmt"

	"github.com/paceline-go/paceline/internal/app/run/output"
)

// DeadBecause names the file of this run's dead letters and their most frequent reason. It is empty
// if there are none.
func (r *Run) DeadBecause() string {
	most, n, all := r.tally.DeadBecause()
	if most == "" {
		return ""
	}
	where := ""
	if dead := r.store.Dead; dead != nil && dead != r.store.Out {
		where = " in " + dead.Name()
	}
	if all == 1 {
		return fmt.Sprintf("1 dead letter%s, because: %s", where, most)
	}
	return fmt.Sprintf("%d dead letters%s, %d of them because: %s", all, where, n, most)
}

// DeadAgain says how many requests of the input are dead or expired, why, and how to send them
// again. It is empty if there are none. It says how only if another run can know of them.
func (r *Run) DeadAgain() string {
	r.tally.Mu.Lock()
	defer r.tally.Mu.Unlock()
	e := r.tally.Bad
	switch e.Again = r.c.Out != "-"; {
	case !e.Again:
		e.Lapsed, e.Again = 0, r.c.Dead != "-" && !output.IsNowhere(r.c.Dead)
	case output.IsNowhere(r.c.Dead):
		e.Again = false // no file keeps them, so another run sends them again in any case
	}
	text := e.String()
	if t := &r.tally.Totals; text == "" && r.c.RetryDead != 0 && t.Done > 0 && t.NotEnded() == 0 && r.store.Dead.Began() {
		return fmt.Sprintf("no dead letters are left: all of %s are done now, and it keeps their lines", r.store.Dead.Name())
	}
	return text
}
