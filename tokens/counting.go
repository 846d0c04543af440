package tokens

import (
	"fmt"
	"slices"
	"strings"
)

// Counting says what part of a request a server counts against its limits of tokens, and when. The zero Counting means what the provider
// documents, which is in its row of package provider (quota.Provider.Tokens is the name of a Counting): see Of.
type Counting uint8

const (
	// Documented is what the provider documents; for an unknown provider it is Sum.
	Documented Counting = iota
	// Reserved: when a request arrives, the larger of its input and of its maximum output counts, whatever it uses in the end. A request
	// that does not bound its output counts with its input alone.
	// https://platform.openai.com/docs/guides/rate-limits
	Reserved
	// Sum: when a request arrives, its input and its maximum output count, whatever it uses in the end: Azure, Groq, Cerebras. No other
	// Counting counts more.
	Sum
	// Used: when a request arrives it counts as with Sum, and once it is answered with what it used.
	Used
	// Produced: the input counts when a request arrives, and the output as it is produced; its maximum output does not matter.
	// https://platform.claude.com/docs/en/api/rate-limits
	Produced
	// Input: the input counts, and no output. https://ai.google.dev/gemini-api/docs/rate-limits
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

// Of returns what Documented stands for at a provider, given the name of the Counting that the provider documents; any other Counting
// stays as it is. A name that is not one, such as "", means that nobody knows how the provider counts: then it is Sum, the one that
// counts most.
func (c Counting) Of(provider string) Counting {
	if c != Documented {
		return c
	}
	if c, err := ParseCounting(provider); err == nil && c != Documented {
		return c
	}
	return Sum
}

// Corrected reports whether what counts in the end is the tokens that an answer used, and not those that its request might have used.
func (c Counting) Corrected() bool { return c == Used || c == Produced || c == Input }

// Reserve returns how much to reserve of limits of input, of output and of both together, for a body that was estimated: the most that
// the server may count for it. Servers take four characters for a token; the estimate is of what the model reads; the larger of the two
// is reserved. Documented counts as Sum: see Of.
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

// Least returns the part of what Reserve returns that the server surely counts when the request arrives. The rest depends on the answer,
// and on what is assumed of a body that does not bound its output. A limit that lacks the room for Reserve may let the request go with
// less, but with no less than this.
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

// burndown returns how many tokens of a Bedrock quota a token of output takes: five for Anthropic's models since Claude 3.7, and one for
// others. For an inference profile, whose name does not tell the model, it is five.
// https://docs.aws.amazon.com/bedrock/latest/userguide/quotas-token-burndown.html
func (c Counting) burndown(e Estimate) int64 {
	if e.API != Converse && e.API != Invoke || c != Used && c != Sum {
		return 1
	}
	_, claude, ok := strings.Cut(e.Model, "claude-")
	switch {
	case !ok && strings.Contains(e.Model, "inference-profile/"):
		return 5
	case !ok || strings.HasPrefix(claude, "v") || strings.HasPrefix(claude, "instant") || strings.HasPrefix(claude, "3-") && !strings.HasPrefix(claude, "3-7"):
		return 1
	}
	return 5
}

// characters returns how many bytes of a body a server may take for text. Only OpenAI publishes which those are, and not for tools:
// otherwise it is the whole body.
func (c Counting) characters(b Body) int64 {
	switch {
	case c == Sum || c == Documented:
		return int64(len(b.raw)) - b.spare
	case b.schemas && b.Attachments == 0:
		return int64(len(b.raw)) // at most the whole body
	}
	return b.TextBytes
}

// Settle returns what to count for an answer that used u, and false if what was reserved stands.
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
