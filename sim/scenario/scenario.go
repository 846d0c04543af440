// Package scenario reads the scenarios of package fleet from YAML files:
//
//	version: 1
//	name: nightly import
//	duration: 3h
//	seed: 1
//	sample: 10s                   # for charts
//	server:
//	  kind: bucket                # or gcra, decrease-only, rolling, calendar, weighted, anchored
//	  quota: 4500/h
//	  capacity: 4500
//	  headers: {reset: whole-seconds, retry_after: exact}
//	  level: 0                    # when the first request arrives; full: all of it
//	  service: exponential:20ms
//	  changes:                    # which nobody is told of
//	    - {at: 1h, factor: 0.5}
//	groups:
//	  - name: workers
//	    strategy: fair
//	    processes: 2
//	    threads: 5
//	    link: uniform:20ms-40ms     # a law of package latency, each way
//	  - name: reports
//	    strategy: fair
//	    params: {weight: 2}
//	    join: 30m
//	    leave: 2h
//	    demand: {kind: on-off, on: 5m, off: 10m}
//	    costs: {mean: 20, exponential: true}
//
// Only version, duration and groups with a strategy must be there. Every name is that of a field of fleet.Scenario, whose
// documentation says what is done without it, in lower case; quota is its Limit per Window, and the rate of a light demand
// its PerSecond. Decoding is strict: what is not known, is there twice, or cannot be is an error that says where, and what
// can. All errors of a file are reported, not just the first.
package scenario

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/paceline-go/paceline/sim/fleet"
)

// Version is that of the format.
const Version = 1

// Error is what is wrong in a line of a file.
type Error struct {
	File    string
	Line    int // from 1; 0: of the file as a whole
	Problem string
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %s", e.File, e.Problem)
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Problem)
}

// mostBytes is how long a file may be: it is read whole.
const mostBytes = 1 << 20

// Load reads a file. Recorded latencies are files beside it.
func Load(name string) (fleet.Scenario, error) {
	f, err := os.Open(name)
	if err != nil {
		return fleet.Scenario{}, err
	}
	defer f.Close()
	return Read(name, f, func(recording string) (io.ReadCloser, error) {
		if !filepath.IsAbs(recording) {
			recording = filepath.Join(filepath.Dir(name), recording)
		}
		return os.Open(recording)
	})
}

// Read reads a scenario; name is for errors, open opens recorded latencies, and if it is nil there are none. Its error is an
// *Error, or several of them, joined in the order of their lines, unless r itself failed.
func Read(name string, r io.Reader, open func(name string) (io.ReadCloser, error)) (fleet.Scenario, error) {
	text, err := io.ReadAll(io.LimitReader(r, mostBytes+1))
	if err != nil {
		return fleet.Scenario{}, fmt.Errorf("%s: %w", name, err)
	}
	d := &decoder{file: name, open: open, last: lines(text)}
	if d.open == nil {
		d.open = func(string) (io.ReadCloser, error) { return nil, errors.New("files cannot be opened here") }
	}
	if len(text) > mostBytes {
		d.refuse(nil, "is longer than %d bytes", mostBytes)
		return fleet.Scenario{}, d.err()
	}
	root := d.parse(text)
	if root == nil {
		return fleet.Scenario{}, d.err()
	}
	var s fleet.Scenario
	d.scenario(root, &s)
	if len(d.errs) == 0 {
		d.check(root, s.Check())
	}
	if err := d.err(); err != nil {
		return fleet.Scenario{}, err
	}
	return s, nil
}

// lines counts those of a file, the last of which may be empty, as YAML breaks them.
func lines(text []byte) int {
	n := 1
	for _, end := range []string{"\n", "\r", "\u0085", "\u2028", "\u2029"} {
		n += bytes.Count(text, []byte(end))
	}
	return n
}

// parse returns the mapping that a file is, or nil.
func (d *decoder) parse(text []byte) *yaml.Node {
	in := yaml.NewDecoder(bytes.NewReader(text))
	var document, more yaml.Node
	switch err := in.Decode(&document); {
	case errors.Is(err, io.EOF):
		d.refuse(nil, "is empty: want %s", list(keys(scenarioFields)))
		return nil
	case err != nil:
		d.syntax(err)
		return nil
	}
	switch err := in.Decode(&more); {
	case err == nil:
		d.refuse(&more, "a second document: want one scenario per file")
		return nil
	case !errors.Is(err, io.EOF):
		d.syntax(err)
		return nil
	}
	root := resolved(document.Content[0])
	if root.Kind != yaml.MappingNode {
		d.refuse(root, "%s is no scenario: want %s", show(root), list(keys(scenarioFields)))
		return nil
	}
	return root
}

// syntax makes an Error of the parser's, which begins with "yaml: line 3: ".
func (d *decoder) syntax(err error) {
	e := &Error{File: d.file}
	problem := strings.TrimPrefix(err.Error(), "yaml: ")
	if _, scanErr := fmt.Sscanf(problem, "line %d: ", &e.Line); scanErr == nil {
		_, problem, _ = strings.Cut(problem, ": ")
	}
	e.Problem = "no YAML: " + strings.ToValidUTF8(problem, "?")
	d.errs = append(d.errs, e)
}

// check puts errors of the scenario to where in the file they come from.
func (d *decoder) check(root *yaml.Node, err error) {
	if err == nil {
		return
	}
	all := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		all = joined.Unwrap()
	}
	for _, err := range all {
		var field *fleet.FieldError
		if !errors.As(err, &field) {
			d.refuse(root, "%v", err)
			continue
		}
		path, at := locate(root, field.Field)
		d.refuse(at, "%s: %s", path, field.Problem)
	}
}

// locate finds the field of a scenario in a file, or what is next around it, and how it is called there.
func locate(root *yaml.Node, field string) (path string, at *yaml.Node) {
	at = root
	found := true
	var names []string
	for step := range strings.SplitSeq(field, ".") {
		name, index, listed := strings.Cut(strings.TrimSuffix(step, "]"), "[")
		name = snake(name)
		switch {
		case name == "limit" || name == "window":
			name = "quota"
		case name == "per_second":
			name = "rate"
		}
		if listed {
			names = append(names, name+"["+index+"]")
		} else {
			names = append(names, name)
		}
		if !found {
			continue
		}
		var next *yaml.Node
		if next = member(at, name); next != nil && listed {
			var i int
			_, _ = fmt.Sscan(index, &i)
			if next.Kind == yaml.SequenceNode && i < len(next.Content) {
				next = resolved(next.Content[i])
			}
		}
		if found = next != nil; found {
			at = next
		}
	}
	return strings.Join(names, "."), at
}

// member returns the value of a key, or nil.
func member(n *yaml.Node, key string) *yaml.Node {
	if n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return resolved(n.Content[i+1])
		}
	}
	return nil
}

// snake turns MinSleep into min_sleep.
func snake(name string) string {
	var b strings.Builder
	for i, r := range name {
		if i > 0 && 'A' <= r && r <= 'Z' {
			b.WriteByte('_')
		}
		b.WriteRune(r)
	}
	return strings.ToLower(b.String())
}

func (d *decoder) err() error {
	slices.SortStableFunc(d.errs, func(a, b *Error) int { return cmp.Compare(a.Line, b.Line) })
	switch len(d.errs) {
	case 0:
		return nil
	case 1:
		return d.errs[0]
	}
	errs := make([]error, len(d.errs))
	for i, e := range d.errs {
		errs[i] = e
	}
	return errors.Join(errs...)
}
