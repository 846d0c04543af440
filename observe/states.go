package observe

import (
	"cmp"
	"time"

	"github.com/paceline-go/paceline/limit"
)

// Whose says whom a limit, a pause or an Event concerns. Fields that make no difference are empty.
// Key stands for a credential and never contains it.
type Whose struct {
	// Target is one of several servers behind one name: see transport.Target.
	Target string `json:"target,omitempty"`

	Host  string `json:"host,omitempty"`
	Key   string `json:"key,omitempty"`
	Model string `json:"model,omitempty"`
	Route string `json:"route,omitempty"`
	// Resource is a named part of the key's quota.
	Resource string `json:"resource,omitempty"`
	Client   string `json:"client,omitempty"`
}

// Server is the name of the target, or else the host. Metrics have it as the host.
func (w Whose) Server() string { return cmp.Or(w.Target, w.Host) }

func (w Whose) compare(v Whose) int {
	return cmp.Or(cmp.Compare(w.Target, v.Target), cmp.Compare(w.Host, v.Host), cmp.Compare(w.Key, v.Key),
		cmp.Compare(w.Model, v.Model), cmp.Compare(w.Resource, v.Resource), cmp.Compare(w.Route, v.Route), cmp.Compare(w.Client, v.Client))
}

// LimitState is one limit. A limiter made of several has one LimitState for each that counts
// something.
type LimitState struct {
	Whose
	// Name is that of limit.Rule: as given to limit.Named, or the unit that the limit counts.
	Name string `json:"limit"`
	// Unit is the counted unit, as package limit names it: "requests", "input tokens", "in flight".
	Unit string `json:"unit"`
	// Used is what counts now, and Allowed is the most that may. For a bucket, Used is what is
	// missing from it, and Allowed is a full bucket. Requests without an answer are in Used, and in
	// Open.
	Used    int64 `json:"used"`
	Open    int64 `json:"open"`
	Allowed int64 `json:"allowed"`
	// Window is the time in which PerWindow may go in the long run. Both are 0 where time does not
	// matter, as for requests in flight.
	Window    time.Duration `json:"window_ns"`
	PerWindow int64         `json:"per_window"`
	// Total is all that was ever counted. Recent is the part of it in the last Window, or since the
	// beginning if that was later. Of a limit that several processes share, the part of this process has
	// the Total, and the whole has Recent: see share.Member.
	Total  int64 `json:"total"`
	Recent int64 `json:"recent"`
	// Fits is the server's observed limit per Window, if it is less than PerWindow: see
	// limit.Fitted. 0: as configured.
	Fits int64 `json:"fits,omitempty"`
	// Share is the used part of the ceiling, from 0 to 1. It is the count of the last Window
	// divided by PerWindow; without a Window, Used divided by Allowed. It is 1 at most, even after
	// a full bucket let through more (see Recent), or after the limit was lowered.
	Share float64 `json:"share"`
	// Next is when one more, of cost 1 in Unit, may go; the zero Time: now. With NextUnknown, only
	// an answer decides.
	Next        time.Time `json:"next,omitzero"`
	NextUnknown bool      `json:"next_unknown,omitempty"`
	// PausedUntil is the end of a pause by the limit's owner. Why is its reason in words.
	PausedUntil time.Time `json:"paused_until,omitzero"`
	Why         string    `json:"why,omitempty"`
	// Waiting is how many wait in lanes whose first waits for this limit, or for another of the
	// same Limiter.
	Waiting int `json:"waiting"`
	// WaitingReserve is how many of those wait only because their lane leaves a part of the limit free:
	// see paceline.ClassConfig.Reserve. One more of another lane may go at Next.
	WaitingReserve int `json:"waiting_reserve,omitempty"`
	// Store, of a limit in a store that processes share, is one of the constants that begin with Store.
	// StoreWhy is its reason in words.
	Store    string `json:"store,omitempty"`
	StoreWhy string `json:"store_why,omitempty"`
}

// States of a limit that processes share in a store: see share.Member.
const (
	StoreOK      = "ok"
	StoreQuiet   = "quiet"   // nothing is granted to anybody for a while
	StoreAway    = "away"    // the store cannot be reached, or does not answer rightly
	StoreRefused = "refused" // the store has another limit under this name, or the state of another version
)

// LimitOf returns the LimitState of a limiter's usage. The caller fills in Whose, Next, the pause
// and Waiting.
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
	// A bucket lets its store through besides its inflow, and a limit may have been lowered. More
	// than the ceiling counts as all of it.
	l.Share = min(l.Share, 1)
	return l
}

// StoredIn fills in Store and StoreWhy if a part of the limiter is in a store. Of several such parts, one
// that is not served counts.
func (l *LimitState) StoredIn(of limit.Limiter) {
	limit.Ask(of, func(part interface {
		Stored() (state string, why error)
	}) {
		state, why := part.Stored()
		if l.Store != "" && state == StoreOK {
			return
		}
		if l.Store, l.StoreWhy = state, ""; why != nil {
			l.StoreWhy = why.Error()
		}
	})
}

// ClientState is one client. A Gate or a Pool is one client. In a Group, all lanes with the same
// LaneConfig.Client are one.
type ClientState struct {
	Name     string `json:"client"`
	Waiting  int    `json:"waiting"`
	InFlight int    `json:"in_flight"`
	// LongestWait is how long the client's first request in line has waited.
	LongestWait time.Duration `json:"longest_wait_ns"`
	Weight      float64       `json:"weight"`
	Counts
	// Share is the client's part of all served requests, by Accepted: 0 to 1.
	Share float64 `json:"share"`
	// LastGoes is the estimated instant at which the last waiting request goes, if none comes or
	// leaves. A Pool assumes that all of them cost as much as the first. The zero Time: none waits,
	// or the instant is unknown. It is estimated for 64 lanes with requests in line.
	LastGoes time.Time `json:"last_goes,omitzero"`
}

// States of a key.
const (
	KeyOK       = "ok"
	KeyPaused   = "paused"    // refused, or asked to stay away until Until; without Until, until its user lets it go on
	KeyBanned   = "banned"    // refused for good, or until Until
	KeyNoCredit = "no credit" // no credit is left
	KeyDenied   = "denied"    // it lacks permission for its requests
)

// KeyState is one of our credentials.
type KeyState struct {
	Host string `json:"host,omitempty"`
	Name string `json:"key"`
	// State is one of the constants that begin with Key. Until is its end, if that is known. Why is
	// its reason in words.
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
	// Until is the end of the pause. Next is when a request may go: Until, or earlier to find out
	// whether the pause still holds. A host that is down has no Until.
	Until time.Time `json:"until,omitzero"`
	Next  time.Time `json:"next,omitzero"`
	Down  bool      `json:"down,omitempty"`
	Why   string    `json:"why"`
}

// FrozenState is what the idle partitions and clients of a Transport take that are frozen: see
// transport.Config.MaxFrozen. Clients that several Transports have in common are in the Snapshot of
// each.
type FrozenState struct {
	Partitions int   `json:"partitions"`
	Bytes      int64 `json:"bytes"`
	Most       int64 `json:"most"` // of Bytes
	// Clients are clients with their own limits.
	Clients     int   `json:"clients"`
	ClientBytes int64 `json:"client_bytes"`
	ClientMost  int64 `json:"client_most"`
	// Refused is how many requests were refused for lack of room.
	Refused int64 `json:"refused"`
}
