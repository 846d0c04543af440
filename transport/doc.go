// Package transport provides Transport, an http.RoundTripper for any http.Client. A Transport keeps
// the client's requests within the limits of the servers that they go to.
//
//	rate := limit.MustRolling(500, time.Minute)
//	paced := transport.Must(transport.Config{Limiter: rate})
//	client := &http.Client{Transport: paced}
//
// A request to a Transport waits until all its limits have room for it, by default first come,
// first served, and is then sent. The Transport reads what the answer states about limits. The
// Transport sends a request again if the server refused the request for a limit, or cannot have
// processed it. An idempotent request, such as a GET, is also sent again after a failure that may
// pass, such as status 502. A request whose body cannot be read again (http.Request.GetBody is nil)
// is sent only once. The exception is a body that the Transport has read before the send, for
// example to count tokens. By default a request is sent up to 3 times, and a stated wait of more
// than 5 minutes ends the attempts. A request that cannot meet the deadline of its context fails at
// once, without waiting. The error contains the instant at which the request could have gone.
//
// The table lists the steps of one RoundTrip, in order: the name of the step, what the step does,
// and a type or package that it uses. If a request is sent again, the steps from acquire on are
// repeated. Acquire waits for all limits in which the request counts, for example those of one key
// and one model. The part of the server's quota in which a request counts is called its partition:
//
//	prepare     host, credential, model, route and client select the limits
//	acquire     one permit of all these limits, by one of the Keys if any    paceline.Group
//	send        the Base, with the key's credential, at most once per permit
//	judge       what the exchange proves, and whether to send again          package classify
//	settle      each limit learns the outcome and the server's statements
//
// In a Transport, requests wait in a paceline.Group. The requests of one partition (for example one
// key and one model) form one line, the lane. A way is one set of limits by which a request may go.
// If Config.Keys is set, a lane has a way for each account that owns some of the keys. If
// Config.Targets is set, too, a lane has a way for each target and account. A request goes by the
// way that lets it go first.
//
// The Transport measures the round trip of an attempt from the end of the write of the request to
// the header of the answer. Limiters, and Attempt.RTT, get this time.
//
// The caller of a Transport reads the unchanged body of the answer. The Transport itself reads the
// beginning of some bodies first, since a refusal may be in it. These are answers whose status may
// mean a refusal, and JSON answers; it reads 64 KiB at most. It also reads the first piece of a
// stream (of events, or of lines of JSON) that answers a POST whose body can be sent again.
//
// In two cases the Transport of package transport reads the whole body of an answer along with the
// caller. In the first, Config.Tokens is set, and the answer is a success (2xx) of a known language
// model API. In the second, the charge of the request says where an answer states its cost, as some
// GraphQL APIs do (provider.Charge.Answer). Then the Transport keeps the text of the body, up to
// Config.MaxBody (32 MiB by default). At the end of the body, the attempt is settled with the
// stated usage or cost. If the usage or cost cannot be read, the cost that was reserved before the
// send counts.
//
// If the body of such an answer is compressed with gzip, deflate, br or zstd, the Transport decodes
// a copy. All such decoders of the process together take 256 MiB of memory at most, not counting
// the kept text. A body that would need more is not decoded, so its reserved cost counts.
//
// The Transport adds nothing to a request but what you set in Config.Keys and Config.Targets, such
// as a credential or another host. After a redirect, an http.Client sends a new request through the
// Transport. If this request goes to another host, http.Client removes Authorization,
// Proxy-Authorization and Cookie. It does not remove a provider's own field that your code set,
// such as X-Api-Key, so the other host would get the key. To prevent this, set CheckRedirect of the
// http.Client. A key of Config.Keys does not go to the other host: such a request fails.
//
// Several clients may share a Transport. The function Config.Client names the client of each
// request. The clients that wait for a limit divide it among each other, by their weights. The
// function Config.MaxWait bounds the wait of a request. A request whose foreseen wait is longer
// fails at once, without waiting. With Config.MaxWait, a request that a limit refuses is sent again
// until this wait is over, however often, unless Config.Attempts is 1.
//
// With several targets, a target that answers 502 or 503 is passed over at once, while another is open.
// If a request that must not be sent twice, as a POST, is next to probe the target, a HEAD for the same
// URL goes first. The HEAD has the header of the request, but no body, and takes a permit like any request.
//
// A Transport is neither a cache nor a queue that stores requests. If a request must outlive the
// call that made it, use a pool.Pool. A Pool also has priorities, and keeps dead letters (records
// of requests that failed for good). A Transport, too, knows deadlines, those of a request's
// context. A Transport sends the nonces of a key in order if the key is Ordered (see Key).
//
// # Files
//
// From callers to callees:
//
//	transport.go           Config and its checks, Transport, New; presets
//	change.go              another configuration while requests wait: Change, With; Retire
//	stats.go               Stats; Ask, when a request could go; Lift, which ends pauses
//	user_pause.go          Rest, Resume: pauses of a key, or of all, that a user wants
//	transport_snapshot.go  Snapshot: figures of partitions, keys, hosts; events of refusals and
//	                       pauses
//	hedge.go               second copies of slow requests: when they go, which answer wins
//	call.go                one RoundTrip: its steps and repeats; the wait between attempts
//	prepare.go             which limits a request counts in; its tokens, or why none are counted;
//	                       an SDK's retries
//	host_charges.go        what a request costs by the charges of its host, and in which resource
//	shape.go               costs that only answers tell, as of GraphQL: by shape of request, and
//	                       who waits for the first
//	acquire.go             the wait for one permit of all limits; a cost too large is lowered;
//	                       deadlines
//	send.go                one attempt: sent once per permit, with the key's credential;
//	                       AttemptTimeout
//	judge.go               what an answer proves: repeat or not, key at fault, resource;
//	                       CheckRetry
//	denied.go              requests that are denied in a row, with all keys or their own
//	wrong_charges.go       a charge or a limit that answers show to be wrong, and refusals: lines of the log; what
//	                       waiting ones cost
//	settle.go              what each limit learns of an answer; a 503's Retry-After keeps its host
//	                       alone away
//	price.go               limits of money: the cost of a request by Config.Price, before and
//	                       after
//	key_owners.go          in which organization's limits a key counts; its move to them
//	newcomer.go            a new key goes alone until its first answer names its organization
//	choice.go              other Keys while requests wait: names, keys that are gone or come back
//	key.go                 Config.Keys: which key goes; nonces in order; banned keys, Readmit;
//	                       redirects elsewhere
//	target.go              Config.Targets: which server a request takes; when it goes to the next
//	head_first.go          a target that answers 502 or 503: passed over at once, and probed by a HEAD
//	target_differs.go      what differs from target to target: a cost; the name of a model in a path
//	session.go             Config.Affinity: the target of a session, and when it moves
//	body.go                bodies: read for the model, sent again, looked into by CheckRetry,
//	                       watched for usage
//	leaf.go                partitions: found, made, dropped when idle; MaxPartitions
//	way.go                 the limits of a request with one key, narrowest first; resource against
//	                       route
//	client.go              clients: weights, head starts, MaxWaiting and limits of each
//	frozen.go              idle partitions in a few bytes each; ErrFull
//	node.go                limits of one scope: statements, pauses, outages and misfits; lines of
//	                       the log
//	adaptive_room.go       Config.Adaptive: how many requests of a model a host handles at once
//	provider.go            which provider runs a host; Published: limits of a preset as limiters
//	errors.go              Error and its text: ErrPaused, ErrOutage, ErrPrice, ErrModel,
//	                       ErrAttemptTimeout
//	partition.go           the host, key, model and route that a request has; which header names
//	                       its key
package transport
