package observe

import "github.com/paceline-go/paceline/limit"

// Counts counts the ends of requests. A request that is sent again counts once for each attempt.
type Counts struct {
	// Sent is how many went. Each of them is in flight, or is in one of the next five fields, by
	// its settlement. See limit.Result.
	Sent     int64 `json:"sent"`
	Accepted int64 `json:"accepted"`
	Limited  int64 `json:"limited"` // refused by a limit of the server
	Failed   int64 `json:"failed"`
	Unknown  int64 `json:"unknown"`
	Unsent   int64 `json:"unsent"`
	// These never went: the cost never fits, the deadline comes first, too many wait, the caller
	// gave up.
	Never     int64 `json:"never"`
	Late      int64 `json:"late"`
	Full      int64 `json:"full"`
	Cancelled int64 `json:"cancelled"`
	// Used is the usage that answers stated: tokens, money, weight.
	Used Amounts `json:"used"`
}

// AddCounts adds more to sum. It is no method, since a Snapshot, which embeds Counts, would have it
// too.
func AddCounts(sum, more *Counts) {
	sum.Sent += more.Sent
	sum.Accepted += more.Accepted
	sum.Limited += more.Limited
	sum.Failed += more.Failed
	sum.Unknown += more.Unknown
	sum.Unsent += more.Unsent
	sum.Never += more.Never
	sum.Late += more.Late
	sum.Full += more.Full
	sum.Cancelled += more.Cancelled
	used := sum.Used.Cost()
	for u, n := range more.Used.Cost() {
		used[u] += n
	}
	sum.Used = amountsOf(used)
}

// Amounts is a limit.Cost by name. Money is in millionths of the limit's currency.
type Amounts struct {
	Requests int64 `json:"requests,omitempty"`
	Weight   int64 `json:"weight,omitempty"`
	Orders   int64 `json:"orders,omitempty"`
	Input    int64 `json:"input_tokens,omitempty"`
	Output   int64 `json:"output_tokens,omitempty"`
	Tokens   int64 `json:"tokens,omitempty"`
	Money    int64 `json:"money,omitempty"`
	Other    int64 `json:"other,omitempty"`
}

// amountsOf names the components of a cost.
func amountsOf(c limit.Cost) Amounts {
	return Amounts{
		Requests: c[limit.Requests], Weight: c[limit.Weight], Orders: c[limit.Orders], Input: c[limit.Input],
		Output: c[limit.Output], Tokens: c[limit.Tokens], Money: c[limit.Money], Other: c[limit.Other],
	}
}

// Cost is the inverse of what a Snapshot makes of a cost.
func (a Amounts) Cost() (c limit.Cost) {
	c[limit.Requests], c[limit.Weight], c[limit.Orders], c[limit.Input] = a.Requests, a.Weight, a.Orders, a.Input
	c[limit.Output], c[limit.Tokens], c[limit.Money], c[limit.Other] = a.Output, a.Tokens, a.Money, a.Other
	return c
}
