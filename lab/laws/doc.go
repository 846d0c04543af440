// Package laws contains those tests of the library that need the simulator. The library's other
// tests run without the folder lab. A test that needs the simulator is in a folder below this one,
// which is named after what the test tests:
//
//	lab/laws/limit      each kind of limit: hostile networks, planted faults, and assumptions that turn out wrong
//	lab/laws/fairshare  clients that share a quota: their shares, the refusals, and how much of the quota nobody used
//	lab/laws/doors      the same promises end to end, through Gate, Pool, transport and run
//
// A test stays beside the code that it tests if it needs unexported names, or if it needs no
// simulator.
package laws
