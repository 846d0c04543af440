// Package telling writes what the user learns while a run goes on. It writes two things: notices,
// each of them once, and the reasons why requests waited or were refused.
//
// Nothing in package telling decides what is sent. A Teller passes each notice to a function of its
// caller. That function removes secrets from the notice before the user sees the notice.
//
//	notices.go      notices for the user, each once
//	waits.go        the causes for which requests waited
//	served_rate.go  the rate that a server accepts, if no limit is given
//	refusals.go     which attempts of a request were refused, and when
package telling
