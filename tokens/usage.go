package tokens

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// ErrNoUsage says that an answer is whole and does not say what it used: an error body, a job still queued, a chat
// stream that was not asked for its usage. The request is settled at its estimate.
var ErrNoUsage = errors.New("no usage in the answer")

// Usage is what an answer says it used, in tokens. The providers' own totals are made to mean the same here.
type Usage struct {
	// Input is all of the prompt, cached or not. (Anthropic's input_tokens has neither of the two parts below; they are
	// added here.)
	Input int64
	// CachedInput, a part of Input, was read from a cache, and CacheWrite, another part, written to one.
	CachedInput, CacheWrite int64
	// Output is all that was generated, over all choices, with what was only thought.
	Output int64
	// Reasoning, a part of Output, was thought and perhaps not shown.
	Reasoning int64
	// AudioInput and AudioOutput are the parts of Input and Output that are sound.
	AudioInput, AudioOutput int64
	// Total is Input + Output, or what the answer says if that is more: some servers leave reasoning out of Output.
	Total int64
}

// Uncached is the input that was not read from a cache: what Anthropic counts against its limit of input tokens, for
// most models. What was written to a cache counts.
func (u Usage) Uncached() int64 { return max(u.Input-u.CachedInput, 0) }

// ParseUsage reads the usage from a whole JSON answer. The error wraps ErrMalformed if the answer is no JSON or a count is
// negative, no whole number or above 2^44, and ErrNoUsage if there is none. Only members named usage at the place
// where this API has them count.
func ParseUsage(api API, answer []byte) (Usage, error) {
	if !json.Valid(answer) {
		return Usage{}, fmt.Errorf("tokens: %v answer: %w: not JSON", api, ErrMalformed)
	}
	var s scanner
	s.feed(answer)
	return s.used(api).of(api)
}

// used is what a whole answer says.
func (s *scanner) used(api API) *counted {
	if s.list && api != Gemini {
		return &counted{}
	}
	if top := &s.usage[atTop]; top.has&(1<<countInput) != 0 || !s.usage[billed].present {
		return top
	}
	return &s.usage[billed]
}

// HeaderUsage reads the usage from the header of an answer, where Bedrock has it whatever a model's vendor has in the body. ok is false
// where it has none.
func HeaderUsage(h http.Header) (u Usage, ok bool) {
	if len(h["X-Amzn-Bedrock-Input-Token-Count"]) == 0 {
		return u, false
	}
	var c counted
	for k, name := range map[count]string{countInput: "Input", countOutput: "Output", countRead: "Cache-Read-Input", countWrite: "Cache-Write-Input"} {
		if n, valid, err := whole([]byte(h.Get("X-Amzn-Bedrock-" + name + "-Token-Count"))); err == nil && valid {
			c.set(k, n)
			c.present = true
		}
	}
	u, err := c.of(Invoke)
	return u, err == nil
}

// count names a number in a usage object.
type count uint8

const (
	countInput count = iota
	countOutput
	countTotal
	countCached
	countRead  // Anthropic: from the cache, beside input
	countWrite // to the cache
	countReasoning
	countAudioInput
	countAudioOutput
	countTool // Gemini: results of tools that the server ran, beside input
	counts
	noCount = counts
)

// counted is a usage object as read.
type counted struct {
	n       [counts]int64
	has     uint16
	present bool // there was a usage object
	bad     count
	wrong   bool // bad is no whole number from 0 to maxTokens
}

func (c *counted) set(k count, n int64) { c.n[k], c.has = n, c.has|1<<k }

// merge overwrites with what a later, cumulative report has.
func (c *counted) merge(later *counted) {
	for k := range counts {
		if later.has&(1<<k) != 0 {
			c.set(k, later.n[k])
		}
	}
	c.present = c.present || later.present
	if later.wrong {
		c.wrong, c.bad = true, later.bad
	}
}

var countNames = [counts]string{"input", "output", "total", "cached input", "cache reads", "cache writes", "reasoning", "audio input", "audio output", "results of tools"}

// of turns what was read into a Usage.
func (c *counted) of(api API) (Usage, error) {
	if c.wrong {
		return Usage{}, fmt.Errorf("tokens: %v answer: %w: the usage's %s is no whole number from 0 to %d", api, ErrMalformed,
			countNames[c.bad], int64(maxTokens))
	}
	if !c.present || c.has&(1<<countInput) == 0 || c.has&(1<<countOutput) == 0 && !api.inputOnly() && api != Gemini && api != OllamaGenerate && api != OllamaChat {
		return Usage{}, fmt.Errorf("tokens: %v: %w", api, ErrNoUsage)
	}
	u := Usage{
		Input: c.n[countInput], CachedInput: c.n[countCached], CacheWrite: c.n[countWrite],
		Output: c.n[countOutput], Reasoning: c.n[countReasoning],
		AudioInput: c.n[countAudioInput], AudioOutput: c.n[countAudioOutput],
	}
	switch api {
	case Messages, Converse, Invoke:
		u.CachedInput = c.n[countRead]
		u.Input += u.CachedInput + u.CacheWrite
	case Gemini: // whether what is thought is in its output differs, and the sum is right in any case
		u.Input += c.n[countTool]
		if u.Output += u.Reasoning; c.has&(1<<countTotal) != 0 {
			u.Output = max(c.n[countTotal]-u.Input, 0)
		}
	}
	u.Total = max(u.Input+u.Output, c.n[countTotal])
	return u, nil
}
