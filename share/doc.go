// Package share enforces one exact limit across many processes and machines. Together they keep to
// the limit as one process would. One process may use the part that another leaves unused.
//
// It is for your own clients that share a quota. Package fairshare shares a quota with strangers.
// One process needs only a paceline.Gate. docs/machines.md compares the three.
//
//	store, err := sqlite.Open("limits.db") // share/sqlite, share/postgres or share/redis
//	member, err := share.Limiter(store, "openai:gpt-4o", func() limit.Keeper { return limit.MustRolling(500, time.Minute) })
//	defer member.Close(ctx)
//	gate := paceline.NewGate(member)
//
// # How
//
// A node is one process that shares the limit. The store holds the limiter's state, and nodes take
// turns at it. In a turn a node:
//
//  1. reads the state and the store's clock;
//  2. makes the same limiter of package limit from it;
//  3. admits the requests that every node holds;
//  4. settles the answers that this node reports;
//  5. asks for the grants that this node may have next;
//  6. puts the state back. If another node put since the read, the turn begins again.
//
// There is no leader. No lock is held while a node computes. The store does no arithmetic.
//
// # The law
//
// Let u be the upper bound of a unit's arrival, which a later turn reports. A unit counts in full
// from the turn that grants it until its window has passed after u. Let t be the instant at which
// the limiter allows a grant to go. The node sends the grant at s with s ≥ t. All instants are in
// the ledger's time.
//
// No window overflows, since turns are in one order. Take the requests that arrive in one window.
// Let m be the request among them that was granted last. At the turn of m each other request i had
// been granted. So it was open, or settled with u_i ≥ a_i, where a_i is its arrival. If u_i + W⁺ ≤
// t_m, then a_i ≤ u_i ≤ t_m − W⁺ ≤ s_m − W⁺ ≤ a_m − W⁺. Such a request is not in one window with m.
// So all the others were counted, and Ready bounded their sum.
//
// It is the argument of limit.Rolling with "sent last" replaced by "granted last". The order, the
// path and the sender of the requests do not occur in it. It needs four properties of the nodes:
//
//  1. u is not early. A node reports how long ago an answer came, counted from the beginning of a
//     call to the store at the latest. It measures by its own clock, which nobody can set, never by
//     its wall clock.
//  2. s is not early. From each reading a node knows the ledger's time to within one round trip to
//     the store. It sends when the earliest possible ledger time is t. The uncertainty grows by one
//     in ten thousand of the time since the reading.
//  3. A grant that was given up cannot be sent. Grants end 2 s (TTL) after the beginning of the
//     last turn that was put, on the node's own clock. Fresh checks this just before the write,
//     also where other nodes gave this node up meanwhile. They give it up 5 s (Late) after that
//     end, and count all that it held as arriving then. A node that returns before that finds its
//     grants unchanged.
//  4. A turn of unknown outcome is harmless. A node reports what it holds, not what has changed. So
//     the grants of a turn whose answer was lost go back by themselves. Answers carry the number of
//     the turn that reported them first. A late or doubled put fails.
//
// The ledger's time is the store's clock plus a shift that is kept with the limiter. Each node
// checks each reading against its own clock. If the store's clock was set, the first node to notice
// corrects the shift so that the ledger does not run ahead. That node also reports how far the
// ledger may be behind. A new node sends nothing until another node's turn vouches for the clock,
// or until no other node is there.
//
// A store shows by its incarnation that it may have lost its state. The first node to come then
// puts back the state that it had, if its own last turn was less than 2.6 s before. That node knows
// the most that can count. Each node reports how much it may hold before it holds it. It holds no
// more until all present nodes have seen that report. So all of that is open until each node
// reports what it does hold. All of the limit that was free counts as sent.
//
// A store that goes back in time has lost its state as well: a snapshot or a backup is restored, or
// an old server answers again. The nodes find out, whatever the incarnation. Each knows the turn of
// its last put and the lives of the book. A life begins when the state was lost.
//
// If no node knows the state, nothing is granted until no earlier grant counts: TTL + Late and a
// window. The same holds where a limit is removed. A store whose clock is Steady loses its state
// only when all of its nodes end, or when its file is replaced: then nothing is granted for that
// time.
//
// # What is trusted
//
//   - Once a node has found that a store lost its state, no node takes a turn at the old state.
//     After a failover the old server answers nobody.
//   - After a store went back in time, a node that put nothing since that time is not the first to
//     come. Others find out at their next turn, 250 ms later where there is demand.
//   - Nobody sets the store's clock forward while no node is there.
//   - A change of that clock which is smaller than the quickest round trip to the store does no
//     harm (the limiter's Margin covers a millisecond).
//   - No process is stopped for longer than Late between Fresh and the kernel's write.
//   - A request is counted within Late of a node's end, as everywhere in package limit.
//   - A Calendar is as right as the store's clock was when the first node came.
//
// Rolling, Calendar, Bucket without Alone, Weighted and Cooldown can be shared, and All, Named and
// Fitted of them. Concurrency, Spacing, Sequence, Anchored, Produced, a LearnLead and a OneWayMax
// cannot. They need to know of each request, not only of sums.
//
// # Files
//
//	member.go    Config, Member, and the goroutine that takes turns
//	news.go      events of a Member: for its Logger, and for its driver
//	fallback.go  behaviour while the store cannot be reached
//	store.go     Store and Reading, and Retry for stores whose turns lose races
//	lister.go    Lister: a Store that lists and removes limits
//	clock.go     the node's own clock, which goes on while the machine sleeps
//
// Package internal/core/node decides; it has no clock and no store.
package share
