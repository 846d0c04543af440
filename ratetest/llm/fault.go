package llm

import (
	"fmt"
	"math"
	"strings"
)

// Fault is a failure that a Server injects into a request, apart from its limits.
type Fault uint8

const (
	NoFault Fault = iota
	// Refused: 429 with Config.RetryAfter although there is room. The request counts nowhere.
	Refused
	// Failed: 500. The request counts, but nothing was generated.
	Failed
	// BadGateway: 502 with a page in HTML, as from a proxy that lost the answer. The request
	// counts.
	BadGateway
	// Unavailable: overloaded, 503 of OpenAI and 529 of Anthropic. The request counts nowhere.
	Unavailable
	// Unpaid: insufficient_quota of OpenAI, or a low credit balance of Anthropic. The request
	// counts nowhere.
	Unpaid
	// Reset: the connection is reset before the answer. The request counts.
	Reset
	// Cut: the connection breaks in the middle of the answer.
	Cut
	// Ended: the answer stops in the middle and the connection ends in good order, as by a proxy
	// that gave up. A stream lacks its last events; JSON is cut off.
	Ended
	// ErrorEvent: a stream reports an error in its middle and ends. A request without a stream
	// fails as with Failed.
	ErrorEvent
	// NoUsage: the answer has no usage.
	NoUsage
	// NoHeaders: the answer has no field about limits, and no Retry-After.
	NoHeaders
	// LyingHeaders: the fields state that nothing is used, and Retry-After is 0.
	LyingHeaders
	// GarbledHeaders: a limit of 0, -1 left, a reset that is no time, a Retry-After of a year.
	GarbledHeaders
	faults
)

var faultNames = [faults]string{"ok", "429", "500", "502", "overloaded", "unpaid", "reset", "cut", "ended",
	"error-event",
	"no-usage", "no-headers", "lying-headers", "garbled-headers"}

func (f Fault) String() string {
	if f < faults {
		return faultNames[f]
	}
	return fmt.Sprintf("Fault(%d)", uint8(f))
}

// namesOfFaults are the names for ParseFault, separated by commas. "ok" is NoFault.
var namesOfFaults = strings.Join(faultNames[:], ", ")

// ParseFault returns the fault of a name.
func ParseFault(name string) (Fault, error) {
	for f, n := range faultNames {
		if n == name {
			return Fault(f), nil
		}
	}
	return 0, fmt.Errorf("ratetest: no fault is called %q: want one of %s", name, namesOfFaults)
}

// checkFaults checks the probabilities and the script. A request has at most one fault.
func checkFaults(p map[Fault]float64, script []Fault) error {
	sum := 0.0
	for f := range faults { // in a fixed order, so that the same configuration gives the same error
		n, ok := p[f]
		if !(n >= 0 && n <= 1) {
			return fmt.Errorf("ratetest: LLM: Faults: %v with probability %v, which is not from 0 to 1", f, n)
		}
		if ok && f == NoFault {
			return fmt.Errorf("ratetest: LLM: Faults: %v is what happens otherwise", f)
		}
		sum += n
	}
	for f := range p {
		if f >= faults {
			return fmt.Errorf("ratetest: LLM: Faults: there is no %v", f)
		}
	}
	if sum > 1+1e-9 {
		return fmt.Errorf("ratetest: LLM: Faults: probabilities are %v together", math.Round(sum*1000)/1000)
	}
	for i, f := range script {
		if f >= faults {
			return fmt.Errorf("ratetest: LLM: Script[%d]: there is no %v", i, f)
		}
	}
	return nil
}

// pick returns the fault of a request. drawn is a random number from [0, 1).
func pick(p map[Fault]float64, drawn float64) Fault {
	for f := range faults {
		if drawn < p[f] {
			return f
		}
		drawn -= p[f]
	}
	return NoFault
}
