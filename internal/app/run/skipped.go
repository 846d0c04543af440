package run

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
)

// skippedCode is the error code of a line that is no request. OpenAI has no such code: it refuses
// the whole file.
const skippedCode = "skipped"

// skipped writes a line that is no request to the errors, if the format has a place for it. That is
// done once for all runs.
func (r *Run) skipped(from *Reader, why error) {
	l, ok := r.c.Format.(*LLM)
	if !ok {
		return
	}
	sum := sha256.Sum256(from.raw)
	id := batchID(sum[:])
	r.tally.mu.Lock()
	d := digestOf(id)
	known := r.tally.ledger.has(d, inDead)
	r.tally.ledger.mark(d, inDead)
	r.tally.mu.Unlock()
	if known {
		return
	}
	message, _ := r.sender.secrets.HideIn(why.Error())
	if err := r.store.dead.Append(l.skippedLine(id, from.raw, message)); err != nil {
		r.fail(err)
	}
}

func batchID(sum []byte) string { return "batch_req_" + hex.EncodeToString(sum[:12]) }

// skippedLine returns the reason why a line of the input is no request, in the format. It has the
// line's custom_id if that can be read.
func (l *LLM) skippedLine(id string, raw []byte, message string) []byte {
	var line struct {
		CustomID string `json:"custom_id"`
	}
	if json.Unmarshal(raw, &line) != nil || len(line.CustomID) > maxIDLen {
		line.CustomID = ""
	}
	if l.c.Provider == OpenAI {
		return lineOf(openAIResult{ID: id, CustomID: line.CustomID, Error: &openAIProblem{skippedCode, message}})
	}
	o := anthropicResult{CustomID: line.CustomID, Result: anthropicOutcome{Type: "errored"}, Skipped: id}
	o.Result.Error, _ = json.Marshal(map[string]any{"type": "error",
		"error": map[string]string{"type": "invalid_request_error", "message": message}})
	return lineOf(o)
}

// skippedEntry is the entry of such a line for a rerun: it was written already. No request has
// ended with it.
func skippedEntry(id string) entry {
	return entry{ID: id, State: "dead", Status: http.StatusBadRequest}
}
