package llm

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// fault is a failure that a Server injects into a request, apart from its limits. Config.Faults says
// what each does.
type fault uint8

const (
	noFault fault = iota
	faultRefused
	faultFailed
	faultBadGateway
	faultUnavailable
	faultUnpaid
	faultReset
	faultCut
	faultEnded
	faultErrorEvent
	faultNoUsage
	faultNoHeaders
	faultLyingHeaders
	faultGarbledHeaders
	faults
)

var faultNames = [faults]string{"ok", "429", "500", "502", "overloaded", "unpaid", "reset", "cut", "ended",
	"error-event",
	"no-usage", "no-headers", "lying-headers", "garbled-headers"}

// namesOfFaults are the names of the faults, separated by commas.
var namesOfFaults = strings.Join(faultNames[:], ", ")

func (f fault) String() string { return faultNames[f] }

// faultOf returns the fault of a name. No name is no fault.
func faultOf(name string) (fault, error) {
	if i := slices.Index(faultNames[:], cmp.Or(name, "ok")); i >= 0 {
		return fault(i), nil
	}
	return 0, fmt.Errorf("no fault is called %q: want one of %s", name, namesOfFaults)
}

// readFaults reads the probabilities and the script. A request has at most one fault.
func (c *Config) readFaults() error {
	sum := 0.0
	c.odds, c.script = [faults]float64{}, make([]fault, len(c.Script))
	for _, name := range slices.Sorted(maps.Keys(c.Faults)) { // so that the same configuration gives the same error
		f, err := faultOf(name)
		p := c.Faults[name]
		switch {
		case err != nil:
			return fmt.Errorf("ratetest: LLM: Faults: %w", err)
		case !(p >= 0 && p <= 1):
			return fmt.Errorf("ratetest: LLM: Faults: %v with probability %v, which is not from 0 to 1", f, p)
		case f == noFault:
			return fmt.Errorf("ratetest: LLM: Faults: %v is what happens otherwise", f)
		}
		c.odds[f] = p
		sum += p
	}
	if sum > 1+1e-9 {
		return fmt.Errorf("ratetest: LLM: Faults: probabilities are %v together", math.Round(sum*1000)/1000)
	}
	for i, name := range c.Script {
		f, err := faultOf(name)
		if err != nil {
			return fmt.Errorf("ratetest: LLM: Script[%d]: %w", i, err)
		}
		c.script[i] = f
	}
	return nil
}

// pick returns the fault of a request. drawn is a random number from [0, 1).
func pick(odds *[faults]float64, drawn float64) fault {
	for f, p := range odds {
		if drawn < p {
			return fault(f)
		}
		drawn -= p
	}
	return noFault
}
