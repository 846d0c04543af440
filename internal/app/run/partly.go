package run

import (
	"fmt"
	"net/http"

	"github.com/paceline-go/paceline/internal/text/sanitize"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/pool"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/provider/classify"
)

// Partly is how a run goes on after an answer of which a limit refused some parts.
type Partly uint8

const (
	// PartlyDone makes it the result of its request, which says so. A request that only reads goes
	// again, with the attempts that it has left.
	PartlyDone Partly = iota
	// PartlyAgain sends every such request again, as a possible repeat.
	PartlyAgain
	// PartlyHold makes a dead letter of every such request.
	PartlyHold
)

// PartlyNames are the names of the ways, in their order.
var PartlyNames = []string{"done", "again", "hold"}

// idempotent reports whether all that a request asks for may be done twice.
func idempotent(j *job) bool {
	if j.r == nil {
		return false
	}
	return classify.Idempotent(&http.Request{Method: j.hop.method, Header: j.r.Header}) ||
		provider.Reads(j.r.Header, j.r.Body)
}

// partly decides about an answer that was served in part. It counts in full, so whatever becomes of
// its request, the limits learn of an answer and of a pause.
func (r *Run) partly(j *job, v *classify.Verdict, ans *pool.Answer) {
	ans.Reason += fmt.Sprintf(", served in part (%v)", *j.parts)
	switch {
	case v.Again && j.number < r.c.Attempts && r.c.Partly != PartlyHold:
		ans.Result = limit.Failed // it counts as one that was served
	case r.c.Partly == PartlyHold:
		ans.Invalid, ans.Reason = true, ans.Reason+": it is held back (--partly hold)"
	default:
		j.unsure = false // its answer is its result
	}
}

// tellPartly reports the results of requests that were served in part, at the end.
func (r *Run) tellPartly(n int) {
	if n == 0 {
		return
	}
	r.tell(`%s served in part: a limit refused the rest, and the results say "partly"; --partly again sends such requests again, --partly hold makes dead letters of them`,
		sanitize.Count(n, "request was", "requests were"))
}
