package tokens

import (
	"fmt"
	"slices"
)

// Counting says what of a request a server counts against its limits of tokens. The zero Counting is what the API's provider
// documents.
type Counting uint8

const (
	// Documented is Reserved for OpenAI's APIs, Used for Anthropic's.
	Documented Counting = iota
	// Reserved: when a request arrives, the larger of its input and of the output that it allows itself, whatever it uses in
	// the end. One that does not bound its output counts with its input alone.
	// https://platform.openai.com/docs/guides/rate-limits
	Reserved
	// Sum: when a request arrives, its input and the most that it may output, whatever it uses in the end.
	Sum
	// Used: as Sum when it arrives, and when it is answered what it used. https://docs.anthropic.com/en/api/rate-limits
	Used
)

var countings = []string{"documented", "reserved", "sum", "used"}

// String returns the name that ParseCounting reads.
func (c Counting) String() string {
	if int(c) < len(countings) {
		return countings[c]
	}
	return fmt.Sprintf("Counting(%d)", uint8(c))
}

// ParseCounting returns the Counting of a name: documented, reserved, sum or used.
func ParseCounting(name string) (Counting, error) {
	if i := slices.Index(countings, name); i >= 0 {
		return Counting(i), nil
	}
	return 0, fmt.Errorf("tokens: no counting is called %q: want documented, reserved, sum or used", name)
}

// Of returns what Documented stands for with an API, and any other Counting as it is.
func (c Counting) Of(api API) Counting {
	switch {
	case c != Documented:
		return c
	case api == Messages:
		return Used
	}
	return Reserved
}

// Reserve returns what is to be reserved of a limit of input, of output and of both for a body that was estimated: what the
// server may count when it arrives. Servers take a token for four characters, the estimate is of what the model reads: the
// larger of the two.
func (c Counting) Reserve(e Estimate, b Body) (input, output, total int64) {
	characters := b.TextBytes
	if b.schemas && b.Attachments == 0 {
		characters = int64(len(b.raw)) // how a server reads them is not published; at most as they stand
	}
	input, output = max(e.Input, (characters+3)/4, 1), e.Output
	switch {
	case c.Of(e.API) != Reserved:
		return input, output, input + output
	case e.Assumed:
		return input, output, input
	}
	return input, output, max(input, output)
}

// Settle returns what is to be counted for an answer that used u, and false if what was reserved stands.
func (c Counting) Settle(e Estimate, u Usage) (input, output, total int64, ok bool) {
	switch {
	case c.Of(e.API) != Used:
		return 0, 0, 0, false
	case e.API == Messages: // what is read from its cache does not count
		return u.Uncached(), u.Output, u.Uncached() + u.Output, true
	}
	return u.Input, u.Output, u.Total, true
}
