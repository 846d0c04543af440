package limit

import (
	"fmt"
)

// Link is what an attempt showed of the way to its server. Result says only how the request ended.
type Link uint8

const (
	Implied        Link = iota // what Result implies: an answer is Working, no answer shows nothing
	Working                    // answered; a refusal is an answer too
	Broken                     // answered as by a server that does not work: a status of 500 or more
	Away                       // answered in the place of a server that is away; others can take its load
	Silent                     // sent, and no answer came
	Unreachable                // no connection: refused, no route, or no answer to the connect
	NoName                     // the name of the host has no address
	BadCertificate             // the certificate is not for this host
	NoFiles                    // this machine had no file or port left for a connection
	links
)

var linkNames = [links]string{"implied", "working", "broken", "away", "silent", "unreachable", "no name", "bad certificate", "no files"}

func (s Link) String() string {
	if s >= links {
		return fmt.Sprintf("link %d", uint8(s))
	}
	return linkNames[s]
}
