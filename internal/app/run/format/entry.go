package format

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/paceline-go/paceline/internal/app/run/input"
)

// Entry is the part of a result that a rerun reads.
type Entry struct {
	ID     string `json:"id"`
	State  string `json:"state"`
	Status int    `json:"status"`
	Class  string `json:"class"` // only dead letters have one
	Digest Digest `json:"request_digest"`
	Page   int    `json:"page"`
	Next   string `json:"next"`
	Round  int    `json:"round"`
	File   string `json:"file"` // the file with the answer's body, if the run writes such files
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
	// Finish is meter.Length if the answer of a language model was cut, and OutputTokens what it states.
	Finish       string `json:"finish"`
	OutputTokens int64  `json:"output_tokens"`

	SelectFailed bool `json:"select_failed"`

	Body []byte `json:"-"` // the answer of a language model
	// Skipped says that it is a line of the input that was no request.
	Skipped bool `json:"-"`
}

func (Plain) Entry(line []byte, _ bool) (e Entry, ok bool) {
	if e.read(line) {
		return e, true
	}
	return SlowEntry(line)
}

// SlowEntry reads any line of results.
func SlowEntry(line []byte) (e Entry, ok bool) {
	ok = json.Unmarshal(line, &e) == nil && e.ID != "" && (e.State == "done" || e.State == "expired" || e.State == "dead")
	return e, ok
}

// read is a fast slowEntry, since every run reads all its results back. It reads a line that
// Result.append wrote for a done request, if the id needs no escapes. It passes over the members in
// between, which must be JSON. If it returns false, slowEntry must read the line.
func (e *Entry) read(line []byte) bool {
	id, rest, found := bytes.Cut(line, []byte(`","state":"done","status":`))
	id, begins := bytes.CutPrefix(id, []byte(`{"id":"`))
	if !found || !begins || len(id) == 0 || len(rest) < 3 || !input.ValidJSON(line) {
		return false
	}
	for _, c := range id {
		if c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	for member := range bytes.SplitSeq(rest, []byte(`,"`)) { // a text has \" in place of "
		switch name, _, _ := bytes.Cut(member, []byte{'"'}); string(name) {
		case "page", "next", "round", "finish", "output_tokens", "select_failed":
			return false
		}
	}
	// The digest is the last member of the line, so it cannot be a part of an answer's body.
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
