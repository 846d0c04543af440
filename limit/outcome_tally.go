package limit

// Tally counts how requests were settled, for reports of drivers. The zero Tally is ready.
type Tally struct {
	Accepted, Limited, Failed, Unknown, Unsent int64
	// Used is the used cost, from the metered outcomes.
	Used Cost
}

// Settled counts an outcome.
func (t *Tally) Settled(o *Outcome) {
	switch o.Result {
	case Accepted:
		t.Accepted++
	case Limited:
		t.Limited++
	case Failed:
		t.Failed++
	case Unsent:
		t.Unsent++
	default:
		t.Unknown++
	}
	if o.Metered {
		for u, n := range o.Actual {
			t.Used[u] += min(max(n, 0), MaxCost)
		}
	}
}

// Sum returns how many outcomes were counted.
func (t *Tally) Sum() int64 { return t.Accepted + t.Limited + t.Failed + t.Unknown + t.Unsent }

// Add adds the counts of another Tally.
func (t *Tally) Add(more *Tally) {
	t.Accepted += more.Accepted
	t.Limited += more.Limited
	t.Failed += more.Failed
	t.Unknown += more.Unknown
	t.Unsent += more.Unsent
	for u, n := range more.Used {
		t.Used[u] += n
	}
}
