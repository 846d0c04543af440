// Package rule provides the server's side of rate limits: the rules by which servers refuse
// requests. Simulators and test servers enforce these rules. Package rule also provides judges. A
// judge reads a log of requests in the order of their arrival, and finds whether those that the
// server let pass kept to a rule.
//
// Use package rule to write a server or to judge a log. A client that must keep to a rule uses
// package limit instead. A test that needs a ready-made server uses package ratetest, which
// enforces the rules of package rule.
//
// Package rule shares no code with the limiters of package limit that it judges, so one fault
// cannot hide in both. Nothing in package rule reads a clock, waits or locks. Only one goroutine at
// a time may use a value of the package.
//
// # Files
//
//	rule.go            Server, Rule, and several rules at once (All)
//	rolling.go         NewRolling: a log of the last window
//	calendar.go        NewCalendar: a counter per interval of a clock
//	anchored.go        NewAnchored: intervals that begin with a message
//	bucket.go          NewBucket and NewGCRA
//	weighted.go        NewWeighted: two counters and a proportion
//	ready.go           Timed: when a request would pass
//	left.go            Left: the largest cost that would pass
//	amend.go           Amendable: costs that a server corrects later
//	stepped_clock.go   NewClocked: a server whose clock is wrong
//	witness.go         Witness and Densest: from a log, whether a rule was kept
//	exchange_rule.go   Exchange: keys, nonces and bans
//	exchange_judge.go  Judge: from a log, whether an exchange kept its rule
package rule
