// Package dispatch decides which request goes out now, and with which API key. It has one queue of
// requests for several keys. Each key has its own limits, nonces, bound on attempts in flight, and
// state. Keys of one account may have limits together, too (Shared). The type Dispatcher has two
// main methods:
//
//	Next(now)        the attempt to send now, or when to ask again
//	Done(now, …)     settles an attempt that has ended, and gives its request and its key their next states
//
// A Dispatcher has two callers: a pool.Pool, which calls it from goroutines with the real time, and
// the simulator, which calls it in virtual time. The Pool's types of keys, attempts and answers are
// those of package dispatch. Next returns an attempt, or the instant at which the caller has to
// call Next again. In place of that instant, Next may state that only a call of another method can
// help, such as Done or Submit. A Dispatcher has no clock and no lock, and is not safe for
// concurrent use.
//
//	dispatch.go    which key sends which request next; the ends of bans and holds, by Done
//	part.go        requests of one resource, which others with room overtake
//	host_heads.go  requests to a host that is down are set aside; probes; a slow host
//	shared.go      several keys of one account: their common limits and pauses
//	blame.go       key or request at fault for a denial (401, 403); how long the key then stays
//	               away; whether another may try at once
//	nonce.go       nonces of a key, which must rise
package dispatch
