package batch

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// entry is what a rerun reads of a result.
type entry struct {
	ID     string `json:"id"`
	State  string `json:"state"`
	Status int    `json:"status"`
	Class  string `json:"class"` // of a dead letter
	Digest Digest `json:"request_digest"`

	body []byte // the answer, of an LLM
}

func (Plain) entry(line []byte, _ bool) (e entry, ok bool) {
	if e.read(line) {
		return e, true
	}
	e = entry{}
	ok = json.Unmarshal(line, &e) == nil && e.ID != "" && (e.State == "done" || e.State == "expired" || e.State == "dead")
	return e, ok
}

// read reads what append writes of a request that is done, if its id needs no escapes: every run reads its results back. What is
// between has to be JSON, and is passed over, the Class of a dead letter too.
func (e *entry) read(line []byte) bool {
	id, rest, found := bytes.Cut(line, []byte(`","state":"done","status":`))
	id, begins := bytes.CutPrefix(id, []byte(`{"id":"`))
	if !found || !begins || len(id) == 0 || len(rest) < 3 || !json.Valid(line) {
		return false
	}
	for _, c := range id {
		if c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	// It is the last of all, so it is the result's own.
	const name, digits = `,"request_digest":"`, 16
	end := len(rest) - digits - len("\"}\n")
	if end < len(name) || string(rest[end+digits:]) != "\"}\n" || string(rest[end-len(name):end]) != name {
		return false
	}
	status, err := strconv.Atoi(string(rest[:3]))
	if err != nil || status < 100 || rest[3] != ',' {
		return false
	}
	digest := rest[end : end+digits]
	for _, c := range digest {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	e.ID, e.State, e.Status, e.Digest = string(id), "done", status, Digest(digest)
	return true
}
