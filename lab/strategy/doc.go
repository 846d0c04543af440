// Package strategy lists, by name, the strategies for sharing a quota that simulators compare. Some
// are those of a published Ruby library, the rate_throttle_client gem, and of a demo before that
// gem. Some come from other systems: AIMD, and the CUBIC of the AWS SDKs' adaptive mode. Two, fair
// and auto, are those of package fairshare.
//
// No program should send by the published strategies of others: they are in package strategy only
// to be measured. To measure a strategy of your own, fill in a value of the type Strategy, or make
// one with ByLaw. Then put the value into compare.Config.Strategies of package lab/sim/compare, or
// into the field Strategy of a fleet.Group of package lab/sim/fleet.
//
// Nothing in package strategy owns a clock, lock or goroutine, and nothing is safe for concurrent
// use, as in package fairshare. The caller passes in the source of random numbers.
//
// # Files
//
//	strategy.go  the list of strategies by name; fair and auto, which are those of package fairshare
//	law.go       Strategy, Process, Thread and Answer; Params, which sets a strategy's constants
//	gem.go       the strategies of the rate_throttle_client gem
//	demo.go      the strategies of the demo before that gem
//	own_law.go   ByLaw: a strategy of your own, from a function
//	aimd.go      AIMD: additive increase, multiplicative decrease
//	cubic.go     Cubic: the adaptive retry mode of the AWS SDKs
package strategy
