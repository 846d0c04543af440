package journal

import (
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// Earlier is a request that an earlier process sent.
type Earlier struct {
	Place
	Counts time.Time // the latest instant at which the server counts it
	Went   time.Time
	limit.Past
}

// EarlierOf is a request in the file, which counts at the latest at most. began is when the file was opened.
func EarlierOf(sent *Sent, began, most time.Time) (e Earlier, err error) {
	counts := began.Add(time.Duration(sent.Counts - began.UnixNano()))
	if counts.After(most) {
		counts = most
	}
	e = Earlier{Counts: counts, Went: began.Add(time.Duration(sent.Sent - began.UnixNano())),
		Past: limit.Past{Cost: sent.Cost, Result: sent.Result}}
	e.Place, err = ParsePlace(sent.Key)
	return e, err
}

// From is the request for limit.Replay: instant 0 is zero.
func (e *Earlier) From(zero time.Time) limit.Past {
	past := e.Past
	past.At, past.Sent = mono.Of(zero, e.Counts), mono.Of(zero, e.Went)
	return past
}
