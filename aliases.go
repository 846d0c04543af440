package paceline

import (
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/observe"
)

// These are the names of package observe, from before there was one. They stay for one release.
//
// Deprecated: use those of package observe.
type (
	Source        = observe.Source
	Snapshot      = observe.Snapshot
	Whose         = observe.Whose
	Counts        = observe.Counts
	Amounts       = observe.Amounts
	LimitState    = observe.LimitState
	ClientState   = observe.ClientState
	KeyState      = observe.KeyState
	PauseState    = observe.PauseState
	WaitTimes     = observe.WaitTimes
	UpstreamTimes = observe.UpstreamTimes
	Times         = observe.Times
	Event         = observe.Event
	Stats         = observe.Stats
)

// States of a key.
//
// Deprecated: use those of package observe.
const (
	KeyOK       = observe.KeyOK
	KeyPaused   = observe.KeyPaused
	KeyBanned   = observe.KeyBanned
	KeyNoCredit = observe.KeyNoCredit
	KeyDenied   = observe.KeyDenied
)

// Kinds of Events.
//
// Deprecated: use those of package observe.
const (
	EventRefused = observe.EventRefused
	EventPaused  = observe.EventPaused
	EventBanned  = observe.EventBanned
	EventDown    = observe.EventDown
	EventAlone   = observe.EventAlone
	EventBack    = observe.EventBack
	EventWrong   = observe.EventWrong
)

// NameSource is observe.NameSource.
//
// Deprecated: use observe.NameSource.
func NameSource(name string, s observe.Source) observe.Source { return observe.NameSource(name, s) }

// AmountsOf is observe.AmountsOf.
//
// Deprecated: use observe.AmountsOf.
func AmountsOf(c limit.Cost) observe.Amounts { return observe.AmountsOf(c) }
