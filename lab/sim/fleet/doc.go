// Package fleet simulates, in virtual time, clients that share a quota and know nothing of each
// other. A Scenario defines the quota, the clients and what they want to send. A Report states the
// results of the clients: their shares, refusals and waits. Each client follows a
// strategy.Strategy, which may be one of your own.
//
//	scenario.go, quota.go, scenario_check.go  Scenario: what is run, and the checks of its fields
//	fleet.go                                  runs a Scenario: the order of its events
//	population.go                             the clients: processes, threads, demand, costs; when
//	                                          they come and go
//	quota_server.go                           the server: counts the quota, refuses, delays
//	headers.go                                what answers state of the quota: rounded, late,
//	                                          wrong
//	fleet_store.go                            processes that share one exact limit through a store
//	steadiness.go                             the figures that are counted while it runs
//	settling_time.go                          how long the clients took until their rates were steady
//	shares.go                                 how evenly clients shared: their shares, the CV
//	fleet_report.go                           the fields of the Report, from these figures
//	expect.go                                 bounds in a scenario file that a Report should keep
//	standard.go                               the scenarios in which strategies are compared
//
// Package lab/sim/scenario reads scenarios from files. Package lab/sim/compare runs many scenarios
// and writes a table of their results.
//
// The same Scenario, with the same Seed, always gives the same Report, if its Strategy uses no
// random numbers but those that it gets. A Fleet, which is one simulation, is not safe for
// concurrent use, but several Fleets may run at the same time.
package fleet
