package scenario_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/paceline-go/paceline/lab/sim/fleet"
	"github.com/paceline-go/paceline/lab/sim/scenario"
)

// A fleet as a file has it, run for an hour of virtual time.
func ExampleRead() {
	s, err := scenario.Read("fleet.yaml", strings.NewReader(`
version: 1
name: two teams
duration: 1h
seed: 1
server:
  kind: bucket
  quota: 3600/h
groups:
  - name: workers
    strategy: fair
    processes: 5
    link: uniform:20ms-40ms
`), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	f, err := fleet.New(s)
	if err != nil {
		fmt.Println(err)
		return
	}
	f.Advance(time.Hour)
	r := f.Report()
	fmt.Printf("%d served, %d refused\n", r.Served, r.Limited)
	// Output: 3467 served, 5 refused
}

// What is wrong is said with its line and column.
func ExampleError() {
	_, err := scenario.Read("fleet.yaml", strings.NewReader(`
version: 1
duration: 1h
server:
  kind: buket
  quota: 3600/h
groups:
  - strategy: fair
`), nil)
	fmt.Println(err)
	// Output: fleet.yaml:5:9: kind: "buket" is none of bucket, gcra, decrease-only, rolling, calendar, weighted, anchored
}
