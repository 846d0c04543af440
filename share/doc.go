// Package share has one exact limit for many processes and machines: what they send together keeps to it as if one process sent it all,
// and what one does not use is the others'. For clients of your own that share a quota; with strangers use package fairshare, and for one
// process paceline.Gate is enough. docs/machines.md says when to take which.
//
//	store, err := sqlite.Open("limits.db") // share/sqlite, share/postgres or share/redis
//	member, err := share.Limiter(store, "openai:gpt-4o", func() limit.Keeper { return limit.MustRolling(500, time.Minute) })
//	defer member.Close(ctx)
//	gate := paceline.NewGate(member)
//
// # How
//
// The store holds the limiter itself, and nodes take turns at it: read what it remembers and the store's clock, make the very same limiter
// of package limit, admit what every node holds, settle what this one has to tell, ask for what it may have next, and put it back, unless
// somebody else put meanwhile: then again. There is no leader, no lock is held while a node thinks, and no arithmetic is the store's.
//
// # The law
//
// A unit counts in full from the turn that grants it until its window has passed after u, the upper bound of its arrival, which a later
// turn tells. A grant has the instant t at which the limiter said that it may go, and is sent at s with s ≥ t, all in the ledger's time.
//
// No window overflows: turns are in one order. Of the requests that arrive in one window let m be the one that was granted last. At its
// turn each other was granted: it was open, or settled with u_i ≥ a_i. If u_i + W⁺ ≤ t_m, then a_i ≤ u_i ≤ t_m − W⁺ ≤ s_m − W⁺ ≤ a_m − W⁺,
// which is not in the window with m. So all the others were counted, and Ready bounded their sum. It is the argument of limit.Rolling with
// "sent last" replaced by "granted last". In what order requests are sent, over which paths, and by whom does not occur in it. It needs four
// things of the nodes:
//
//  1. u is not early. A node says how long ago an answer came by its own clock that nobody sets, counted from the beginning of a call to the
//     store at the latest. It never uses its wall clock.
//  2. s is not early. From each reading a node knows the ledger's time to within a call's way there and back; it sends when the earliest
//     that it can be is t. What is known grows wider by one in ten thousand of the time since.
//  3. What is given up cannot be sent. Grants end 2 s (TTL) after the beginning of the last turn that was put, on the node's own clock, and
//     Fresh says so just before the write, also where others gave the node up meanwhile. They do so 5 s (Late) after that end, and count
//     all that it held as arriving then. Who comes back before finds everything as it was.
//  4. A turn of unknown outcome is harmless. A node says what it holds, not what has changed, so grants of a turn whose answer was lost go
//     back by themselves; and answers carry the number of the turn in which they were told first. A late or doubled put fails.
//
// The ledger's time is the store's clock and a shift that is kept with the limiter. Each node checks each reading against what it knows. If
// the store's clock was set, the first to notice corrects the shift so that the ledger does not run ahead, and says by how much it may be
// behind. A newcomer sends nothing until another's turn vouches for the clock, or nobody is there.
//
// If the store says by its incarnation that it may have forgotten, whoever comes first says what it had, if its own last turn was less than 2.6 s
// before. What counts at most it knows, as each node says how much it may hold before it does, and holds no more until all who are there have
// seen that: so all of that is open until each says what it does hold, and all that was free of the limit counts as sent. If nobody who comes knows,
// nothing is granted until all that was granted before no longer counts: TTL + Late and a window. So it is where a limit is removed. A store
// whose clock is Steady is one that forgets only when all of its nodes end.
//
// # What is trusted
//
// That nobody takes a turn at a store that has forgotten once another has found it so: after a failover the old server answers nobody. That nobody sets the store's clock forward while no node is there, and that a set which is smaller than the quickest round trip to the
// store does no harm (Margin covers a millisecond). That no process is stopped for longer than Late between Fresh and the kernel's write. That
// a request is counted within Late of a node's end, as everywhere in package limit. A Calendar is as right as the store's clock was when the
// first node came.
//
// Rolling, Calendar, Bucket without Alone, Weighted and Cooldown can be shared, and All, Named and Fitted of them. Concurrency, Spacing,
// Sequence, Anchored, Produced, a LearnLead and a OneWayMax cannot: they need to know of each request, not only of sums.
package share
