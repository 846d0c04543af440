// Package node decides what one of the nodes (processes) that share a limit does. It has no clock,
// no store and no goroutine: package share has them and calls package node. Package share also
// states the law that all nodes keep together: no window of the server has more than the limit. In
// names and arguments of package node, p is an instant of the node's own clock. All other instants
// are of the ledger's time, which is the store's clock plus a correction.
//
// # Files
//
//	node.go         Node, a limit.Limiter: sends from its grants; which names, weights, parts are
//	                valid; Fresh: whether a grant still holds
//	turn.go         one transaction at the store: Begin, Read, End; until when grants hold; a
//	                damaged state
//	blob.go         the bytes in the store: nodes and their grants; other versions of them
//	divide.go       how much each process gets by weight and demand; when its next turn is
//	newcomers.go    what stays free, so that a new process need not wait
//	left_free.go    what some requests leave free for others
//	places.go       a bound on requests in flight: places, who gives some up, for how long others
//	                leave a silent node its places
//	place_parts.go  how many places are a node's part
//	place_limit.go  the limiter of a turn for places
//	granted.go      amounts that are granted and not used yet
//	store_clock.go  what time it is at the store; a clock that was set
//	may_hold.go     the most that a process may hold, announced before it takes it
//	store_lives.go  finds that the store went back to an older state
//	overdue.go      waits for processes that may know that the store went back
//	recall.go       rebuilds the state that the store lost
//	gather.go       after the rebuild, waits for reports of the other processes
//	quiet.go        why nothing is granted for a while: after a loss, at a new limit
//	split.go        the store is away: each process sends a part of the limit by itself
package node
