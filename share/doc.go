// Package share enforces one exact limit across many processes and machines. Together they keep to
// the limit as one process would. A process may use the part that another leaves unused.
//
// The package is for your own clients that share a quota. Package fairshare shares a quota with
// strangers. One process needs only a paceline.Gate. docs/machines.md compares the three.
//
//	store, err := sqlite.Open("limits.db") // share/sqlite, share/postgres or share/redis
//	member, err := share.Limiter(store, "openai:gpt-4o", func() limit.Limiter { return limit.MustRolling(500, time.Minute) })
//	defer member.Close(ctx)
//	gate := paceline.NewGate(member)
//
// # How
//
// A node is one process that shares the limit. The store is a database with the limiter's state,
// and nodes take turns at the store. A grant is a permission for one node to send a cost from a
// certain instant on. In a turn a node:
//
//  1. reads the state and the store's clock;
//  2. makes the same limiter of package limit from it;
//  3. admits the requests that every node holds;
//  4. settles the answers that this node reports;
//  5. asks for the grants that this node may have next;
//  6. writes the state back. If another node wrote since the read, the turn begins again.
//
// There is no leader. No lock is held while a node computes. The store does no arithmetic.
//
// # The law
//
// These are the symbols. A request i is granted by a turn.
//
//   - t is the instant from which the limiter allows the grant to go.
//   - s is the instant at which the node sends it: s ≥ t.
//   - a is the instant at which it arrives at the server: a ≥ s.
//   - u is the latest instant at which it can have arrived: u ≥ a. A later turn reports u.
//   - W⁺ is the window, and the limiter's margin.
//
// All instants are in the ledger's time (below). A request counts in full from the turn that grants
// it until W⁺ has passed after u.
//
// No window overflows. Take the requests that arrive in one window. Turns are in one order, so one
// of these requests was granted last: call it m. At the turn of m, each other request i had been
// granted. If i was still open, it was counted. If i was settled, it was counted unless u_i + W⁺ ≤
// t_m. But then a_i ≤ u_i ≤ t_m − W⁺ ≤ s_m − W⁺ ≤ a_m − W⁺. So i would not be in one window with m.
// So all the others were counted at the turn of m, and Ready bounded their sum.
//
// This is the argument of limit.Rolling, with "granted last" in place of "sent last". The order,
// the path and the sender of the requests have no part in it. It needs four properties of the
// nodes:
//
//  1. u is not early. A node reports how long ago an answer came. It counts from the beginning of a
//     call to the store at the latest. It measures by its own clock, which nobody can set, never by
//     its wall clock.
//  2. s is not early. From each reading a node knows the ledger's time to within one round trip to
//     the store. It sends at the instant at which the earliest possible ledger time is t. The
//     uncertainty grows by one in ten thousand of the time since the reading.
//  3. A lapsed grant cannot be sent. Grants end 2 s (TTL) after the beginning of the node's last
//     turn, on the node's own clock. Fresh checks this just before the write of a request. Other
//     nodes give up a missing node's grants 5 s (Late) after that end, and count them as arriving
//     then. A node that returns before that finds its grants unchanged.
//  4. A turn of unknown outcome is harmless. A node reports all that it holds, not the changes. So
//     the grants of a turn whose answer was lost go back by themselves. Answers carry the number of
//     the turn that reported them first. A late or doubled write fails.
//
// The ledger's time is the store's clock plus a shift, which is kept with the limiter. Each node
// checks each reading against its own clock. Perhaps somebody set the store's clock. The first node
// to notice corrects the shift, so that the ledger's time does not run ahead. That node also
// reports how far the ledger's time may be behind. A new node sends nothing until another node's
// turn confirms the clock, or until no other node is there.
//
// A store may lose its state. Then the store has a new incarnation. The first node to come restores
// the state, if its own last turn was less than 2.6 s before. That node knows the largest possible
// amount in use. The reason: before a node holds an amount, it reports the amount, and waits until
// all present nodes have seen the report. All these amounts are open until each node reports its
// real grants. All of the limit that was free counts as sent.
//
// A store may also go back in time: a snapshot or a backup is restored, or an old server answers
// again. Then the state is lost as well, but the incarnation may be the same. The nodes notice the
// loss all the same. A life of the state begins at each loss, and has a name. Each node knows the
// turn of its last write, and the names of the lives.
//
// If no node knows the state, nothing is granted until no earlier grant counts: TTL + Late and a
// window. The same holds after the removal of a limit. If the store's clock is Steady, there are
// only two such losses: the end of all nodes, and a replaced file.
//
// # What is trusted
//
//   - Once a node has noticed a loss of the state, no node takes a turn at the old state. After a
//     failover the old server answers nobody.
//   - After a store went back in time, the first node to come has read it since the copy was made.
//     Otherwise other nodes notice at their next turn: 250 ms later if they have demand, and 1 s if
//     not. A node that was not there lately waits for the nodes of the copy that long.
//   - Nobody sets the store's clock forward while no node is there.
//   - A small change of that clock, less than the quickest round trip to the store, does no harm.
//     The limiter's Margin covers a millisecond.
//   - No process is stopped for longer than Late between Fresh and the kernel's write.
//   - The server counts a request within Late of the end of the node that sent it. Package limit
//     trusts the same.
//   - A Calendar is as right as the store's clock was when the first node came.
//
// These limiters can be shared: Rolling, Calendar, Bucket without Alone, Weighted and Cooldown, and
// All, Named and Fitted of them. These cannot: Concurrency, Spacing, Sequence, Anchored, Produced,
// a LearnLead and a OneWayMax. They need to know of each request, not only of sums.
//
// # Files
//
//	member.go    Config, Member, and the goroutine that takes turns
//	begin.go     Begin: a limit at which nothing was sent
//	news.go      events of a Member: for its Logger, and for its driver
//	fallback.go  behaviour while the store cannot be reached
//	store.go     Store and Reading, and Retry for stores whose turns lose races
//	lister.go    Lister: a Store that lists and removes limits
//
// Package internal/core/node decides; it has no clock and no store.
package share
