package daemon

import "errors"

// Offer describes the former process, and the sockets that it passes on.
type Offer struct {
	PID int `json:"pid"`
	// Refused says why the process does not hand over. If empty, it does.
	Refused string `json:"refused,omitempty"`
	// Sockets are in the order in which they go over.
	Sockets []NamedSocket `json:"sockets,omitempty"`
}

// NamedSocket is a listening socket, by its use and by the address for which it was opened.
type NamedSocket struct {
	Use     string `json:"use"`
	Address string `json:"address"`
}

// ErrNoPredecessor means that no process listens at the path of a HandoverSocket.
var ErrNoPredecessor = errors.New("no process to take over from")
