// Package handover hands a server from one process to the next, which may be a newer program. The
// listening sockets go by a Unix socket that belongs to one user and has the mode 0600. Clients
// notice nothing: no connection is refused.
//
// The former process Listens. The next one Takes. The former one answers by Give, and waits until
// the next one is Ready. If the next one ends before, the former one goes on. Afterwards the former
// one sends it the outcomes of requests in flight (Report), and requests of its old connections (Dial).
//
// Several goroutines may use a Successor at a time. Only one may use a Predecessor.
//
// # Files
//
//	offer.go          what goes over
//	socket.go         Socket and Successor: the former process
//	take.go           Predecessor and Dial: the next one
//	other.go          systems without Unix sockets that pass on sockets
package handover
