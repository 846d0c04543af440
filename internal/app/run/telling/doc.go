// Package telling writes what the user learns while a run goes on. It writes two things: notices,
// each of them once, and the reasons why requests waited or were refused.
//
// Nothing in package telling decides what is sent. A Teller passes each notice to a function of its
// caller. That function removes secrets from the notice before the user sees the notice.
//
//	notices.go      notices for the user, each once
//	waits.go        how long requests waited for each cause: a limit, a pause, a key
//	served_rate.go  the rate that a server seems to accept, with --limit none
//	refusals.go     which attempts of a request were refused, and when
package telling
