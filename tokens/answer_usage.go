package tokens

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// ErrNoUsage says that an answer is whole and does not say what it used: it is an error, a job that is still queued, or a chat stream
// that was not asked for its usage. The request is settled at its estimate.
var ErrNoUsage = errors.New("no usage in the answer")

// Usage is what an answer says it used, in tokens. Providers count totals differently; here they mean the same for all.
type Usage struct {
	// Input is the whole prompt, cached or not. (Anthropic's input_tokens contains neither of the two parts below; they are added here.)
	Input int64
	// CachedInput is the part of Input that was read from a cache, and CacheWrite the part that was written to one.
	CachedInput, CacheWrite int64
	// CacheWriteHour is the part of CacheWrite that is kept for an hour, which costs more (Anthropic).
	CacheWriteHour int64
	// Output is all that was generated, over all choices, including the reasoning.
	Output int64
	// Reasoning is the part of Output that was thought and perhaps not shown.
	Reasoning int64
	// AudioInput and AudioOutput are the parts of Input and Output that are sound.
	AudioInput, AudioOutput int64
	// Total is Input + Output, or what the answer says if that is more: some servers do not count reasoning as Output.
	Total int64
}

// Uncached is the input that was not read from a cache: for most models this is what Anthropic counts against its limit of input tokens.
// What was written to a cache counts.
func (u Usage) Uncached() int64 { return max(u.Input-u.CachedInput, 0) }

// ParseUsage reads the usage from a whole JSON answer. The error wraps ErrMalformed if the answer is not JSON, or if a count is negative,
// not a whole number or above 2^44; and ErrNoUsage if there is no usage. Members named usage count only in the places where this API has
// them.
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

// HeaderUsage reads the usage from the header of an answer, where Bedrock states it whichever vendor's model answers. ok is false if the
// header does not state it.
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
	countRead  // Anthropic: read from the cache, and not part of input
	countWrite // written to the cache
	countHour  // Anthropic: of that, for an hour
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

// merge overwrites counts with those of a later report, which are running sums.
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

var countNames = [counts]string{"input", "output", "total", "cached input", "cache reads", "cache writes", "cache writes for an hour", "reasoning", "audio input", "audio output", "results of tools"}

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
		Input: c.n[countInput], CachedInput: c.n[countCached], CacheWrite: c.n[countWrite], CacheWriteHour: c.n[countHour],
		Output: c.n[countOutput], Reasoning: c.n[countReasoning],
		AudioInput: c.n[countAudioInput], AudioOutput: c.n[countAudioOutput],
	}
	switch api {
	case Messages, Converse, Invoke:
		u.CachedInput = c.n[countRead]
		u.Input += u.CachedInput + u.CacheWrite
	case Gemini: // whether reasoning is part of its output differs; the total is right in any case
		u.Input += c.n[countTool]
		if u.Output += u.Reasoning; c.has&(1<<countTotal) != 0 {
			u.Output = max(c.n[countTotal]-u.Input, 0)
		}
	}
	u.Total = max(u.Input+u.Output, c.n[countTotal])
	return u, nil
}
