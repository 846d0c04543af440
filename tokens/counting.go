package tokens

import (
	"fmt"
	"slices"
	"strings"
)

// Counting is the part of a request that a server counts against its token limits, and the time of
// counting. The zero Counting is the provider's documented one. Package provider names it in
// provider.Provider.Tokens: see Of.
type Counting uint8

const (
	// Documented is the Counting in the provider's documentation. For an unknown provider it is
	// Sum.
	Documented Counting = iota
	// Reserved counts at the arrival of a request, whatever the request uses in the end. It counts
	// the larger of the input and the maximum output. A request without a bound on its output
	// counts with its input alone. https://platform.openai.com/docs/guides/rate-limits
	Reserved
	// Sum counts the input and the maximum output at the arrival of a request, whatever the request
	// uses in the end: Azure, Groq, Cerebras. No other Counting counts more.
	Sum
	// Used counts as Sum at the arrival of a request, and the true usage once the request is
	// answered.
	Used
	// Produced counts the input at the arrival of a request, and the output as it is produced. The
	// maximum output does not matter. https://platform.claude.com/docs/en/api/rate-limits
	Produced
	// Input counts the input, and no output. https://ai.google.dev/gemini-api/docs/rate-limits
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

// Of replaces Documented by the Counting that the provider documents; any other Counting stays. If
// that is not known, so Documented, too, the result is Sum, which counts most. ParseCounting reads
// provider.Provider.Tokens.
func (c Counting) Of(documented Counting) Counting {
	switch {
	case c != Documented:
		return c
	case documented != Documented:
		return documented
	}
	return Sum
}

// Corrected reports whether the tokens that an answer used count in the end, and not the possible
// ones.
func (c Counting) Corrected() bool { return c == Used || c == Produced || c == Input }

// Reserve returns the amounts to reserve of limits on input, on output and on both together. They
// are the most that the server may count for the body. Servers take four characters for a token;
// the estimate is of the tokens for the model. The larger of the two is reserved. Documented counts
// as Sum: see Of.
func (c Counting) Reserve(e Estimate, b Body) (input, output, total int64) {
	input, output = max(e.Input, (c.characters(b)+3)/4, 1), e.Output*c.burndown(e)
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

// Least returns the part of Reserve that the server surely counts when the request arrives: the
// output that the body allows, where that counts, and a token of input. The size of the input is an
// estimate. It may be in a cache, and a file is guessed by its bytes. So a limit without room for
// Reserve may let the request go with less, but never with less than Least.
func (c Counting) Least(e Estimate, b Body) (input, output, total int64) {
	_, output, _ = c.Reserve(e, b)
	switch {
	case c == Produced || c == Input:
		return 1, 0, 1
	case e.Assumed:
		return 1, min(output, 1), 1
	case c == Reserved:
		return 1, output, max(output, 1)
	}
	return 1, output, output + 1
}

// burndown returns the tokens of a Bedrock quota that one token of output takes. It is five for
// Anthropic's models since Claude 3.7, and one for others. The name of an inference profile does
// not show the model: it is five.
// https://docs.aws.amazon.com/bedrock/latest/userguide/quotas-token-burndown.html
func (c Counting) burndown(e Estimate) int64 {
	if e.API != Converse && e.API != Invoke || c != Used && c != Sum {
		return 1
	}
	_, claude, ok := strings.Cut(e.Model, "claude-")
	switch {
	case !ok && strings.Contains(e.Model, "inference-profile/"):
		return 5
	case !ok || strings.HasPrefix(claude, "v") || strings.HasPrefix(claude, "instant") ||
		strings.HasPrefix(claude, "3-") && !strings.HasPrefix(claude, "3-7"):
		return 1
	}
	return 5
}

// characters returns the number of bytes of a body that a server may take for text. Only OpenAI
// publishes which bytes those are, and not for tools. Otherwise it is the whole body.
func (c Counting) characters(b Body) int64 {
	switch {
	case c == Sum || c == Documented:
		return int64(len(b.raw)) - b.spare
	case b.schemas && b.Attachments == 0:
		return int64(len(b.raw)) // at most the whole body
	}
	return b.TextBytes
}

// Settle returns the amounts to count for an answer with usage u. ok is false if the reserved
// amounts stand.
func (c Counting) Settle(e Estimate, u Usage) (input, output, total int64, ok bool) {
	switch {
	case !c.Corrected():
		return 0, 0, 0, false
	case c == Input:
		return u.Input, 0, u.Input, true
	case e.API == Messages, e.API == Converse, e.API == Invoke: // input that is read from the cache does not count
		output = u.Output * c.burndown(e)
		return u.Uncached(), output, u.Uncached() + output, true
	}
	return u.Input, u.Output, u.Total, true
}
