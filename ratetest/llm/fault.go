package llm

import (
	"fmt"
	"math"
	"strings"
)

// Fault is what a Server does to a request beside its limits.
type Fault uint8

const (
	NoFault Fault = iota
	// Refused: 429 with Config.RetryAfter though there is room; it counts nowhere.
	Refused
	// Failed: 500; the request counts, but nothing was generated.
	Failed
	// BadGateway: 502 with a page in HTML, as from a proxy that lost the answer; the request counts.
	BadGateway
	// Unavailable: 503 of OpenAI, 529 of Anthropic, overloaded; it counts nowhere.
	Unavailable
	// Unpaid: insufficient_quota of OpenAI, a credit balance that is too low of Anthropic; it counts nowhere.
	Unpaid
	// Reset: the connection is reset before the answer; the request counts.
	Reset
	// Cut: the connection breaks in the middle of the answer.
	Cut
	// Ended: the answer stops in the middle and the connection ends in good order, as by a proxy that gave up: a stream
	// without its last events, JSON that is cut off.
	Ended
	// ErrorEvent: a stream reports an error in its middle and ends; what is no stream fails as by Failed.
	ErrorEvent
	// NoUsage: the answer does not say what it used.
	NoUsage
	// NoHeaders: no field about limits, and no Retry-After.
	NoHeaders
	// LyingHeaders: the fields say that nothing is used, and Retry-After is 0.
	LyingHeaders
	// GarbledHeaders: a limit of 0, -1 left, a reset that is no time, Retry-After of a year.
	GarbledHeaders
	faults
)

var faultNames = [faults]string{"ok", "429", "500", "502", "overloaded", "unpaid", "reset", "cut", "ended", "error-event",
	"no-usage", "no-headers", "lying-headers", "garbled-headers"}

func (f Fault) String() string {
	if f < faults {
		return faultNames[f]
	}
	return fmt.Sprintf("Fault(%d)", uint8(f))
}

// FaultNames is the names that ParseFault reads, with commas; "ok" is NoFault.
var FaultNames = strings.Join(faultNames[:], ", ")

// ParseFault returns the fault of a name.
func ParseFault(name string) (Fault, error) {
	for f, n := range faultNames {
		if n == name {
			return Fault(f), nil
		}
	}
	return 0, fmt.Errorf("ratetest: no fault is called %q: want one of %s", name, FaultNames)
}

// checkFaults checks probabilities, one fault a request.
func checkFaults(p map[Fault]float64, script []Fault) error {
	sum := 0.0
	for f := range faults { // in order: the same configuration gives the same error
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

// pick returns the fault of a request, by a number drawn from [0, 1).
func pick(p map[Fault]float64, drawn float64) Fault {
	for f := range faults {
		if drawn < p[f] {
			return f
		}
		drawn -= p[f]
	}
	return NoFault
}
