// Package proxy is the server of `paceline proxy`. HTTP clients in any language send requests to
// the proxy at any time. The proxy sends each request to its upstream, the API server for which the
// request is meant. It does so at the first instant at which the upstream's limits surely allow the
// request. If that instant is too late for the request, the proxy refuses the request at once.
//
// Package proxy is a thin adapter: an httputil.ReverseProxy over package transport. Package
// transport lets each request wait for the limits, judges its answer, counts its real cost, and
// sends it again if need be. Package proxy identifies the clients and checks their requests. It
// also refuses requests that it sends to no upstream, and answers these itself.
//
// # Files
//
//	proxy_config.go     Config and its parts: Bounds, Clients, Upstream, Key, Limit, Price
//	check.go            defaults of a Config, and which of its settings are mistakes or contradict
//	                    each other
//	proxy.go            Proxy: New, ServeHTTP, Close; how long requests count, and the state
//	                    keeps them
//	apply.go            a changed file, and what becomes of requests that wait; settings
//	                    that cannot change;
//	                    upstreams taken out
//	held_keys.go        keys that go on under another name, or with another secret; those that
//	                    are taken out, and come back
//	user_change.go      Turn: a limit, a weight or a bound in flight that a user changes; pauses
//	kept_turns.go       what a user has changed goes on over a changed file
//	listen.go           Server: its start; the first Ctrl-C and the second; requests under way
//	conn.go             the most connections of clients; clients that stall, or read no answer
//	forwarding.go       the forward proxy: to which upstream a whole URL belongs
//	systemd.go          listeners from systemd, and notices to it
//	admin.go            the admin listener: /livez, /readyz, and what is mounted there
//	metrics.go          a listener for /metrics, /livez and /readyz alone; its token; snapshots of
//	                    the upstreams, for metrics and the page
//	visit.go            one request, from arrival to answer: the fields that upstream and client
//	                    get
//	request_target.go   requests refused for their method, path or length
//	paths.go            how a server may read a path: dots, escapes; the route that its limits
//	                    have
//	lengths.go          requests with a length and chunks: request smuggling
//	foreign_pages.go    requests that foreign web pages make in a browser; CORS and preflights
//	withhold.go         what of a request the upstream must not get: keys of clients, credentials
//	clientele.go        whose a request is: key, name, address, program; a client's own limits
//	never_used.go       clients and limits of the configuration that no request was of
//	route.go            the upstream of a request, by host and path
//	patience.go         how long a request waits: fields of clients, grpc-timeout
//	interim.go          100 or 102 to a request that waits, so that its client does not give up
//	leave.go            permits for requests that other programs send, in an upstream's line
//	hangups.go          clients that hang up while their request waits
//	kept_body.go        keeps bodies of requests in memory, to send them again; a bound for all
//	writer.go           answers: events and parts flushed in time; Content-Type; upgrades to
//	                    WebSocket
//	refuse.go           answers of the proxy itself: the text and fields of a 429, 502, 503, 504;
//	                    gRPC
//	links.go            addresses in Location and Link that lead past the proxy
//	body_links.go       addresses of the next page in a body that lead past the proxy
//	access_log.go       the log line of a request: its fields, its path without secrets
//	upstream.go         an upstream: connection, timeouts; how long idle keys are remembered;
//	                    bodies read for models
//	several_targets.go  an upstream's targets: their settings and mistakes; which session a
//	                    request has
//	upstream_keys.go    {key} and {nonce} in header fields; banned keys that come back into use
//	limits.go           the limits of a key, model or client; what counts on after a changed
//	                    number
//	goes_first.go       requests that go before others of their client
//	allowed_models.go   models that a client may use, also within batches
//	stated_cost.go      a client's field Paceline-Cost; charges, as proxy check tells them
//	                    (of requests: transport/host_charges.go)
//	upstream_price.go   costs in money, and limits of money
//	shared_store.go     limits in a store; settings that --share does not go with
//	state.go            the state file: sends before a restart count on (how far back: proxy.go);
//	                    limits that were found
//	                    out
//	beside.go           what other programs of the user sent, and notes for these
//	inherit.go          at a takeover: the file, and requests in flight of the process before
//	handover.go         at a takeover: listeners go over, and the former process ends
//	hand_on.go          at a takeover: requests that come here and the next process answers
//	batches.go          files and batches of clients: in whose line, and until when they wait
package proxy
