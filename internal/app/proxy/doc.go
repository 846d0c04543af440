// Package proxy is the server of `paceline proxy`. HTTP clients in any language send requests to
// the proxy at any time. The proxy sends each request to its upstream, the API server for which the
// request is meant. It does so at the first instant at which the upstream's limits surely allow the
// request.
//
// Package proxy is a thin adapter: an httputil.ReverseProxy over package transport. Package
// transport lets each request wait for the limits, judges its answer, counts its real cost, and
// sends it again if need be. Package proxy identifies the clients and checks their requests. It
// also refuses requests that it sends to no upstream, and answers these itself.
//
// # Files
//
//	proxy_config.go     Config and its parts: Bounds, Clients, Upstream, Key, Limit, Price
//	check.go            defaults, and mistakes of a Config
//	proxy.go            Proxy, New, ServeHTTP: the upstreams, clients and listeners in one
//	apply.go            Apply: another Config while the proxy runs
//	listen.go           Server: Start, Stop, Wait
//	conn.go             connections of clients: the most of them, and clients that stall
//	forwarding.go       the forward proxy: upstreams by their own addresses
//	systemd.go          listeners from systemd, and notices to it
//	admin.go            the admin listener: /livez, /readyz, and what is mounted there
//	metrics.go          a listener for /metrics, /livez and /readyz alone
//	visit.go            one request, from its arrival to the end of its answer
//	request_target.go   requests that no upstream may get, by their method, path or length
//	paths.go            how a server may read a path: dots, escapes, backslashes
//	lengths.go          requests with a length and chunks: request smuggling
//	foreign_pages.go    requests that foreign web pages make in a browser; CORS and preflights
//	withhold.go         what of a request the upstream must not get: keys of clients, credentials
//	clientele.go        the client of a request, and its own limits
//	route.go            the upstream of a request, by host and path
//	patience.go         the longest wait of a request
//	interim.go          interim answers (100, 102) to a request that waits, and the clients that get them
//	leave.go            permits: requests that other programs send, in the line of an upstream
//	hangups.go          clients that hang up while their request waits
//	kept_body.go        bodies of requests, kept in memory so that they can be sent again
//	writer.go           answers: their fields and body, flushed in time
//	buffers.go          a pool of buffers, for the copying of answers
//	refuse.go           answers of the proxy itself, such as 429, 502, 504: problems, gRPC statuses
//	links.go            addresses of the upstream in Location and Link: they become the proxy's
//	body_links.go       addresses of the next page in bodies: they become the proxy's
//	access_log.go       the log line of a request
//	upstream.go         an upstream: its server, transport and settings
//	several_targets.go  several targets of an upstream: each as an upstream of its own
//	upstream_keys.go    keys of an upstream, and the header fields with a key or a nonce
//	limits.go           limiters of a partition, and what they keep where a Config changes
//	allowed_models.go   models that a client may use
//	stated_cost.go      what requests cost: by charges, and by a header field of their clients
//	upstream_price.go   costs in money, and limits of money
//	shared_store.go     limits shared with other processes
//	state.go            the state file: writes and reads sent requests that may still count
//	inherit.go          how the state goes from one process to the next
//	handover.go         another process takes over: Server.PassOn, Inherit
//	hand_on.go          at a takeover: requests that come here and that the next process answers
//	batches.go          files and batches, which package jobs keeps; the line of their requests
//	sources.go          Sources: snapshots of the upstreams, for metrics and the page
package proxy
