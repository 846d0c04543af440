// Package observe defines Snapshots. A Snapshot is the state of a Gate, a Group, a Pool or a
// Transport at one instant, as plain data. (If a Group or a Transport has more than 64 lanes, the
// parts of its Snapshot are of slightly different instants.) Package dashboard shows Snapshots on a
// web page, and package prom exports them to Prometheus.
//
//	snapshot.go  Source, and Snapshot: all that one front end shows at an instant
//	states.go    the states of limits, clients, keys and pauses in a Snapshot; Whose: of whom
//	counts.go    counts of attempts: served, refused, failed; amounts by unit
//	times.go     durations of waits and answers: classes, quantiles, whose wait is noted
//	events.go    latest events: refusals, pauses, outages; repeated ones as one
//	stats.go     Stats, and the difference of two of them
//	labels.go    names of clients and hosts as labels of metrics: how many, how long
//
// Most programs only read Snapshots, from a Gate or a Pool for example. A program may also provide
// a Source of its own, and then makes the Snapshots itself. Such a program collects events in an
// EventLog, the durations of waits in the type Waits, and those of answers in the type Answers.
// When a Snapshot is complete, the program calls its method Sort, which puts the parts of the
// Snapshot into their final order.
//
// Nothing in package observe has a clock or a lock: the callers pass in instants, and hold a lock
// of their own if several goroutines use a value.
package observe
