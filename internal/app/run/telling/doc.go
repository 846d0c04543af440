// Package telling puts into words what a user learns while a run sends. These are notices, such as
// that a key was banned, each of them once. They are also the reasons why requests waited or were
// refused.
//
// Nothing in package telling decides which requests are sent. A Teller passes each notice to a
// function of its caller. That function removes secrets from the notice before the user sees it.
//
//	notices.go      notices, each once: long waits, a banned key, a cut answer; their words
//	waits.go        how long requests waited for each cause: a limit, a pause, a key
//	served_rate.go  --limit none: the rate that a server seems to accept
//	refusals.go     which attempts of a request were refused, and when
package telling
