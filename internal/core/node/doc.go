// Package node decides what one of the nodes (processes) that share a limit does. It has no clock,
// no store and no goroutine: package share has them and calls package node. Package share also
// states the law that all nodes keep together: no window of the server has more than the limit. In
// names and arguments of package node, p is an instant of the node's own clock. All other instants
// are of the ledger's time, which is the store's clock plus a correction.
//
// # Files
//
//	node.go         Node, a limit.Limiter on its own clock: Ready, Admit, Settle, Fresh
//	turn.go         a turn, which is one transaction of the node at the store: Begin, Read, End
//	blob.go         Book and Entry: the nodes and their grants, as bytes that the store keeps
//	divide.go       how many grants a node takes in its turn, and when its next turn is
//	newcomers.go    how much stays free for new nodes
//	granted.go      grants that are not used yet
//	bounds.go       what a node knows of the ledger's time: bounds on it
//	may_hold.go     the most that each node may hold, announced beforehand
//	store_lives.go  finds that the store went back to an earlier state
//	overdue.go      waits for nodes that may know that the store went back
//	recall.go       rebuilds the state that the store lost
//	gather.go       waits for the other nodes' reports after the rebuild
//	quiet.go        why nothing is granted for a while
//	split.go        a part of the limit for each node while the store is away
package node
