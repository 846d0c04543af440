package tokens

import (
	"fmt"
	"slices"
)

// Counting says what of a request a server counts against its limits of tokens, and when. The zero Counting is what its provider
// documents, which package quota has in the row of each (quota.Provider.Tokens is the name of a Counting): see Of.
type Counting uint8

const (
	// Documented is what the provider documents, and Sum where nobody knows the provider.
	Documented Counting = iota
	// Reserved: when a request arrives, the larger of its input and of the output that it allows itself, whatever it uses in
	// the end. One that does not bound its output counts with its input alone.
	// https://platform.openai.com/docs/guides/rate-limits
	Reserved
	// Sum: when a request arrives, its input and the most that it may output, whatever it uses in the end: Azure, Groq, Cerebras.
	// No other Counting counts more.
	Sum
	// Used: as Sum when it arrives, and when it is answered what it used.
	Used
	// Produced: its input when it arrives, and its output as it is produced: what it may output counts for nothing.
	// https://platform.claude.com/docs/en/api/rate-limits
	Produced
	// Input: its input, and nothing that it outputs. https://ai.google.dev/gemini-api/docs/rate-limits
	Input
)

var countings = []string{"documented", "reserved", "sum", "used", "produced", "input"}

// String returns the name that ParseCounting reads.
func (c Counting) String() string {
	if int(c) < len(countings) {
		return countings[c]
	}
	return fmt.Sprintf("Counting(%d)", uint8(c))
}

// ParseCounting returns the Counting of a name: documented, reserved, sum, used, produced or input.
func ParseCounting(name string) (Counting, error) {
	if i := slices.Index(countings, name); i >= 0 {
		return Counting(i), nil
	}
	return 0, fmt.Errorf("tokens: no counting is called %q: want documented, reserved, sum, used, produced or input", name)
}

// Of returns what Documented stands for at a provider, by the name of the Counting that it documents, and any other Counting as it
// is. A name that is none, such as "", is that of a provider of which nobody knows it: Sum, the larger reading.
func (c Counting) Of(provider string) Counting {
	if c != Documented {
		return c
	}
	if c, err := ParseCounting(provider); err == nil && c != Documented {
		return c
	}
	return Sum
}

// Corrected says that what an answer used counts in the end, and not what the request might have.
func (c Counting) Corrected() bool { return c == Used || c == Produced || c == Input }

// Reserve returns what is to be reserved of a limit of input, of output and of both for a body that was estimated: the most that
// the server may count for it. Servers take a token for four characters, the estimate is of what the model reads: the larger of
// the two. Documented counts as Sum: see Of.
func (c Counting) Reserve(e Estimate, b Body) (input, output, total int64) {
	input, output = max(e.Input, (c.characters(b)+3)/4, 1), e.Output
	switch {
	case c == Input:
		return input, 0, input
	case c != Reserved:
		return input, output, input + output
	case e.Assumed:
		return input, output, input
	}
	return input, output, max(input, output)
}

// Least returns, of what Reserve does, what the server surely counts when the request arrives. Between the two is what depends on
// the answer, and on what is assumed of a body that does not bound its output: a limit that has not room for what Reserve says may
// let the request go with less, and no less than this.
func (c Counting) Least(e Estimate, b Body) (input, output, total int64) {
	input, output, total = c.Reserve(e, b)
	switch {
	case c == Produced:
		return input, 0, input
	case e.Assumed:
		return input, min(output, 1), input
	}
	return input, output, total
}

// characters is how many of a body a server may take for text. Which those are OpenAI alone publishes, and not of tools: of others it
// is the body as it stands.
func (c Counting) characters(b Body) int64 {
	switch {
	case c == Sum || c == Documented:
		return int64(len(b.raw)) - b.spare
	case b.schemas && b.Attachments == 0:
		return int64(len(b.raw)) // at most as they stand
	}
	return b.TextBytes
}

// Settle returns what is to be counted for an answer that used u, and false if what was reserved stands.
func (c Counting) Settle(e Estimate, u Usage) (input, output, total int64, ok bool) {
	switch {
	case !c.Corrected():
		return 0, 0, 0, false
	case c == Input:
		return u.Input, 0, u.Input, true
	case e.API == Messages: // what is read from its cache does not count
		return u.Uncached(), u.Output, u.Uncached() + u.Output, true
	}
	return u.Input, u.Output, u.Total, true
}
