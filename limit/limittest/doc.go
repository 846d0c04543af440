// Package limittest tests a limit.Limiter against the laws that every limiter obeys. The package
// provides Laws, a function that a test calls, and a body for a fuzz test. Both are for those who
// write a Limiter of their own. To test a client, use package ratetest instead.
//
// In the laws below, t is an instant, c is a cost, and the driver is the code that calls the
// limiter. A change is a call of Admit, Settle, SetLimit or SetWindow. Some limiters have their
// state elsewhere, for example in a database. For these limiters an Update, which reads a new state
// from there (Spec.News), is a change, too.
//  1. Not before now: Ready(t, c) ≥ t. If the driver passes a now that is before that of an earlier
//     change, the limiter takes the now of that change instead. The limiter does so in every call
//     of Ready and in every change.
//  2. Time alone: without a change between t and t′, t ≤ t′, Ready(t′, c) = max(t′, Ready(t, c)).
//     With Spec.News, or if an open cost grows with its age (Spec.Lapses), Ready(t′, c) may also be
//     later.
//  3. Earliest: if t = Ready(now, c) is an instant after now, Ready(t−1, c) = t, and Admit at t
//     keeps the promise (law 9).
//  4. Dearer is later: c ≤ c′ in every unit implies Ready(t, c) ≤ Ready(t, c′).
//  5. No deadlock: Ready returns AfterSettle, which no passing of time ends, only while a request
//     is open: admitted and not yet settled. With Spec.News, Ready may also return AfterSettle
//     before an Update, and some Update ends this. Whether Ready returns Never depends on cost and
//     configuration alone.
//  6. Settle, open loop: let the actual cost be at most the admitted one, and let nothing in the
//     outcome ask the client to slow down. Then Settle makes no cost's Ready later.
//  7. Settle forgets the estimate: after Settle, the state depends on the actual cost and the
//     latest possible arrival of the request, and not on its admitted cost.
//  8. Closed loop: a limiter that learns from answers (Spec.ClosedLoop) obeys 1, 2, 5 and 7, and
//     this law in place of 3, 4 and 6. After a bounded number of Admits at one instant, the next
//     Ready is later than now, or AfterSettle.
//  9. Promise: the requests that arrive in one window together have no more admitted cost than the
//     limit.
//  10. The driver's duty: the driver calls Ready again at the same now right before every Admit.
//     After every Settle and Update, it calls Ready for the cost that is next in line.
//  11. A limit.Forecaster (which foresees Ready) is never surprised: after an Admit, Ready of a cost
//     is no later than ReadyAfter was for that cost before the Admit.
//  12. A limit.Forecaster is never too late: NotBefore of a cost is a lower bound. Let all requests
//     ahead go as early as they can, and let none cost less than was counted. Then the cost goes no
//     sooner than NotBefore, whatever the answers are.
//  13. A limit.Describer (which describes its limits) that counts open requests counts all of them.
//     Explain returns the same instant as Ready. If this instant is later than now, Explain names
//     the limit that the cost waits for.
//  14. A limit.Keeper (whose memory can be written) comes back unchanged. Restore its state in a new
//     limiter, and Admit all open requests there. Then every method of the new limiter answers as
//     that of the first one. A truncated state is refused. A damaged state never leads to a panic.
//  15. A limit.Describer reports the truth by AppendUsage. If requests went only when Ready, the
//     used part is within Allowed. Open costs are part of the used part. With no open cost, the
//     used part falls to zero by time alone. The total is the settled cost that counts. If Ready
//     depends on Used alone, exactly Allowed − Used may go at once. AppendUsage changes nothing.
//  16. Sent and Outcome belong to the driver: a limiter changes neither, and keeps no pointer to
//     them.
//  17. Leaving a part of the limit free delays a cost, and never forbids it. ReadyLeaving with a
//     free part of 0 returns the same as Ready, and with a larger part no earlier instant.
//     ReadyLeaving is Never only where Ready is Never, and AfterSettle only while a request is
//     open. At the instant of ReadyLeaving there is room for the cost and for the free part, or the
//     whole limit is free. After an Admit, ReadyLeaving is no later than was foreseen before.
//
// The tests that package limittest provides call a limiter as its owner would, and obey the
// driver's duty (law 10). They let every request arrive at an instant that the limiter cannot know,
// and check the other laws. Law 9 is checked if Spec.Promise is set.
//
// # Files
//
//	limittest.go     Spec, the programs, and laws 1 to 11 and 13
//	admit.go         Admit, for tests that drive a limiter themselves; law 16
//	law_forecast.go  law 12: Forecaster, Ready after one more Admit
//	law_restore.go   law 14: Keeper, a limiter that is written and read back
//	law_leaving.go   law 17: ReadyLeaving, which leaves a part free
//	gauge.go         law 15: AppendUsage, the usage of each limit
//	promise.go       promises of law 9: a rolling window, a bucket
//	wraps.go         Wraps: a limiter that is made of another one
package limittest
