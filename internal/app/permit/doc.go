// Package permit gives programs in any language permission to send a request. The package is for
// requests that are not HTTP, or that Paceline does not send itself. A program acquires a permit,
// sends its request, and settles the permit: it reports how the request ended. These calls are
// HTTP/1.1 and JSON, over a Unix socket or a port of the loopback interface.
//
// A Server of package permit has limits with names, such as orders. The daemon (the background
// process of a user, see package daemon) serves its HTTP handlers. If one process reports that a
// server has asked for a pause (Retry-After), all other processes that use the same name wait, too.
//
// # Files
//
//	permits.go        Server: the limits, and the permits that other processes hold
//	held.go           IDs of permits; how long permits last, when they lapse: arithmetic on an instant
//	named_limit.go    named limits, and a lane for each client
//	add.go            Add: limits and clients that come while the server runs
//	upstream.go       limits that belong to an upstream of the proxy
//	grant.go          POST /v1/acquire: waits for the turn
//	settlement.go     POST /v1/settle and /v1/renew
//	ask_limits.go     GET /v1/limits and /v1/ask
//	refusal.go        answers in place of a permit, as problem+json
//	message.go        the fields of requests and answers
//	strict_json.go    JSON, with errors that name a field
//	cost_flag.go      costs as flags and URLs have them: tokens=900,weight=5
//	schema.json       the messages, as a JSON schema
//	connection.go     what is done when a program's connection ends
//	state_file.go     the state file: permits that were granted, for the next process
//	loopback.go       a port of the loopback interface; calls on it need a key
//	permit_client.go  Client: acquire, settle and renew, from Go
package permit
