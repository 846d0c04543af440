package observe

import (
	"cmp"
	"time"

	"github.com/paceline-go/paceline/limit"
)

// Whose says whom something concerns. Fields that make no difference are empty. Key stands for a
// credential and never contains it.
type Whose struct {
	Host   string `json:"host,omitempty"`
	Key    string `json:"key,omitempty"`
	Model  string `json:"model,omitempty"`
	Route  string `json:"route,omitempty"`
	Client string `json:"client,omitempty"`
}

func (w Whose) compare(v Whose) int {
	return cmp.Or(cmp.Compare(w.Host, v.Host), cmp.Compare(w.Key, v.Key), cmp.Compare(w.Model, v.Model),
		cmp.Compare(w.Route, v.Route), cmp.Compare(w.Client, v.Client))
}

// LimitState is one limit. A limiter that is made of several has one for each that counts something.
type LimitState struct {
	Whose
	// Name is that of limit.Bound: as given to limit.Named, or what the limit counts.
	Name string `json:"limit"`
	// Unit is what it counts, as package limit names it: "requests", "input tokens", "in flight".
	Unit string `json:"unit"`
	// Used counts now, Allowed is the most that may. Of a bucket, Used is what is missing from it and
	// Allowed what the full one holds. Requests without an answer are in Used, and in Open.
	Used    int64 `json:"used"`
	Open    int64 `json:"open"`
	Allowed int64 `json:"allowed"`
	// Window is the time in which PerWindow may go in the long run. Both are 0 where time does not
	// matter, as of requests in flight.
	Window    time.Duration `json:"window_ns"`
	PerWindow int64         `json:"per_window"`
	// Total is what was ever counted. Recent is what of that was counted in the last Window, or since the
	// beginning if that was later.
	Total  int64 `json:"total"`
	Recent int64 `json:"recent"`
	// Fits is what the server was found to allow per Window, where that is less than PerWindow: see
	// limit.Fitted. 0: it is as configured.
	Fits int64 `json:"fits,omitempty"`
	// Share is what of the ceiling is used: what was counted in the last Window, of PerWindow; without a
	// Window, Used of Allowed. It is 0 to 1, and 1 is all. It is no more where a full bucket has let
	// through more (see Recent), or where the limit was lowered.
	Share float64 `json:"share"`
	// Next is when one more, of cost 1 in Unit, may go: the zero Time if now. NextUnknown: only an answer
	// can tell.
	Next        time.Time `json:"next,omitzero"`
	NextUnknown bool      `json:"next_unknown,omitempty"`
	// PausedUntil is until when the owner of the limit stays away, and Why in words what for.
	PausedUntil time.Time `json:"paused_until,omitzero"`
	Why         string    `json:"why,omitempty"`
	// Waiting is how many wait in lines of which the first waits for this limit, or for others of the same
	// Limiter.
	Waiting int `json:"waiting"`
}

// LimitOf returns the LimitState of what a limiter reports as used. Whose, Next, the pause and Waiting
// are still to be filled in.
func LimitOf(u *limit.Usage) LimitState {
	l := LimitState{
		Name: u.Limit, Unit: u.Unit.String(), Used: u.Used, Open: u.Open, Allowed: u.Allowed,
		Window: u.Window, PerWindow: u.PerWindow, Total: u.Total, Recent: u.Recent, Fits: u.Fits,
	}
	switch {
	case u.InFlight:
		l.Unit = "in flight"
		l.Share = float64(u.Used) / float64(max(u.Allowed, 1))
	case u.PerWindow > 0:
		l.Share = float64(u.Recent) / float64(u.PerWindow)
	}
	// Beside what flows into a bucket goes what it had in store, and a limit may have been lowered: more
	// than the ceiling is all of it.
	l.Share = min(l.Share, 1)
	return l
}

// ClientState is one client: of a Gate or a Pool all of it, of a Group the lanes of one
// LaneConfig.Client.
type ClientState struct {
	Name     string `json:"client"`
	Waiting  int    `json:"waiting"`
	InFlight int    `json:"in_flight"`
	// LongestWait is how long its first in line has waited.
	LongestWait time.Duration `json:"longest_wait_ns"`
	Weight      float64       `json:"weight"`
	Counts
	// Share is which part of what was served was this client's, by Accepted: 0 to 1.
	Share float64 `json:"share"`
	// LastGoes is about when the last goes that waits now, if no other comes or leaves. Of a Pool, it
	// takes all that wait to cost as much as the first. The zero Time: none waits, or it is not known. It
	// is estimated for 64 lanes with requests in line.
	LastGoes time.Time `json:"last_goes,omitzero"`
}

// States of a key.
const (
	KeyOK       = "ok"
	KeyPaused   = "paused"    // refused, or asked to stay away until Until
	KeyBanned   = "banned"    // refused for good, or until Until
	KeyNoCredit = "no credit" // nothing is left that could be paid with
	KeyDenied   = "denied"    // it may not do what it was used for
)

// KeyState is one credential of ours.
type KeyState struct {
	Host string `json:"host,omitempty"`
	Name string `json:"key"`
	// State is one of the constants that begin with Key. Until is its end, if that is known. Why is its
	// reason in words.
	State    string    `json:"state"`
	Until    time.Time `json:"until,omitzero"`
	Why      string    `json:"why,omitempty"`
	InFlight int       `json:"in_flight"`
	Counts
}

// PauseState is a pause that keeps requests away now.
type PauseState struct {
	Whose
	Since time.Time `json:"since,omitzero"`
	// Until is its end. Next is when a request may go: Until, or before that to see whether the pause
	// still holds. A host that is down has no Until.
	Until time.Time `json:"until,omitzero"`
	Next  time.Time `json:"next,omitzero"`
	Down  bool      `json:"down,omitempty"`
	Why   string    `json:"why"`
}
