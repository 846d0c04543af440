package daemon

import (
	"cmp"
	"time"
)

// Controllable is a program that can be controlled. Its methods must be safe for concurrent use.
type Controllable interface {
	// State describes the program, as JSON.
	State() any
	// Turn makes a change, which it names in words.
	Turn(Turn) (said string, err error)
}

// Turn is a change that a user wants.
type Turn struct {
	Knob  string    `json:"knob"` // one of those below
	Name  string    `json:"name,omitempty"`
	Value string    `json:"value,omitempty"`
	Until time.Time `json:"until,omitzero"`
}

// The knobs of a Turn.
const (
	Pause       = "pause"       // of Name, a key or an upstream; empty: of all. Until: its end
	Resume      = "resume"      // of Name
	Limit       = "limit"       // Name is a limit, and Value a rate
	Concurrency = "concurrency" // Name is an upstream, and Value how many requests; 0: as at the start
	Share       = "share"       // Name is a client, and Value its weight
	Page        = "page"        // changes nothing, and makes a token for the page
)

// Words say what a pause or its end does. all stands for no name.
func (t *Turn) Words(all string) string {
	name := cmp.Or(t.Name, all)
	switch {
	case t.Knob == Resume:
		return name + " resumed"
	case t.Until.IsZero():
		return name + " paused until paceline ctl resume"
	}
	return name + " paused until " + t.Until.Local().Format(time.DateTime)
}
