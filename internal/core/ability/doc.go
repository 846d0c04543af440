// Package ability provides functions that use two abilities which only a few limiters have. One is
// to learn from answers how much may be sent. The other is to fetch a part of a limit from a store.
// A limiter with such an ability may be wrapped in another limiter. The functions find the inner
// limiter by limit.Ask.
//
//	learn.go   limiters that learn from answers how much may be sent: Fair and Auto of package fairshare
//	remote.go  limiters that fetch room from a store, as share.Member does for a limit that many processes share
package ability
