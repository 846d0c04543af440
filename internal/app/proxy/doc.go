// Package proxy is the server of `paceline proxy`. HTTP clients in any language send requests to it
// at any time. The proxy sends each request to its upstream, the API server for which the request
// is meant. It does so at the first instant at which the upstream's limits surely allow the
// request.
//
// Package proxy is a thin adapter: an httputil.ReverseProxy over package transport. Package
// transport waits, judges answers, settles costs and sends again. Package proxy identifies the
// clients, checks their requests, and itself answers the requests that it sends to no upstream.
//
// # Files
//
//	proxy_config.go     Config and its parts: Bounds, Clients, Upstream, Key, Limit, Price
//	check.go            defaults, and the checks of a Config
//	proxy.go            Proxy, New, ServeHTTP
//	apply.go            Apply: another Config while the proxy runs
//	listen.go           Server: Start, Stop, Wait
//	conn.go             connections of clients: their number, and stalls
//	forwarding.go       the forward proxy: upstreams by their own addresses
//	systemd.go          listeners from systemd, and notices to it
//	admin.go            the admin listener
//	metrics.go          a listener for /metrics, /livez and /readyz alone
//	visit.go            one request, from its arrival to the end of its answer
//	request_target.go   requests that no upstream may get
//	paths.go            the ways in which a server may read a path
//	lengths.go          requests that state both a length and chunks
//	foreign_pages.go    requests that web pages make in a browser, and preflights
//	withhold.go         what of a request the upstream must not get
//	clientele.go        the client of a request, and its own limits
//	route.go            the upstream of a request, by host and path
//	patience.go         the longest wait of a request
//	interim.go          interim answers to a request that waits, and a table of the clients that get them
//	leave.go            permission for requests that other programs send: they wait in the line of an upstream
//	hangups.go          clients that hang up while their request waits
//	kept_body.go        bodies of requests, kept so that they can be sent again
//	writer.go           answers, flushed in time
//	buffers.go          buffers for answers
//	refuse.go           answers of the proxy itself: problems and gRPC statuses
//	links.go            addresses of the upstream in header fields of answers: they become addresses of the proxy
//	body_links.go       addresses of further pages, in bodies
//	access_log.go       the log line of a request
//	upstream.go         an upstream and its transport
//	several_targets.go  several targets of an upstream
//	upstream_keys.go    keys of an upstream
//	limits.go           limiters of a partition, and their change
//	allowed_models.go   models that a client may use
//	stated_cost.go      what requests cost, by charges and by their clients
//	upstream_price.go   costs in money
//	shared_store.go     limits shared with other processes
//	state.go            the state file: sent requests that may still count
//	inherit.go          how the state goes from one process to the next
//	handover.go         another process takes over: Server.PassOn, Inherit
//	hand_on.go          requests that come to this process and that the next one answers
//	batches.go          files and batches, which package jobs keeps; the requests of batches have a line of their own
//	sources.go          snapshots of the upstreams
package proxy
