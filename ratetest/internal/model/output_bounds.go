package model

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// published is the most output tokens of one answer, by model, from the providers' pages of models
// in 2026-11. It is 0 if the model does not answer in tokens.
var published = [...]map[string]int64{
	FamilyOpenAI: {
		"gpt-6-astra": 128_000, "gpt-6-sol": 128_000, "gpt-6-luna": 128_000, "gpt-6.1-sol": 128_000, "gpt-6.1-terra": 128_000,
		"gpt-5.6": 128_000, "gpt-5.6-sol": 128_000, "gpt-5.6-terra": 128_000, "gpt-5.6-luna": 128_000, "gpt-5.5": 128_000,
		"gpt-5.4":      128_000,
		"gpt-5.4-mini": 128_000, "gpt-5.4-nano": 128_000, "gpt-5.4-pro": 128_000, "gpt-5.3-codex": 128_000,
		"gpt-5.2":       128_000,
		"gpt-5.2-codex": 128_000, "gpt-5.1-codex": 128_000, "gpt-5-codex": 128_000, "gpt-5.2-pro": 128_000,
		"gpt-5.1": 128_000, "gpt-5": 128_000, "gpt-5-mini": 128_000, "gpt-5-nano": 128_000,
		"gpt-5-pro": 272_000, "gpt-5-chat": 16_384, "gpt-5.1-chat": 16_384, "gpt-5.2-chat": 16_384, "gpt-5.3-chat": 16_384,
		"gpt-4.1": 32_768, "gpt-4.1-mini": 32_768, "gpt-4.1-nano": 32_768, "gpt-4o": 16_384, "gpt-4o-mini": 16_384,
		"chatgpt-4o":   16_384,
		"gpt-4o-audio": 16_384, "gpt-4o-mini-audio": 16_384, "gpt-4o-search": 16_384, "gpt-4o-mini-search": 16_384,
		"gpt-4o-2024-05-13": 4_096, "gpt-4-turbo": 4_096, "gpt-4": 8_192, "gpt-3.5-turbo": 4_096, "gpt-3.5-turbo-16k": 4_096,
		"o1": 100_000, "o1-pro": 100_000, "o3": 100_000, "o3-mini": 100_000, "o3-pro": 100_000, "o4-mini": 100_000,
		"text-embedding-3-small": 0, "text-embedding-3-large": 0, "text-embedding-ada-002": 0, "omni-moderation": 0,
	},
	FamilyAnthropic: {
		"claude-fable-5-1": 128_000, "claude-fable-5": 128_000, "claude-opus-5-5": 128_000, "claude-opus-5": 128_000,
		"claude-sonnet-5-5": 128_000, "claude-sonnet-5": 128_000, "claude-haiku-5-5": 128_000,
		"claude-opus-4-8": 128_000, "claude-opus-4-7": 128_000, "claude-opus-4-6": 128_000, "claude-opus-4-5": 64_000,
		"claude-opus-4-1": 32_000, "claude-opus-4": 32_000, "claude-sonnet-4-6": 64_000, "claude-sonnet-4-5": 64_000,
		"claude-sonnet-4": 64_000, "claude-haiku-4-5": 64_000, "claude-3-7-sonnet": 64_000, "claude-3-5-sonnet": 8_192,
		"claude-3-5-haiku": 8_192, "claude-3-opus": 4_096, "claude-3-haiku": 4_096,
	},
}

// snapshot matches the part of a name after the model: its stage and its date, or a mark of the
// newest version. Old dates of OpenAI have no year. The first model of an Anthropic generation is
// -0.
var snapshot = regexp.MustCompile(`(-preview)?(-20\d\d-?[01]\d-?[0-3]\d|-[01]\d[0-3]\d|-latest|-0)?$`)

// MostOutputOf returns the most tokens of an answer of a published model. It is 0 if the model does
// not answer in tokens.
func MostOutputOf(p Family, model string) (tokens int64, known bool) {
	if tuned, ok := strings.CutPrefix(model, "ft:"); ok && p == FamilyOpenAI {
		model, _, _ = strings.Cut(tuned, ":")
	}
	if tokens, known = published[p][model]; !known {
		tokens, known = published[p][snapshot.ReplaceAllString(model, "")]
	}
	return tokens, known
}

