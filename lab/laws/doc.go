// Package laws has the tests of the library that need the simulator. The library's own tests run
// without the folder lab. So a test with the simulator is in a folder below this one, under the
// name of what it tests:
//
//	lab/laws/limit      each kind of limit: hostile networks, planted faults, and assumptions that turn out wrong
//	lab/laws/fairshare  clients that share a quota: their shares, the refusals, and how much of the quota nobody used
//	lab/laws/doors      the same promises end to end, through Gate, Pool, transport and run
//
// A test that needs unexported names, or no simulator, stays beside the code.
package laws
