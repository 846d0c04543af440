package batch

import (
	"github.com/paceline-go/paceline/dispatch"
	"github.com/paceline-go/paceline/internal/strict"
	"github.com/paceline-go/paceline/quota"
)

// Format is how requests and results are written: Plain, or an *LLM.
type Format interface {
	// parse reads a line that is JSON.
	parse(r *Reader, line strict.Value) (*Request, error)
	// line appends a result, with its line break.
	line(b []byte, r *Result) []byte
	// entry reads what a rerun needs of a result; dead says that it is among the dead letters. False: it is none.
	entry(line []byte, dead bool) (entry, bool)
	// start is what every result begins with.
	start() string
	// deadSuffix is what the dead letters beside OUT.jsonl are called.
	deadSuffix() string
	// dialect reads what answers say of limits. Nil: as the host is known, or as each looks.
	dialect() quota.Dialect
	// judge changes what a whole answer proves by what only the format knows of it.
	judge(r *Run, j *job, ans *dispatch.Answer)
}

// Plain is the format of paceline: any HTTP request is a line.
type Plain struct{}

func (Plain) parse(r *Reader, line strict.Value) (*Request, error) { return r.parse(line) }
func (Plain) line(b []byte, r *Result) []byte                      { return r.append(b) }
func (Plain) start() string                                        { return `{"id":"` }
func (Plain) deadSuffix() string                                   { return ".dead.jsonl" }

func (Plain) dialect() quota.Dialect             { return nil }
func (Plain) judge(*Run, *job, *dispatch.Answer) {}
