package format

import (
	"slices"

	"github.com/paceline-go/paceline/internal/app/run/input"
	"github.com/paceline-go/paceline/provider"
)

// Format is the form of requests and results: Plain, an *Items or an *LLM.
type Format interface {
	Results
	// parse reads a request from a line of JSON.
	parse(r *Reader, line input.Value) (*Request, error)
	// DeadSuffix returns how the name of the dead letters beside OUT.jsonl ends.
	DeadSuffix() string
	// Dialect reads the limits that answers state. If nil, it is the dialect of a known host, or is
	// guessed from each answer.
	Dialect() provider.Dialect
}

// Results writes results and reads them again. It is the Format itself, unless Config asks for
// results of another form.
type Results interface {
	// Line appends a result to b, with its line break.
	Line(b []byte, r *Result) []byte
	// Entry reads the part of a result that a rerun needs. isDead says that it is a dead letter. It
	// returns false if the line is neither.
	Entry(line []byte, isDead bool) (Entry, bool)
	// Start returns the beginning of every result's line.
	Start() string
}

// Plain is the format of paceline itself: each line is an HTTP request of any kind.
type Plain struct{}

func (Plain) parse(r *Reader, line input.Value) (*Request, error) { return r.parse(line) }
func (Plain) Line(b []byte, r *Result) []byte                     { return r.Append(b) }
func (Plain) Start() string                                       { return `{"id":"` }
func (Plain) DeadSuffix() string                                  { return ".dead.jsonl" }
func (Plain) Dialect() provider.Dialect                           { return nil }

// Endpoints are the endpoints of OpenAI's batches whose tokens can be counted here.
func Endpoints() []string { return slices.Clone(endpoints) }
