// Package share enforces one exact limit across many processes and machines. Together they keep to
// the limit as one process would. What one process leaves unused, the others may use.
//
// Package share is for a quota that only your own processes use. Package fairshare is for a quota
// that strangers use, too. If only one process uses the quota, a paceline.Gate is enough.
// docs/machines.md compares the three.
//
//	store, err := sqlite.Open("limits.db") // share/sqlite, share/postgres or share/redis
//	member, err := share.Limiter(store, "openai:gpt-4o", func() limit.Limiter { return limit.MustRolling(500, time.Minute) })
//	defer member.Close(ctx)
//	gate := paceline.NewGate(member)
//
// # How
//
// A node is one process that shares the limit. The store is a database that holds the state of the
// limiter. A grant is the permission for one node to send a cost from a certain instant on. A turn
// is one read and one write of the state by one node; turns come one after the other. In a turn a
// node:
//
//  1. reads the state and the store's clock;
//  2. makes from the state a limiter of package limit, the same that every other node would make;
//  3. admits, in that limiter, all requests that nodes have grants for or have in flight;
//  4. settles the requests of this node whose answers have come since its last turn;
//  5. asks that limiter which grants this node may have next;
//  6. writes the state back. If another node wrote since the read, the turn begins again.
//
// No node is a leader. A node holds no lock in the store while it computes. The store only keeps
// the state, and computes nothing.
//
// # The law
//
// The law is that no window of the server has more than the limit. Its proof has these symbols, for
// a request i that is granted in a turn:
//
//   - t is the instant from which the limiter allows the grant to go.
//   - s is the instant at which the node sends it: s ≥ t.
//   - a is the instant at which it arrives at the server: a ≥ s.
//   - u is the latest instant at which it can have arrived: u ≥ a. A later turn reports u.
//   - W⁺ is the window, and the limiter's margin.
//
// All instants are in the ledger's time, which is defined below. A request counts in full from the
// turn that grants it until W⁺ has passed after u.
//
// No window overflows. Take the requests that arrive in one window. Turns come one after the other,
// so one of these requests was granted last: call it m. At the turn of m, each other request i had
// been granted already. If i was still open, it was counted. If i was settled, it was counted
// unless u_i + W⁺ ≤ t_m. But then a_i ≤ u_i ≤ t_m − W⁺ ≤ s_m − W⁺ ≤ a_m − W⁺. So i and m would not
// be in one window. So all other requests were counted at the turn of m. The limiter's Ready kept
// their sum with m within the limit.
//
// This is the argument of limit.Rolling, with "granted last" in place of "sent last". It holds for
// requests in any order, on any path and from any sender. It needs four properties of the nodes:
//
//  1. u is not early. In a turn, a node reports how long ago an answer came. It measures this time
//     up to the beginning of a call to the store, or an earlier instant. It measures by its own
//     clock that nobody can set, never by its wall clock.
//  2. s is not early. Each reading of the store's clock tells a node the ledger's time to within
//     one round trip to the store. The node assumes the earliest possible ledger time, and sends
//     when that is t. The uncertainty grows by one ten-thousandth of the time since the reading.
//  3. A lapsed grant cannot be sent. The grants of a node end 2 s (TTL) after the beginning of its
//     last turn, on its own clock. Fresh checks this just before a request is written. The other
//     nodes give up the grants of a missing node 5 s (Late) after that end. They count these
//     grants as arriving then. If the node returns before that, it finds its grants unchanged.
//  4. A turn of unknown outcome is harmless. In each turn a node reports all grants that it holds,
//     not only the changes. So if the answer of a turn was lost, the grants of that turn go back
//     at the next turn. An answer of the server keeps the number of the turn that reported it
//     first. So if that turn was written after all, the answer is not reported again. A write that
//     comes late or twice fails.
//
// The ledger's time is the store's clock plus a shift, which is stored with the limiter. Somebody
// may set the store's clock. So each node compares each reading with its own clock. The first node
// that notices a jump corrects the shift, so that the ledger's time does not run ahead. That node
// also reports how far the ledger's time may be behind. A new node sends nothing until the turn of
// another node confirms the clock, or until no other node is there.
//
// A store may lose its state, for example when a Redis without a disk restarts. Then the store
// shows another incarnation: an identifier that stays the same only while no write can be lost. The
// first node that notices this restores the state, if its own last turn was less than 2.6 s before.
// That node knows the most that each node may have in use. The reason is a rule: before a node
// holds an amount, it reports the amount, and waits until all present nodes have seen the report.
// All these amounts count as open until each node reports its real grants. All of the limit that
// was free counts as sent.
//
// A store may also go back in time: somebody restores a snapshot or a backup, or an old server
// answers again. Then the state is lost as well, but the incarnation may be the same. The nodes
// notice the loss all the same. Each loss begins a new life of the state, and each life has a name.
// Each node knows the number of the turn of its last write, and the names of the lives. So it
// recognizes a state that is older than what it knows.
//
// If no node knows the state, no request is granted until no earlier grant can count: for TTL +
// Late and a window. The same holds after somebody removed a limit. With a store whose clock is
// Steady, which means that nobody can set it, this happens in two cases only: all nodes have ended,
// or the file was replaced.
//
// # What is trusted
//
//   - After a node has noticed a loss of the state, no node takes a turn at the old state. After a
//     failover of the database, the old server answers no node.
//   - After a store went back in time, the first node to take a turn has read the store since the
//     copy was made. Otherwise other nodes notice at their next turn: after 250 ms if they have
//     demand, and after 1 s if not. A node that was not there lately waits that long for the nodes
//     that the copy names.
//   - Nobody sets the store's clock forward while no node is there.
//   - A change of that clock by less than the quickest round trip to the store does no harm. The
//     limiter's Margin covers a change of a millisecond.
//   - No process is stopped for longer than Late between the check by Fresh and the kernel's write.
//   - If a node ends, the server counts its requests within Late of that end. Package limit trusts
//     the same.
//   - A Calendar is as right as the store's clock was when the first node came.
//
// These limiters can be shared: Rolling, Calendar, Bucket without Alone, Weighted and Cooldown. An
// All, a Named and a Fitted of them can be shared, too. These cannot: Concurrency, Spacing,
// Sequence, Anchored, Produced, and limiters with a LearnLead or a OneWayMax. They must know each
// single request, and the state in the store has only sums.
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
// Package internal/core/node makes the decisions of a node. It has no clock, and calls no store.
package share
