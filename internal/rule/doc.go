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
//	rule.go            Server, Rule, and several rules at once
//	rolling.go         servers with a log of the last window
//	calendar.go        servers with a counter per minute or day
//	anchored.go        servers whose interval begins with a message
//	bucket.go          servers with a token bucket or GCRA
//	weighted.go        servers with two counters and a proportion
//	ready.go           when a request would pass: the Retry-After of test servers
//	left.go            what is left: the largest cost that would pass
//	amend.go           servers that learn later what a request cost
//	stepped_clock.go   NewClocked: a server whose clock is wrong
//	witness.go         judges a log: was the rule kept, and how full was the worst window
//	exchange_rule.go   the strict exchange: keys, nonces in order, bans
//	exchange_judge.go  judges the log of an exchange
package rule
