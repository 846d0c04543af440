// Package paceenvoy is an external processor (ext_proc) for Envoy. Each request that passes through
// Envoy waits until all limits of the server have room for it. If that would take too long, the
// processor refuses the request.
//
//	p, err := paceenvoy.New(paceenvoy.Config{Transport: transport.Config{Preset: "openai:tier1"}})
//	extprocv3.RegisterExternalProcessorServer(grpcServer, p)
//
// Envoy sends the header of each request to the processor, and waits for a message back. The
// processor answers when all limits have room for the request. If that would take longer than
// Config.MaxWait (a minute by default), the processor refuses the request at once with status 429.
// (The status is 413 if the request is larger than the limit, and 503 if the server is down or all
// keys are out of use.) When the header of the server's answer comes, the processor settles the
// request: the limits learn what the server states. (With Transport.Tokens, they learn it at the
// end of the answer's body.) Package transport makes these decisions, as it does for an
// http.Client. The stream between Envoy and the processor may end after Envoy sent the request and
// before the server answered. Then the server may have served the request, so the request counts in
// the limits.
//
// Package paceenvoy is not a rate limit service of Envoy, since such a service could not learn from
// answers. Envoy asks a rate limit service before a request, and never passes the server's answer
// to it.
//
// The folder of package paceenvoy contains an example of Envoy's configuration, and the command
// paceline-envoy. The package is a module of its own, so that programs that import Paceline but not
// paceenvoy do not depend on Envoy's protobufs.
//
//	paceenvoy.go   Config, Processor, New; defaults such as MaxWait
//	processing.go  one request: the messages of its stream, in their order
//	header_map.go  Envoy's header maps as requests and answers, and back
//	problem.go     answers to requests that have no turn
package paceenvoy
