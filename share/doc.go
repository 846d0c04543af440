// Package share enforces one exact limit across many processes and machines. Together the processes
// send no more than the limit allows one process. (While the store is away, processes with the
// option Split may send more.) If one process sends little, the other processes may use what it
// leaves of the limit.
//
// Package share is for a quota that only your own processes use. Package fairshare is for a quota
// that other people's programs use, too. If only one process uses the quota, a paceline.Gate is
// enough. docs/machines.md compares these three: share, fairshare and a Gate.
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
// is one read and one write of the state by one node, and turns come one after the other. In each
// turn a node takes these steps:
//  1. It reads the state and the store's clock.
//  2. It makes from the state a limiter of package limit, the same that every other node would
//     make.
//  3. In that limiter, it admits all requests of all nodes that are granted or in flight.
//  4. It settles those of its own requests whose answers have come since its last turn.
//  5. It asks that limiter which grants it may have next.
//  6. It writes the state back. If another node wrote since the read, the turn begins again with
//     the first step.
//
// No node is a leader among the nodes that share a limit. While a node computes in its turn, it
// holds no lock in the store. The store only keeps the state, and computes nothing.
//
// # The law
//
// The law of package share is that no window of the server has more than the limit. The proof of
// the law uses these symbols, for a request i that is granted in a turn:
//   - t is the instant from which the limiter allows the grant to go.
//   - s is the instant at which the node sends the request: s ≥ t.
//   - a is the instant at which the request arrives at the server: a ≥ s.
//   - u is the latest instant at which the request can have arrived: u ≥ a. A later turn reports u.
//   - W⁺ is the length of the window plus the limiter's Margin, for example 1.2 ms for a window of
//     a second.
//
// All instants of the proof are in the ledger's time: the store's clock plus a correction. A
// request counts in full from the turn that grants it until W⁺ (the window plus the limiter's
// Margin) has passed after u. The instant u is the latest at which the request can have arrived.
//
// The proof that no window has more than the limit uses the symbols t, s, a, u and W⁺ as defined
// above, with the request as index. For example, t_m is the t of request m. Take the requests that
// arrive in one window. Turns come one after the other, so one of these requests was granted last:
// call it m. At the turn that granted m, each other request i had been granted already. If i was
// not yet settled, the limiter counted i. If i was settled, the limiter counted i unless u_i + W⁺ ≤
// t_m: the window after the latest arrival of i was over before m might go. But then a_i ≤ u_i ≤
// t_m − W⁺ ≤ s_m − W⁺ ≤ a_m − W⁺. So i and m would not arrive in one window. So at the turn of m
// all other requests of the window were counted, and the limiter's Ready kept their sum with m
// within the limit.
//
// The proof that no window has more than the limit is the proof for limit.Rolling, with "granted
// last" in place of "sent last". It holds for requests in any order, on any path and from any
// sender. The proof needs four properties of the nodes:
//  1. u, the latest possible arrival, is not early. In a turn, a node reports how long ago an
//     answer came. It measures this time up to the beginning of a call to the store, or an earlier
//     instant. It measures by its own clock that nobody can set, never by its wall clock.
//  2. s, the instant of the send, is not early. Each reading of the store's clock tells a node the
//     ledger's time to within one round trip to the store. The node assumes the earliest possible
//     ledger time, and sends only when that is t or later. The uncertainty grows by one
//     ten-thousandth of the time since the reading.
//  3. A lapsed grant cannot be sent. The grants of a node end 2 s (TTL) after the beginning of its
//     last turn, on its own clock. The method Fresh checks this just before a request is written.
//     The other nodes give up the grants of a missing node 5 s (Late) after that end. They count
//     these grants as requests that arrived then. If the node returns before that, it finds its
//     grants unchanged.
//  4. A turn of unknown outcome is harmless. In each turn a node reports all grants that it holds,
//     not only the changes. So if the answer of the store to a turn was lost, the grants of that
//     turn go back at the next turn. For each answer of the server, the node keeps the number of
//     the turn that first reported it. So if that turn was written after all, the answer is not
//     reported again. A write that comes late or twice fails.
//
// The ledger's time is the store's clock plus a shift, which is stored with the limiter's state.
// Somebody may set the store's clock. So each node compares each reading with its own clock. The
// first node that notices a jump corrects the shift, so that the ledger's time does not run ahead.
// That node also reports how far the ledger's time may be behind. A new node does not know whether
// the clock was set. So if the state names other nodes, it sends nothing until one of their turns
// confirms the clock, or until none of them has taken a turn for 3 s. If the store's clock is
// Steady (nobody can set it), a new node does not wait for this.
//
// A store may lose its state, for example when a Redis without a disk restarts. Then the store
// shows another incarnation: an identifier that stays the same only while no write can be lost. The
// first node that notices a new incarnation restores the state, if its own last turn was less than
// 2.6 s before. It writes its own copy of the state, as of that last turn. With a Steady clock,
// nodes restore nothing, and wait as described below.
//
// The copy by which a node restores a lost state does not show what the other nodes did after that
// node's last turn. Two bounds replace this knowledge:
//   - What nodes hold: their unsent grants, and their requests that are not settled. A rule bounds
//     this amount: before a node holds an amount, it reports the amount, and waits until all
//     present nodes have seen the report. So the copy has the most that each node may hold. Nodes
//     that came later may together hold only a small part: one 32nd of the limit or, if that is
//     more, 4 requests (of a limit below 16, a quarter). All these amounts count as granted and not
//     settled. This ends for each node when the node reports what it really holds. If the node does
//     not come, its grants lapse 2 s (TTL) after the restore. The other nodes give them up 5 s
//     (Late) later, as those of any missing node.
//   - What other nodes reported as arrived after that turn. These reports are not in the copy. They
//     cannot be for more than what was free of the limit. So all of the free part counts as sent at
//     the restore, unless the node knows that it was less. For example, the reports of the other
//     nodes may show this.
//
// A store may also go back in time: somebody restores a snapshot or a backup, or an old server of
// the store answers again. Then the latest state is lost, too, although the incarnation (the
// store's identifier) may be the same. Each write of the state has a number. Each node remembers
// the highest number that it wrote or read. So a node that reads a lower number knows that the
// state is an older one. It restores the state as after a loss, and gives the state a new name,
// called its life. Numbers alone would not do: they could reach the old ones again. (With a Steady
// clock, the node restores nothing, and waits as after a loss.) A node that has read nothing since
// the copy was made cannot notice that the state is old.
//
// If a store lost its state and no node can restore it, no request is granted until no earlier
// grant can count any more. This takes 2 s (TTL) plus 5 s (Late) plus a window. The same holds
// after somebody removed a limit, and for a new limit, unless Begin has made it. If the store's
// clock is Steady, which means that nobody can set it, a loss of the state is always followed by
// this wait. With share/sqlite, for example, this happens after each start of the machine, and
// after the file was replaced.
//
// # What is trusted
//
// The law (no window has more than the limit) holds if these assumptions hold:
//   - After a node has noticed a loss of the state, no node takes a turn at the old state. After a
//     failover of the database, the old server answers no node.
//   - After a store went back in time to an earlier copy, the first node to take a turn has read
//     the store since the copy was made. Otherwise other nodes notice only at their next turn:
//     after 250 ms if they have demand, and after 1 s if not. So a node that took no turn lately
//     first waits about 1 s for turns of the nodes that the copy names.
//   - Nobody sets the store's clock forward while no node shares the limit.
//   - No node has Split as its Config.Fallback. With it, the law also needs the conditions in the
//     comment of Split.
//   - Nobody changes the store's clock by a small amount. Nodes notice a change only if it is
//     larger than the quickest round trip to the store. A change of up to a millisecond does no
//     harm, since the limiter's Margin covers it.
//   - No process is suspended (for example by SIGSTOP) for longer than 5 s (Late) between the check
//     by Fresh and the write of a request.
//   - If a node ends, the server counts its requests within 5 s (Late) of that end. Package limit
//     relies on the same.
//   - The intervals of a Calendar are as right as the store's clock was when the first node came.
//
// These limiters of package limit can be shared by nodes: Rolling, Calendar, Bucket without Alone,
// Weighted and Cooldown. An All, a Named, a Fitted and a Headroom of them can be shared. So can a
// Concurrency, by a Member of its own. Other limiters cannot be shared, for example Spacing, Sequence,
// Anchored and Produced, nor those with a LearnLead or a OneWayMax. These must know each single
// request, and the state in the store has only sums.
//
// # Requests at once
//
// A limit.Concurrency of N is divided into places. A node has places as grants, and a request that
// ended leaves its place to its node. The law is that all nodes together have at most N requests in
// flight. It holds since the store names all places, and a place is granted only if less than N are
// named. In place of properties 3 and 4 above:
//  1. A node without turns uses its places for a minute after the beginning of its last turn. The
//     other nodes give it up ten minutes after that. On Linux they do so two seconds after the last
//     turn, if its process was on their machine and has ended.
//  2. A place of a request of unknown outcome is kept for 5 s (Late) more.
//
// Two things are trusted in addition. No request of a node that cannot reach the store lasts for more
// than ten minutes. And the store does not lose its state while a node cannot reach it for 7 s.
//
// # Files
//
//	member.go    Config, Member: the goroutine that takes turns at the store, its timeouts and
//	              its own clock, which internal/boottime has
//	begin.go     Begin: a new limit at which nothing was sent yet
//	news.go      events of a Member: for its Logger, and for the Gate that owns it
//	fallback.go  limits while the store cannot be reached
//	store.go     Store and Reading; Retry, for stores whose turns lose races
//	lister.go    Lister: a Store that lists and removes limits
//
// Package internal/core/node makes the decisions of a node: it has no clock, and calls no store.
// Package share reads the clock, calls the store, and runs the goroutine of a Member.
package share
