package run

import (
	"github.com/paceline-go/paceline/internal/app/run/jsonl"
	"github.com/paceline-go/paceline/pool"
	"github.com/paceline-go/paceline/provider"
)

// Format is the form of requests and results: Plain, an *Items or an *LLM.
type Format interface {
	resultFormat
	// parse reads a request from a line of JSON.
	parse(r *Reader, line jsonl.Value) (*Request, error)
	// deadSuffix returns how the name of the dead letters beside OUT.jsonl ends.
	deadSuffix() string
	// dialect reads the limits that answers state. If nil, it is the dialect of a known host, or is
	// guessed from each answer.
	dialect() provider.Dialect
	// judge corrects the evidence of a whole answer with all that only the format can read in it.
	judge(r *Run, j *job, ans *pool.Answer)
}

// resultFormat writes results and reads them again. It is the Format itself, unless Config asks for
// results of another form.
type resultFormat interface {
	// line appends a result to b, with its line break.
	line(b []byte, r *Result) []byte
	// entry reads the part of a result that a rerun needs. isDead says that it is a dead letter. It
	// returns false if the line is neither.
	entry(line []byte, isDead bool) (entry, bool)
	// start returns the beginning of every result's line.
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
