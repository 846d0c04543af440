// Package laws has the tests of the library that need the simulator. The library's own tests run
// without the folder lab. So a test with the simulator is in a folder below this one, under the
// name of what it tests:
//
//	lab/laws/limit      every kind of limit on hostile networks, planted faults, and opt-ins that prove wrong
//	lab/laws/fairshare  shares, refusals and what goes unused, in fleets of clients that share a quota
//	lab/laws/doors      the same promises end to end, through Gate, Pool, transport and run
//
// A test that needs unexported names, or no simulator, stays beside the code.
package laws
