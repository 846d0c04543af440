package tokens

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// ErrNoUsage reports a whole answer without usage: an error, a job that is still queued, or a chat
// stream without a request for its usage. The request is settled at its estimate.
var ErrNoUsage = errors.New("no usage in the answer")

// Usage is the tokens that an answer states. Providers count totals differently; the fields here
// have the same meaning for all.
type Usage struct {
	// Input is the whole prompt, cached or not. Anthropic's input_tokens has neither of the two
	// parts below; they are added here.
	Input int64
	// CachedInput is the part of Input that was read from a cache. CacheWrite is the part that was
	// written to a cache.
	CachedInput, CacheWrite int64
	// CacheWriteHour is the part of CacheWrite that is kept for an hour, at a higher price
	// (Anthropic).
	CacheWriteHour int64
	// Output is all generated tokens, over all choices, with the reasoning.
	Output int64
	// Reasoning is the part of Output for thinking. The answer may not show it.
	Reasoning int64
	// AudioInput and AudioOutput are the audio parts of Input and Output.
	AudioInput, AudioOutput int64
	// Total is Input + Output, or the answer's own total if that is more. Some servers do not count
	// reasoning as Output.
	Total int64
}

// Uncached is the input that was not read from a cache. Input that was written to a cache counts.
// For most models, Anthropic counts Uncached against its limit of input tokens.
func (u Usage) Uncached() int64 { return max(u.Input-u.CachedInput, 0) }

// ParseUsage reads the usage from a whole JSON answer. The error wraps ErrMalformed if the answer
// is not JSON, or if a count is negative, not a whole number or above 2^44. It wraps ErrNoUsage if
// there is no usage. A member named usage counts only at the places where this API has one.
func ParseUsage(api API, answer []byte) (Usage, error) {
	if !json.Valid(answer) {
		return Usage{}, fmt.Errorf("tokens: %v answer: %w: not JSON", api, ErrMalformed)
	}
	var s scanner
	s.feed(answer)
	return s.used(api).of(api)
}

// used returns the usage that a whole answer states.
func (s *scanner) used(api API) *counted {
	if s.list && api != Gemini {
		return &counted{}
	}
	if top := &s.usage[atTop]; top.has&(1<<countInput) != 0 || !s.usage[billed].present {
		return top
	}
	return &s.usage[billed]
}

// HeaderUsage reads the usage from the header of an answer. Bedrock states it there for the models
// of every vendor. ok is false if the header states no usage.
func HeaderUsage(h http.Header) (u Usage, ok bool) {
	if len(h["X-Amzn-Bedrock-Input-Token-Count"]) == 0 {
		return u, false
	}
	var c counted
	for k, name := range map[count]string{countInput: "Input", countOutput: "Output", countRead: "Cache-Read-Input",
		countWrite: "Cache-Write-Input"} {
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
	countRead  // Anthropic: read from the cache, and not part of input
	countWrite // written to a cache
	countHour  // Anthropic: the part of countWrite that is kept for an hour
	countReasoning
	countAudioInput
	countAudioOutput
	countTool // Gemini: results of tools that the server ran, not part of input
	counts
	noCount = counts
)

// counted is a usage object as read.
type counted struct {
	n       [counts]int64
	has     uint16
	present bool // there was a usage object
	bad     count
	wrong   bool // a count is not a whole number from 0 to maxTokens
}

func (c *counted) set(k count, n int64) { c.n[k], c.has = n, c.has|1<<k }

// merge overwrites counts with those of a later report. Counts are running sums.
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

var countNames = [counts]string{"input", "output", "total", "cached input", "cache reads", "cache writes",
	"cache writes for an hour", "reasoning", "audio input", "audio output", "results of tools"}

// of returns the Usage, in the meaning of an API.
func (c *counted) of(api API) (Usage, error) {
	if c.wrong {
		return Usage{}, fmt.Errorf("tokens: %v answer: %w: the usage's %s is no whole number from 0 to %d", api, ErrMalformed,
			countNames[c.bad], int64(maxTokens))
	}
	if !c.present || c.has&(1<<countInput) == 0 || c.has&(1<<countOutput) == 0 && !api.inputOnly() && api != Gemini &&
		api != OllamaGenerate && api != OllamaChat {
		return Usage{}, fmt.Errorf("tokens: %v: %w", api, ErrNoUsage)
	}
	u := Usage{
		Input: c.n[countInput], CachedInput: c.n[countCached], CacheWrite: c.n[countWrite], CacheWriteHour: c.n[countHour],
		Output: c.n[countOutput], Reasoning: c.n[countReasoning],
		AudioInput: c.n[countAudioInput], AudioOutput: c.n[countAudioOutput],
	}
	switch api {
	case Messages, Converse, Invoke:
		u.CachedInput = c.n[countRead]
		u.Input += u.CachedInput + u.CacheWrite
	case Gemini: // models differ in whether output includes reasoning; the total is always right
		u.Input += c.n[countTool]
		if u.Output += u.Reasoning; c.has&(1<<countTotal) != 0 {
			u.Output = max(c.n[countTotal]-u.Input, 0)
		}
	}
	u.Total = max(u.Input+u.Output, c.n[countTotal])
	return u, nil
}
