// Package paceenvoy is an external processor for Envoy (ext_proc). Envoy's requests wait in the
// processor until the limits of their server let them go.
//
//	p, err := paceenvoy.New(paceenvoy.Config{Transport: transport.Config{Preset: "openai:tier1"}})
//	extprocv3.RegisterExternalProcessorServer(grpcServer, p)
//
// Envoy sends the header of a request to the processor, and waits for a message back. The processor
// answers when the limits let the request go. When the header of the server's answer comes, the
// processor settles the request: the limits learn what the server states. Package transport makes
// these decisions, as it does for an http.Client. If the stream between Envoy and the processor
// ends before the server's answer, the server may have served the request, so the request counts.
//
// Package paceenvoy is not a rate limit service of Envoy, since such a service could not learn from
// answers. Envoy asks a rate limit service before a request, and never passes it the answer.
//
// The folder of this package contains an example of Envoy's configuration, and the command
// paceline-envoy. The package is a module of its own, so that programs without Envoy do not depend
// on Envoy's protobufs.
//
//	paceenvoy.go   Config, Processor, New
//	processing.go  one request: the messages of its stream, in their order
//	header_map.go  Envoy's header maps as requests and answers, and back
//	problem.go     answers to requests that have no turn
package paceenvoy
