package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/lab/loadgen"
	"github.com/paceline-go/paceline/lab/sim/compare"
	"github.com/paceline-go/paceline/lab/sim/fleet"
)

// storedRun is a run of paceline-lab sim as it is kept. One of its pointers is set.
type storedRun struct {
	Version   int             `json:"version"` // 1
	Scenario  *fleet.Report   `json:"scenario,omitempty"`
	Live      *loadgen.Report `json:"live,omitempty"`
	Throttles *compare.Table  `json:"throttles,omitempty"`
}

// samples is how many instants of a run are kept for charts if the run does not say how many.
const samples = 360

// runsKept is how many of the latest runs are kept.
const runsKept = 50

func runsFolder() (string, error) {
	if dir := os.Getenv("PACELINE_RUNS"); dir != "" {
		return dir, nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no folder for runs: %w; name one in PACELINE_RUNS", err)
	}
	return filepath.Join(cache, "paceline", "runs"), nil
}

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// runName is what a run is called that began then.
func runName(began time.Time, ending string) string {
	ending = strings.Trim(notInNames.ReplaceAllString(strings.ToLower(ending), "-"), "-")
	return began.UTC().Format("20060102-150405") + "-" + ending[:min(len(ending), 60)]
}

// store keeps the run under the runName.
func (r storedRun) store(began time.Time, ending string) error {
	dir, err := runsFolder()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	r.Version = 1
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	temp, err := os.CreateTemp(dir, ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name())
	_, err = temp.Write(text)
	if err = errors.Join(err, temp.Close()); err != nil {
		return err
	}
	if err := os.Rename(temp.Name(), filepath.Join(dir, runName(began, ending)+".json")); err != nil {
		return err
	}
	names, err := storedRuns()
	if err != nil {
		return err
	}
	for _, old := range names[min(runsKept, len(names)):] {
		if gone := os.Remove(filepath.Join(dir, old+".json")); !errors.Is(gone,
			fs.ErrNotExist) { // another run may have been first
			err = errors.Join(err, gone)
		}
	}
	return err
}

// storedRuns returns the names of the stored runs, the latest first.
func storedRuns() (names []string, err error) {
	dir, err := runsFolder()
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".json"); ok && !strings.HasPrefix(name, ".") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	slices.Reverse(names)
	return names, nil
}

// loadRun reads a run by its name or file; if that is empty, the latest run. It also returns the
// run's name.
func loadRun(name string) (*storedRun, string, error) {
	dir, err := runsFolder()
	if err != nil {
		return nil, "", err
	}
	if name == "" {
		names, err := storedRuns()
		if err != nil {
			return nil, "", err
		}
		if len(names) == 0 {
			return nil, "", cli.Usage(fmt.Errorf("no run is stored in %s: paceline-lab sim stores what it runs", dir))
		}
		name = names[0]
	}
	file := name
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) && filepath.Base(name) == name {
		file = filepath.Join(dir, name+".json")
		text, err = os.ReadFile(file)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", cli.Usage(fmt.Errorf("%q is neither a file nor a run in %s; paceline-lab chart --list lists those",
			name, dir))
	}
	if err != nil {
		return nil, "", err
	}
	var r storedRun
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, "", cli.Exit(cli.ExitConfig,
			fmt.Errorf("%s is no stored run of paceline-lab sim, and has no results of paceline run (--out) and no log of "+
				"paceline serve (--log)", file))
	}
	if r.Version != 1 || r.Scenario == nil && r.Live == nil && r.Throttles == nil {
		return nil, "", cli.Exit(cli.ExitConfig, fmt.Errorf("%s is no stored run of version 1", file))
	}
	return &r, name, nil
}
