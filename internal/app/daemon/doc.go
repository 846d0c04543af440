// Package daemon is the one process of a user that lasts from run to run. It has the socket of that
// process, its lock and its client. What the process does is mounted by others: Server.Handle.
//
// HTTP/1.1 and JSON go over a Unix socket, in a folder of the user alone. Server and client check
// each other's user by the kernel, and compare their versions.
//
// A server may hand its sockets to the next process, which may be a newer program. They go by a Unix
// socket that belongs to one user and has the mode 0600. Clients notice nothing: no connection is refused.
//
// The former process calls ListenForHandover. The next one calls TakeOver. The former one answers by
// Give, and waits until the next one is Ready. If the next one ends before, the former one goes on.
// Afterwards the former one sends it the outcomes of requests in flight (Report), and requests of its
// old connections (DialPredecessor).
//
// Several goroutines may use a Successor at a time. Only one may use a Predecessor.
//
// # Files
//
//	runtime_folder.go   Place: the folders, which are the user's alone
//	server.go           Server: the lock, the socket, status and stop
//	call_daemon.go      Dial, Stop: the client's side
//	peer_conn.go        connections, and a file that comes with one
//	peer_*.go           the process at the other end, by system
//	handover_offer.go   what goes over to the next process
//	handover_socket.go  HandoverSocket and Successor: the former process
//	take_over.go        Predecessor and DialPredecessor: the next one
//	handover_other.go   systems without Unix sockets that pass on sockets
package daemon
