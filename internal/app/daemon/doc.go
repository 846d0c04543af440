// Package daemon runs one background process for each user, the daemon. It continues when the
// command that started it has ended. If a run of `paceline exec` started it, it ends by itself when
// it is idle. The package provides the socket of that process, its lock and its client. Other
// packages register by Server.Handle what the daemon does for a request.
//
// Clients of the daemon speak HTTP/1.1 and JSON over a Unix socket, in a folder that only the user
// can open. Server and client each ask the kernel which user runs the process at the other end, and
// compare their versions.
//
// The package has a second part, which `paceline proxy` uses for a restart: a server can hand its
// listening sockets to the next process, which may be a newer program. The sockets go through
// another Unix socket, which belongs to the same user and has the mode 0600. During this handover,
// no client's connection is refused.
//
// The package has a third part: a program can open a socket in the same folder, by Controlled, at
// which its user changes its settings while it runs. Programs finds all programs with such a socket.
//
// A process calls ListenForHandover before it serves, and the next process calls TakeOver. The
// former process answers by Give, and waits in HandOver until the next process serves. If the next
// process ends before that, the former process continues to serve. Otherwise the former process
// later sends the outcomes of its requests in flight to the next process, by Report. Clients may
// keep connections to the former process open. The former process passes the requests that still
// arrive there on to the next process. It connects to the next process by DialHandover, which
// connects to whichever process listens at a path now.
//
// In a handover, the type Successor represents the next process within the former one. A Successor
// is safe for concurrent use. The type Predecessor represents the former process within the next
// one. Only one goroutine may use a Predecessor.
//
// # Files
//
//	runtime_folder.go   where socket, lock, log and state are; folders that others own or may open
//	server.go           Server: one daemon for a user; status and stop; the end when idle
//	call_daemon.go      Dial, Stop: a client of the daemon; a daemon of another version
//	control_socket.go   Controlled: where paceline ctl changes a program; Programs finds them
//	page_session.go     PageForms: a token, a session and changes from a page; PageSessions
//	user_turn.go        Turn: a change that a user wants; what can be changed
//	peer_conn.go        connections of the daemon: of this user alone; a file that comes along
//	peer_*.go           the process at the other end, by system
//	handover_offer.go   Offer: what the former process passes on: its listening sockets
//	handover_socket.go  HandoverSocket and Successor: the former process at a takeover
//	take_over.go        Predecessor and DialHandover: the next process at a takeover
//	handover_other.go   systems without Unix sockets that pass on sockets
package daemon
