// Package permit lets programs in any language wait for their turn: permission to send, for what is
// not HTTP, or not sent by Paceline. A program acquires a permit, sends its request, and settles the
// permit by how the request ended. HTTP/1.1 and JSON carry these calls, over a Unix socket or a port of
// the loopback interface.
//
// A Server has named limits, and mounts its handlers on the daemon. Behind each name is the stack of
// limits and pauses that package transport has for a server. So a Retry-After that one process reports
// keeps all others away.
//
// # Files
//
//	permits.go        Server: the limits, and the permits that other processes hold
//	held.go           the lives of permits, as arithmetic on an instant
//	named_limit.go    named limits, and a lane for each client
//	add.go            limits and clients that come later
//	upstream.go       limits that are an upstream's of the proxy
//	grant.go          POST /v1/acquire: waits for the turn
//	settlement.go     POST /v1/settle and /v1/renew
//	ask_limits.go     GET /v1/limits and /v1/ask
//	refusal.go        answers in place of a permit, as problem+json
//	message.go        the messages of the calls
//	strict_json.go    JSON, with errors that name a field
//	cost_flag.go      costs as flags and URLs have them
//	schema.json       the messages, as a JSON schema
//	connection.go     the end of a connection
//	state_file.go     a file of what was granted, for the next process
//	loopback.go       a port with a key
//	permit_client.go  Client: the calls, from Go
package permit
