package format

import (
	"encoding/hex"
	"encoding/json"
	"net/http"
)

// skippedCode is the error code of a line that is no request. OpenAI has no such code: it refuses
// the whole file.
const skippedCode = "skipped"

func BatchID(sum []byte) string { return "batch_req_" + hex.EncodeToString(sum[:12]) }

// SkippedLine returns the reason why a line of the input is no request, in the format. It has the
// line's custom_id if that can be read.
func (l *LLM) SkippedLine(id string, raw []byte, message string) []byte {
	var line struct {
		CustomID string `json:"custom_id"`
	}
	if json.Unmarshal(raw, &line) != nil || len(line.CustomID) > maxIDLen {
		line.CustomID = ""
	}
	if l.c.Provider == OpenAI {
		return LineOf(openAIResult{ID: id, CustomID: line.CustomID, Error: &openAIProblem{skippedCode, message}})
	}
	o := anthropicResult{CustomID: line.CustomID, Result: anthropicOutcome{Type: "errored"}, Skipped: id}
	o.Result.Error, _ = json.Marshal(map[string]any{"type": "error",
		"error": map[string]string{"type": "invalid_request_error", "message": message}})
	return LineOf(o)
}

// skippedEntry is the entry of such a line for a rerun: it was written already. No request has
// ended with it.
func skippedEntry(id string) Entry {
	return Entry{ID: id, State: "dead", Status: http.StatusBadRequest, Skipped: true}
}
