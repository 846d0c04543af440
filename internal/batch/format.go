package batch

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/paceline-go/paceline/dispatch"
)

// Format is how requests and results are written: Plain, or an *LLM.
type Format interface {
	// parse reads a line that is JSON.
	parse(r *Reader, line []byte) (*Request, error)
	// line writes a result, with its line break.
	line(r *Result) []byte
	// entry reads what a rerun needs of a result; dead says that it is among the dead letters. False: it is none.
	entry(line []byte, dead bool) (entry, bool)
	// start is what every result begins with.
	start() string
	// deadSuffix is what the dead letters beside OUT.jsonl are called.
	deadSuffix() string
	// judge says what an answer proves that only the format knows. False: nothing.
	judge(r *Run, j *job) (ans dispatch.Answer, final, ok bool)
}

// form is how a file of results is read.
type form struct {
	Format
	dead bool // it has the dead letters
}

// Plain is the format of paceline: any HTTP request is a line.
type Plain struct{}

func (Plain) parse(r *Reader, line []byte) (*Request, error) { return r.parse(line) }
func (Plain) line(r *Result) []byte                          { return r.line() }
func (Plain) start() string                                  { return `{"id":"` }
func (Plain) deadSuffix() string                             { return ".dead.jsonl" }

func (Plain) entry(line []byte, _ bool) (entry, bool) {
	var e entry
	ok := json.Unmarshal(line, &e) == nil && e.ID != "" && (e.State == "done" || e.State == "expired" || e.State == "dead")
	return e, ok
}

func (Plain) judge(*Run, *job) (dispatch.Answer, bool, bool) { return dispatch.Answer{}, false, false }

func statusText(status int) string {
	return fmt.Sprintf("answered %d %s", status, http.StatusText(status))
}
