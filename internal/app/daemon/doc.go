// Package daemon is the one process of a user that lasts from run to run. It has the socket of that
// process, its lock and its client. What the process does is mounted by others: Server.Handle.
//
// HTTP/1.1 and JSON go over a Unix socket, in a folder of the user alone. Server and client check
// each other's user by the kernel, and compare their versions.
//
// # Files
//
//	runtime_folder.go  Place: the folders, which are the user's alone
//	server.go          Server: the lock, the socket, status and stop
//	call_daemon.go     Dial, Stop: the client's side
//	peer_conn.go       connections, and a file that comes with one
//	peer_*.go          the process at the other end, by system
package daemon
