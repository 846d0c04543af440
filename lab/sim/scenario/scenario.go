package scenario

import (
	"cmp"
	"errors"
	"io"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"

	"github.com/paceline-go/paceline/internal/app/yamlfile"
	"github.com/paceline-go/paceline/lab/sim/fleet"
)

// Version is the version of the format.
const Version = 1

// Error is what is wrong at a place in a file: File, Line and Column, each from 1 where it is known, and Problem.
type Error = yamlfile.Error

// Load reads a file. Files of recorded latencies are looked for beside it.
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

// Read reads a scenario. name is for errors. open opens files of recorded latencies; if it is nil
// there are none. The error is an *Error, or several of them joined in the order of their lines,
// unless r itself failed.
func Read(name string, r io.Reader, open func(name string) (io.ReadCloser, error)) (fleet.Scenario, error) {
	d := &decoder{Reader: yamlfile.New(name), open: open}
	if d.open == nil {
		d.open = func(string) (io.ReadCloser, error) { return nil, errors.New("files cannot be opened here") }
	}
	root, err := d.Root(r, "scenario", yamlfile.Keys(scenarioFields))
	if err != nil || root == nil {
		return fleet.Scenario{}, cmp.Or(err, d.Err())
	}
	var s fleet.Scenario
	d.scenario(root, &s)
	if d.Ok() {
		d.check(root, s.Check())
	}
	if err := d.Err(); err != nil {
		return fleet.Scenario{}, err
	}
	return s, nil
}

// check finds the place in the file that each error of the scenario comes from.
func (d *decoder) check(root *yaml.Node, err error) {
	if err == nil {
		return
	}
	all := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		all = joined.Unwrap()
	}
	for _, err := range all {
		field, ok := errors.AsType[*fleet.FieldError](err)
		if !ok {
			d.Refuse(root, "%v", err)
			continue
		}
		path, at := yamlfile.Locate(root, field.Field, inFile)
		d.Refuse(at, "%s: %s", path, field.Problem)
	}
}

// inFile is what a field of a scenario is called in a file, if that is another name.
var inFile = map[string]string{"limit": "quota", "window": "quota", "per_second": "rate"}
