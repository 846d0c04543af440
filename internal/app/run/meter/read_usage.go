package meter

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/tokens"
)

// Answer is what an answer with a status of success says.
type Answer struct {
	Usage  tokens.Usage
	Stated bool // the answer states the Usage
	// Broken says why it is no answer: it is half of one, or no JSON. Failed says that it is an error of
	// the server in place of an answer.
	Broken error
	Failed bool
	Cut    bool // at the bound of its output
}

var (
	errNoJSON    = errors.New("what is no whole JSON")
	errBrokenOff = errors.New("a stream that broke off, or has an error")
)

// Read reads an answer of an API: a document of JSON, or a stream of events.
func Read(api tokens.API, header http.Header, body []byte) (a Answer) {
	var err error
	if tokens.IsStream(header.Get("Content-Type")) {
		w := tokens.NewWatcher(api, true, bytes.NewReader(body))
		_, _ = io.Copy(io.Discard, w)
		if a.Usage, err = w.Usage(); errors.Is(err, tokens.ErrIncomplete) {
			a.Broken = errBrokenOff
		}
	} else if !json.Valid(body) {
		if api != tokens.Media { // speech is no JSON
			a.Broken = errNoJSON // a proxy that gave up in the middle may still have ended the HTTP body properly
		}
		return a
	} else {
		a.Usage, err = tokens.ParseUsage(api, body)
		a.Failed = isError(api, body)
	}
	a.Stated, a.Cut = err == nil, a.Broken == nil && !a.Failed && IsCut(body)
	if u, ok := tokens.HeaderUsage(header); ok {
		a.Usage, a.Stated = u, true
	}
	return a
}

// isError reports whether an answer with status 200 is an error, as from some gateways. In the
// responses API every answer has an error member, so there that proves nothing.
func isError(api tokens.API, body []byte) bool {
	var e struct {
		Error json.RawMessage `json:"error"`
	}
	return api != tokens.Responses && json.Unmarshal(body, &e) == nil && len(e.Error) > 0 && string(e.Error) != "null"
}

// Settled is what counts in the limits once a request is answered.
type Settled struct {
	Cost    limit.Cost
	Counts  bool // the server counts Cost in place of what was reserved
	Overrun bool // there was more output than was reserved
}

// Settle returns what counts of a request's usage, and learns from it.
func (m *Meter) Settle(e tokens.Estimate, reserved limit.Cost, u tokens.Usage) (s Settled) {
	in, out, total, counts := m.c.Count.Settle(e, u)
	if !counts {
		return s
	}
	s.Counts, s.Cost = true, reserved
	s.Cost[limit.Input], s.Cost[limit.Output], s.Cost[limit.Tokens] = in, out, total
	s.Overrun = out > reserved[limit.Output]
	m.estimator.Learn(e, u)
	return s
}
