// Package daemon runs the one process of a user that goes on between the user's runs. The package
// has the socket of that process, its lock and its client. Other packages add what the process
// does, by Server.Handle.
//
// Clients speak HTTP/1.1 and JSON over a Unix socket, in a folder that only the user can open.
// Server and client each ask the kernel for the user of the other end, and compare their versions.
//
// A server may hand its listening sockets to the next process, which may be a newer program. The
// sockets go through another Unix socket, which belongs to the same user and has the mode 0600. No
// client's connection is refused meanwhile.
//
// At a handover, the former process calls ListenForHandover, and the next one calls TakeOver. The
// former one answers by Give, and waits until the next one is Ready. If the next process ends
// before that, the former one goes on. Otherwise the former process later sends the next one the
// outcomes of requests in flight, by Report. Requests that come on old connections it sends there
// by DialPredecessor.
//
// A Successor is safe for concurrent use. Only one goroutine may use a Predecessor.
//
// # Files
//
//	runtime_folder.go   Place: the folders, which are the user's alone
//	server.go           Server: the lock, the socket, status and stop
//	call_daemon.go      Dial, Stop: the client's side
//	peer_conn.go        connections, and a file that a client sends with its first bytes
//	peer_*.go           the process at the other end, by system
//	handover_offer.go   what goes over to the next process
//	handover_socket.go  HandoverSocket and Successor: the former process
//	take_over.go        Predecessor and DialPredecessor: the next process
//	handover_other.go   systems without Unix sockets that pass on sockets
package daemon
