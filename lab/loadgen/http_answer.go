package loadgen

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/paceline-go/paceline/lab/strategy"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/provider/classify"
)

// answer is what a server said. The zero value means that nobody knows what became of the request.
type answer struct {
	status            int
	remaining         int               // −1: it does not say
	reset, retryAfter time.Duration     // by the server's clock, which runs as fast as the fleet's; 0: it does not say
	policies          []provider.Policy // what it states of its limits, or its provider documents
}

func (a *answer) served() bool  { return a.status >= 200 && a.status <= 299 }
func (a *answer) limited() bool { return a.status == http.StatusTooManyRequests }

// get sends one request and reads the answer, in the dialect that its server seems to speak.
func (p *process) get(ctx context.Context) (answer, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.URL, nil)
	if err != nil {
		return answer{}, err
	}
	r.Header.Set("User-Agent", fmt.Sprintf("paceline-%d", p.Process))
	response, err := p.http.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		return answer{}, err
	}
	return read(time.Now(), provider.Response{Status: response.StatusCode, Header: response.Header, Body: body}), nil
}

// read takes the limit of requests of which the least is left.
func read(now time.Time, r provider.Response) answer {
	said := provider.Detect(r).Read(now, r)
	a := answer{status: r.Status, remaining: -1, retryAfter: said.RetryAfter, policies: said.Policies}
	for _, l := range said.Limits {
		left := l.Remaining
		if l.Unit != provider.Requests || !left.OK || a.remaining >= 0 && int(left.N) >= a.remaining {
			continue
		}
		a.remaining, a.reset = int(left.N), 0
		if !l.Reset.IsZero() {
			a.reset = max(l.Reset.Sub(now), 0)
		}
	}
	return a
}

// heard returns what a thread learns from the answer.
func (a *answer) heard(sent mono.Time) strategy.Answer {
	h := strategy.Answer{Limited: a.limited(), Known: a.remaining >= 0, Sent: sent, Reset: a.reset,
		RetryAfter: a.retryAfter}
	if h.Known {
		h.Remaining = float64(a.remaining)
	}
	return h
}

// outcome returns what the limiter of a Gate learns, whose clock is the real one.
func (a *answer) outcome(rtt time.Duration, real func(time.Duration) time.Duration) limit.Outcome {
	o := limit.Outcome{Result: limit.Failed, RTT: rtt, RetryAfter: real(a.retryAfter)}
	switch {
	case a.status == 0:
		o.Result = limit.Unknown
	case a.served():
		o.Result = limit.Accepted
	case a.limited():
		o.Result = limit.Limited
	}
	if a.remaining >= 0 {
		o.Known = 1 << limit.Requests
		o.Remaining[limit.Requests] = int64(a.remaining)
		o.Reset[limit.Requests] = real(a.reset)
	}
	return o
}

// stated is what a limiter learns of how the server counts.
func (a *answer) stated(real func(time.Duration) time.Duration) []limit.Rule {
	all := classify.Stated(a.policies)
	for i := range all {
		all[i].Per = real(all[i].Per)
	}
	return all
}
