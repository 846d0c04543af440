package run

import (
	"github.com/paceline-go/paceline/internal/app/run/jsonl"
	"github.com/paceline-go/paceline/pool"
	"github.com/paceline-go/paceline/provider"
)

// Format is how requests and results are written: Plain, a *Items or an *LLM.
type Format interface {
	resultFormat
	// parse reads a request from a line of JSON.
	parse(r *Reader, line jsonl.Value) (*Request, error)
	// deadSuffix is how the name of the dead letters beside OUT.jsonl ends.
	deadSuffix() string
	// dialect reads what answers say of limits. If nil, the dialect is that of the host if it is known, or is guessed from each answer.
	dialect() provider.Dialect
	// judge corrects what a whole answer proves, by what only the format can read in it.
	judge(r *Run, j *job, ans *pool.Answer)
}

// resultFormat is how results are written and read again. It is the Format itself unless Config asks for results of another form.
type resultFormat interface {
	// line appends a result to b, with its line break.
	line(b []byte, r *Result) []byte
	// entry reads what a rerun needs of a result. dead says that it is a dead letter. It returns false if the line is neither.
	entry(line []byte, dead bool) (entry, bool)
	// start is how the line of every result begins.
	start() string
}

// Plain is the format of paceline itself: each line is an HTTP request of any kind.
type Plain struct{}

func (Plain) parse(r *Reader, line jsonl.Value) (*Request, error) { return r.parse(line) }
func (Plain) line(b []byte, r *Result) []byte                     { return r.append(b) }
func (Plain) start() string                                       { return `{"id":"` }
func (Plain) deadSuffix() string                                  { return ".dead.jsonl" }

func (Plain) dialect() provider.Dialect      { return nil }
func (Plain) judge(*Run, *job, *pool.Answer) {}
