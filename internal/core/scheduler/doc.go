// Package scheduler decides which waiting ticket goes next, where several lanes share limits. A
// ticket is a cost that waits, for example that of one request. A lane is a line of tickets that
// wait for the same limits. A Gate, a Group, a Transport, a Pool and the simulator all use package
// scheduler. These are its main types:
//
//	Limit    a limit.Limiter, and the ways that wait at it
//	Way      a conjunction of Limits, narrowest first: admitted by all of them at once, or by none
//	Lane     tickets that may go the same ways, one after the other, in the order of their Place
//	Ticket   a cost that waits until it is granted or refused, or until its owner takes it back
//
// Within a lane, tickets go in the order of one number, their Place: the instant of arrival less a
// head start. Between lanes that wait at one limit, Place decides, too. There are two exceptions.
// With the option Fill, a later ticket of a lane may go first if it does not delay the first one.
// At a fair limit (Sharing.Fair), start-time fair queueing gives each Class a share of the use in
// proportion to its weight. A Class is one lane, or several lanes that count as one.
//
// A scheduler asks limits about the first ticket of a lane only (with Fill, about some tickets
// behind the first, too). A way of a lane is a set of limits by which its tickets may go. Each way
// is parked (waits) at the one of its limits that will be ready last. When that limit changes, or
// is ready, the scheduler looks at the ways parked at the limit, in order. If the ticket of the
// first way is admitted, the scheduler looks at the next way. If the ticket has to wait for another
// limit of its way, the way is parked at that other limit instead. If the ticket has to wait for
// this limit, all ways behind it wait, too. So a lane with 40,000 waiting tickets causes no more
// questions to limits than a lane with one ticket. A limit without room holds up only tickets that
// need this limit.
//
// While a way of a lane is parked (waits) at one limit, later tickets of other lanes may take the
// room of the way's other limits. Then, when the scheduler looks at the first ticket of the lane,
// the ticket has to wait for another limit of its way. The field Ticket.stolen counts how often
// this happens, that is, how often the way is parked at another limit than before. At the 8th time,
// the first ticket claims all limits of this way. From then on, a later ticket goes at one of these
// limits only if its cost does not delay the ticket that claims. After 16 such times, no later
// ticket of another lane goes there first. So no ticket starves. There is one exception, for a lane
// that leaves a part of its limits free for other lanes (leave_free.go). If the ticket that claims
// belongs to such a lane, tickets of lanes that leave less free need not wait for it.
//
// The caller of a Scheduler calls Next after every call that may change something, such as Enter or
// Settle, and at the instant that Wake returns. Next returns one ticket that has been admitted or
// refused, and the caller repeats Next until it returns nil. All methods are arithmetic on a now
// that the caller supplies. A Scheduler owns no clock or lock and is not safe for concurrent use. A
// Ticket must stay at its address while it waits, since the Scheduler has pointers to it.
//
// # Files
//
//	scheduler.go   makes and retires Limits, Ways and Lanes; in which order tickets of a lane go
//	admit.go       Try, Enter, Next: goes now, later, or fails for its deadline; small ones
//	               overtake
//	costs.go       a ticket that costs something else by each way
//	records.go     memory and numbers of requests in flight
//	settle.go      an answer reaches each limit of the way; limits without decisions are skipped
//	park.go        at which limit the first of a lane waits; a big one claims room, not to starve
//	lane.go        the tickets of a lane in order: insert, remove, first, length
//	door.go        spare ways, such as targets, that open later or while others are down
//	keyed_heap.go  the heap of limits and of ways, and their orders
//	weights.go     whose turn it is at a fair limit: classes by weight, with their head starts
//	leave_free.go  parts of a limit that a lane leaves free for others
//	boost.go       how large the head start of a class is, by how busy the class was
//	spread.go      a bound of when a ticket goes, behind others that go by several ways
//	expect.go      the guess when a cost would go, behind all that wait
//	last_goes.go   the guess when the last ticket of a lane goes
package scheduler
