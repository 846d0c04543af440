package meter

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/paceline-go/paceline/internal/text/rate"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/tokens"
)

// Paths says in words at which paths tokens can be counted.
const Paths = "POST to a path that ends in /chat/completions, /responses, /embeddings, /messages, :generateContent, " +
	"/converse or another of a known API (docs/batch.md)"

// Body reads the body of a request, unless its tokens cannot be counted: its path is of no known API, or its
// body is none of that API.
func Body(method string, u *url.URL, raw []byte) (tokens.Body, error) {
	api := tokens.APIOf(u.Path)
	if api == tokens.NoAPI || method != http.MethodPost {
		return tokens.Body{}, &Uncounted{Method: method, Path: u.EscapedPath()}
	}
	body, err := tokens.Parse(api, raw)
	if err != nil {
		return body, errors.New(strings.TrimPrefix(err.Error(), "tokens: "))
	}
	if body.Model == "" {
		body.Model = tokens.ModelOf(u)
	}
	return body, nil
}

// Uncounted is the error of a request whose path is of no known API.
type Uncounted struct{ Method, Path string }

func (e *Uncounted) Error() string {
	return fmt.Sprintf("the tokens of %s %s cannot be counted, expected %s", e.Method, e.Path, Paths)
}

// Measured is what a request may cost.
type Measured struct {
	Estimate  tokens.Estimate
	Unbounded bool // the request does not bound its output
	Cost      limit.Cost
}

// Measure returns the cost of a request with this body. With roughly set it is ten times as fast: for each
// model it counts the first 200 texts, and then one of 64. These counts correct its guesses for the others.
//
// The cost is at most what each limit allows at once, where no more than an estimate is too large: such a
// request goes alone. Answers may have raised the estimate since the input was checked, as checked says.
// A TooLarge is the error of a request that can never go.
func (m *Meter) Measure(body tokens.Body, roughly, checked bool) (q Measured, err error) {
	bounded := body.Bounded
	if !bounded && m.c.MaxOutput > 0 {
		body.MaxOutput, body.Bounded = m.c.MaxOutput, true
	}
	if roughly {
		q.Estimate, q.Cost = m.guess(body)
	} else {
		q.Estimate = m.estimator.Of(body)
		q.Cost = m.cost(q.Estimate, body)
	}
	q.Unbounded = !bounded && q.Estimate.MaxOutput > 0 // embeddings have no output
	return q, m.fit(&q, body, checked)
}

// guess is Measure, roughly.
func (m *Meter) guess(b tokens.Body) (tokens.Estimate, limit.Cost) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.corrections[b.Model]
	if s == nil {
		if len(m.corrections) >= 1000 {
			clear(m.corrections) // the names of models seem to be made up
		}
		s = &correction{}
		m.corrections[strings.Clone(b.Model)] = s
	}
	s.n++
	e := m.rough.Of(b)
	// A quarter more than a guess is above almost every count. If that fits the limits, no count is
	// needed.
	most := e
	most.Input += most.Input / 4
	if s.n <= 200 || s.n%64 == 0 || m.tooLarge(b.Model, m.cost(most, b)) {
		rough := e.Input
		e = m.estimator.Of(b)
		s.exact += float64(e.Input)
		s.rough += float64(rough)
	} else if s.rough > 0 {
		e.Input = int64(float64(e.Input)*s.exact/s.rough + 0.5)
	}
	return e, m.cost(e, b)
}

func (m *Meter) tooLarge(model string, c limit.Cost) bool {
	return slices.ContainsFunc(rate.OfModel(m.c.Limits, m.SharedModel(model)),
		func(r rate.Limit) bool { return !r.Fits(c[r.Unit]) })
}

// cost returns the cost at which a request is admitted: the reservation in the limits until its
// answer comes.
func (m *Meter) cost(e tokens.Estimate, b tokens.Body) limit.Cost {
	in, out, total := m.c.Count.Reserve(e, b)
	if m.produces { // the server reserves nothing, and an expected output would not bound the usage
		out = e.MaxOutput
	}
	return limit.Cost{limit.Requests: 1, limit.Input: in, limit.Output: out, limit.Tokens: total}
}

// fit lowers the cost of a request to what fits each limit. See Measure.
func (m *Meter) fit(q *Measured, body tokens.Body, checked bool) error {
	in, out, total := m.c.Count.Least(q.Estimate, body)
	least := limit.Cost{limit.Requests: 1, limit.Input: in, limit.Output: out, limit.Tokens: total}
	for _, r := range rate.OfModel(m.c.Limits, m.SharedModel(body.Model)) {
		switch n := q.Cost[r.Unit]; {
		case r.Fits(n):
		case checked || r.Fits(least[r.Unit]):
			q.Cost[r.Unit] = r.Most()
		default:
			return &TooLarge{Cost: n, Estimate: q.Estimate, Limit: r}
		}
	}
	return nil
}

// TooLarge is the error of a request that can never go: it is larger than a limit.
type TooLarge struct {
	Cost     int64 // in the unit of Limit
	Estimate tokens.Estimate
	Limit    rate.Limit
}

func (e *TooLarge) Error() string {
	return fmt.Sprintf("can never go: it counts %d %v (%d in, at most %d out), and limit %s allows %d at once",
		e.Cost, e.Limit.Unit, e.Estimate.Input, e.Estimate.Output, e.Limit.Text, e.Limit.Most())
}
