// Package permit gives programs in any language permission to send a request. The package is for
// requests that are not HTTP, or that Paceline does not send itself. A program acquires a permit,
// sends its request, and settles the permit: it reports how the request ended. These calls are
// HTTP/1.1 and JSON, over a Unix socket or a port of the loopback interface.
//
// A Server of package permit has limits with names, such as orders. The daemon (the background
// process of a user, see package daemon) serves its HTTP handlers. If one process reports that a
// server has asked for a pause (Retry-After), all other processes that use the same name at this
// daemon wait, too.
//
// # Files
//
//	permits.go        Server: grants, takes back and ends permits; Stop
//	held.go           how long a permit lasts; when it lapses without renewal; IDs
//	named_limit.go    a named limit: its limiter, a line for each client, head starts
//	add.go            limits and clients that come while the server runs; contradictions with
//	                  those there
//	changes.go        a rate that a user changes; pauses by a user
//	upstream.go       permits in the line of an upstream of the proxy
//	grant.go          POST /v1/acquire: waits for the turn; several permits at once
//	settlement.go     POST /v1/settle and /v1/renew: outcomes, unknown ids
//	ask_limits.go     GET /v1/limits and /v1/ask: what is left, and the forecast of a wait
//	refusal.go        a refusal in place of a permit: status, kind and text of problem+json
//	message.go        the fields of messages, and which values they may have
//	strict_json.go    reads JSON; an unknown field or a field that is there twice is an error
//	cost_flag.go      costs as flags and URLs have them: tokens=900,weight=5
//	schema.json       the messages, as a JSON schema
//	connection.go     a program's connection ends: its permits end too
//	state_file.go     the state file: permits granted before a restart or kill count on
//	loopback.go       a port of this machine: its key; pages of browsers are refused
//	permit_client.go  Client: acquire, settle and renew, for `paceline permit`
package permit
