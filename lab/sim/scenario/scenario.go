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
//	  changes:                    # of the quota; the clients are not told
//	    - {at: 1h, factor: 0.5}
//	store:                        # for groups with strategy: share
//	  link: uniform:1ms-5ms
//	  fallback: split
//	  outages:
//	    - {at: 2h, lasts: 1m, group: replicas, processes: 2}
//	expect:                       # bounds; if the run misses one, the command fails
//	  - limited < 3 %
//	  - max_sleep <= 20 s
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
//	  - name: mine
//	    strategy:                 # a law of your own; package formula has the words
//	      on_limited: sleep*1.2 + min_sleep
//	      on_ok: sleep -= sleep*remaining/limit
//	  - name: replicas
//	    strategy: share             # one exact limit for all of them
//	    processes: 8
//
// In a file with a scenario, only version, duration and groups are required, and for each group a
// strategy. A key is the name of a field of fleet.Scenario, or of a type in it, in lower case with
// underscores: retry_after for RetryAfter. The documentation of that field states what applies if
// the key is left out. Some keys differ. The key quota, with a value such as 4500/h, sets the two
// fields Limit and Window. The value full of the key level sets the field Full. The key rate of a
// light demand sets the field PerSecond, and the key fallback the field Split.
//
// A scenario is read strictly: an unknown key, a key that is there twice, or an impossible value is
// an error. The error states the place in the file and what is possible there. The decoder reports
// the errors of all keys, not just the first.
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
