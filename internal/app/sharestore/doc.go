// Package sharestore makes the limits that commands such as `paceline run` and `paceline proxy`
// share with other processes through a store, which is a database. The package gives each limit its
// name in the store, and knows which kinds of limit can be shared. All the rest of sharing is in
// package share.
//
// # Files
//
//	sharestore.go  the names of limits in a store; joins them; refuses a limit that differs there
//	part.go        --use beside a store: a part of the limits
//	seen.go        what `share ls` and `share show` print of a limit
//	used.go        how much of a limit is used, for seen.go
//	stated_new.go  `share new`: states that a limit is new, so that nobody waits
package sharestore
