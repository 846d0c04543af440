package meter

import (
	"bytes"
	"encoding/json"
)

// Length is the reason why an answer ended, if it was cut at the bound of its output.
const Length = "length"

// lengths are the words of providers for that reason, as JSON.
var lengths = [][]byte{[]byte(`"length"`), []byte(`"max_tokens"`), []byte(`"MAX_TOKENS"`), []byte(`"max_output_tokens"`)}

// IsCut reports whether an answer, a document of JSON or a stream of events, says that it was cut at the bound
// of its output. For several choices, one that was cut is enough.
func IsCut(answer []byte) bool {
	if !mayBeCut(answer) {
		return false
	}
	if documentCut(answer) {
		return true
	}
	if trimmed := bytes.TrimSpace(answer); len(trimmed) > 0 && trimmed[0] == '{' && json.Valid(trimmed) {
		return false
	}
	for line := range bytes.Lines(answer) {
		line, _ = bytes.CutPrefix(bytes.TrimSpace(line), []byte("data:"))
		if mayBeCut(line) && documentCut(line) {
			return true
		}
	}
	return false
}

func mayBeCut(text []byte) bool {
	for _, word := range lengths {
		if bytes.Contains(text, word) {
			return true
		}
	}
	return false
}

// ending has the members of answers that say why they ended.
type ending struct {
	Finish     string `json:"finish_reason"` // Cohere
	Stop       string `json:"stop_reason"`   // Anthropic
	Done       string `json:"done_reason"`   // Ollama
	StopReason string `json:"stopReason"`    // Bedrock
	Delta      struct {
		Stop   string `json:"stop_reason"`
		Finish string `json:"finish_reason"`
	} `json:"delta"`
	Choices []struct {
		Finish string `json:"finish_reason"`
	} `json:"choices"`
	Candidates []struct {
		Finish string `json:"finishReason"`
	} `json:"candidates"`
	incomplete
	Response *incomplete `json:"response"` // the event at the end of a stream
}

// incomplete is the part of OpenAI's responses that says why one is not complete.
type incomplete struct {
	Details *struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
}

func documentCut(text []byte) bool {
	var e ending
	if json.Unmarshal(text, &e) != nil {
		return false
	}
	reasons := []string{e.Finish, e.Stop, e.Done, e.StopReason, e.Delta.Stop, e.Delta.Finish}
	for _, c := range e.Choices {
		reasons = append(reasons, c.Finish)
	}
	for _, c := range e.Candidates {
		reasons = append(reasons, c.Finish)
	}
	for _, i := range []*incomplete{&e.incomplete, e.Response} {
		if i != nil && i.Details != nil {
			reasons = append(reasons, i.Details.Reason)
		}
	}
	for _, reason := range reasons {
		for _, word := range lengths {
			if reason != "" && reason == string(word[1:len(word)-1]) {
				return true
			}
		}
	}
	return false
}