// Published returns the names of the published models, without dates.
func Published(f Family) []string { return slices.Collect(maps.Keys(published[f])) }

// bounding has the fields that bound the output, by API.
var bounding = map[string][]string{"chat": {"max_tokens", "max_completion_tokens"},
	"responses": {"max_output_tokens"}, "messages": {"max_tokens"}}

// bounds checks the numbers that have a maximum. A larger number gets 400, whatever the limits are.
func (a *Ask) bounds(f *form, family Family) *Problem {
	if most, _ := MostOutputOf(family, a.Model); most > 0 {
		for _, name := range bounding[a.API] {
			var n int64
			if f.read(name, &n) && n > most {
				return tooMuchOutput(a, name, n, most)
			}
		}
	}
	warmest := 2.0
	if family == FamilyAnthropic {
		warmest = 1
	}
	if p := outside(f, family, "temperature", warmest); p != nil {
		return p
	}
	return outside(f, family, "top_p", 1)
}

// outside returns the problem if a number is not from 0 to most.
func outside(f *form, family Family, name string, most float64) (p *Problem) {
	var x float64
	switch {
	case !f.read(name, &x) || x >= 0 && x <= most:
		return nil
	case family == FamilyAnthropic:
		return badField(name, "%s: range: 0..%v", name, most)
	case x < 0:
		p = badField(name, "Invalid '%s': decimal below minimum value. Expected a value >= 0, but got %v instead.", name, x)
		p.Code = "decimal_below_min_value"
		return p
	}
	p = badField(name, "Invalid '%s': decimal above maximum value. Expected a value <= %v, but got %v instead.", name,
		most, x)
	p.Code = "decimal_above_max_value"
	return p
}

// moderated returns the number of inputs, 0 if v is no input. A string is one input; texts and
// pictures together are one input.
func moderated(v any) int {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	strings, parts := 0, 0
	for _, v := range list {
		switch v.(type) {
		case string:
			strings++
		case map[string]any:
			parts = 1
		}
	}
	if parts > 0 && ok && strings == 0 {
		return 1
	}
	if strings != len(list) {
		return 0
	}
	return strings
}

func tooMuchOutput(a *Ask, name string, n, most int64) *Problem {
	switch a.API {
	case "messages":
		return badField(name, "max_tokens: %d > %d, which is the maximum allowed number of output tokens for %s", n, most,
			a.Model)
	case "responses":
		p := badField(name, "Invalid '%s': integer above maximum value. Expected a value <= %d, but got %d instead.", name,
			most, n)
		p.Code = "integer_above_max_value"
		return p
	}
	return badField(name,
		"%s is too large: %d. This model supports at most %d completion tokens, whereas you provided %d.", name, n, most, n)
}

// roles are the allowed roles of a message, by API.
var roles = map[string][]string{
	"chat":      {"system", "assistant", "user", "function", "tool", "developer"},
	"responses": {"assistant", "system", "developer", "user"},
	"messages":  {"user", "assistant"},
}

// badRole returns the problem with the role of the message at i of a field, or nil.
func badRole(api, field string, i int, role any) *Problem {
	known := roles[api]
	name, text := role.(string)
	if text && slices.Contains(known, name) {
		return nil
	}
	if api == "messages" {
		if name == "system" && i > 0 { // newer models accept this in the middle of a conversation
			return nil
		}
		if name == "system" {
			return badField("", "messages: Unexpected role \"system\". The Messages API accepts a top-level `system` "+
				"parameter, not \"system\" as an input message role.")
		}
		return badField("", "messages.%d.role: Input should be 'user' or 'assistant'", i)
	}
	if !text {
		raw, _ := json.Marshal(role) // it was read from JSON
		name = string(raw)
	}
	p := badField(field+"["+strconv.Itoa(i)+"].role", "Invalid value: '%.100s'. Supported values are: '%s', and '%s'.",
		name, strings.Join(known[:len(known)-1], "', '"), known[len(known)-1])
	p.Code = "invalid_value"
	return p
}
