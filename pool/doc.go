// Package pool sends requests with several API keys. The package is for work with priorities,
// deadlines, retries and more than one key. Each request waits in a queue in memory, and is sent
// with a key whose limits have room for the request. A failed request is sent again if another
// attempt may succeed, up to 5 attempts by default. At any time, each request is in exactly one
// known state, such as waiting, in flight, done or dead (failed for good). So none is lost while
// the process runs.
//
// Three cases need no Pool. Goroutines that only wait for a limit use a paceline.Gate. HTTP clients
// use package transport. For requests in files, use the command `paceline run`: it contains a Pool,
// and also writes a journal, from which it continues after a crash.
//
// A [Config] describes a Pool: its keys, each a [Key], and your function Send. The Pool calls Send
// once for each [Attempt]. Send sends the request and returns an [Answer], which package
// provider/classify can make from an http.Response. [Pool.Submit] adds a [Request] to the queue,
// and [Pool.Run] sends the requests of the queue. After [Pool.Close], the Pool takes no more
// requests, and Run returns when every request has ended. Run returns sooner, with an error, if its
// context ends or all keys are out of use, for example.
//
//	p, err := pool.New(pool.Config{
//		Keys: []pool.Key{{Name: "mine", Limiter: limit.MustRolling(20, time.Second)}},
//		Send: func(ctx context.Context, a pool.Attempt) pool.Answer {
//			if err := send(ctx, a.Request.ID); err != nil {
//				return pool.Answer{Outcome: limit.Outcome{Result: limit.Failed}, Reason: err.Error()}
//			}
//			return pool.Answer{Outcome: limit.Outcome{Result: limit.Accepted}}
//		},
//		Ended: func(e pool.Ended) { fmt.Println(e.Request.ID, e.State, e.Reason) },
//	})
//	err = p.Submit(ctx, pool.Request{ID: "17", Cost: limit.One, TTL: time.Minute})
//	p.Close() // no more will come
//	err = p.Run(ctx)
//
// # Files and packages
//
//	names.go          the names of packages queue, dispatch and backoff that users of a Pool need
//	pool_config.go    Config and its checks; New
//	pool.go           Run, Close, Drain; when Run ends or sends nothing more; the one timer
//	submit.go         Submit, TrySubmit: the wait for room in the queue, also while Ended is slow
//	attempts.go       one attempt in a goroutine: Send, its Answer, a panic in it
//	report.go         calls Ended, Outage, Slow, Learned, one at a time
//	shared_limits.go  limits that several keys have together; room that comes without an answer
//	pool_snapshot.go  Snapshot and Stats: keys, queue, limits, waits and counts
//	backoff           the delay after a failure
//
// Two packages of internal/core make the decisions of a Pool, and have no clock. Package queue
// orders the requests. Package dispatch chooses a request and a key. Package pool has an alias for
// each of their types that you need, such as pool.Request, so you import package pool alone. These
// commands show the fields of such types:
//
//	go doc github.com/paceline-go/paceline/internal/core/queue.Request
//	go doc github.com/paceline-go/paceline/internal/core/dispatch.Key
package pool
