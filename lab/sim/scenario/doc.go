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
//
// # Files
//
//	scenario.go         Load: reads a scenario file; the place of each error
//	scenario_fields.go  the keys of the file, and the kinds of their values
//	scenario_decode.go  values: units, laws, choices
//	scenario_schema.go  the JSON schema of the file
package scenario
