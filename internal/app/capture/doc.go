// Package capture leads the TCP connections of one program to the proxy of Paceline that serves
// this program. It does so even if the program ignores the environment variables for proxies, such
// as HTTPS_PROXY. The flag --capture of `paceline exec` uses the package, on Linux.
//
// The captured program runs in a network namespace of its own, where every address is local. If the
// program looks up a host name, the answer is an address of 198.18.0.0/15. All TCP connections, but
// those to loopback addresses and to port 53, arrive at one listener. The listener is made inside
// the namespace, and passed through a Unix socket to the proxy outside. Connections to loopback
// addresses stay in the namespace, except those to the ports of 127.0.0.0/8 that the user allows.
// So no TCP connection can leave the namespace without the proxy. Root is not needed on a system
// that allows user namespaces.
//
// # Files
//
//	outside_linux.go   accepts the connections of a captured program; which host each wants
//	dns_names.go       names of hosts, and the addresses that stand for them inside
//	resolver.go        answers DNS questions of the program: A, AAAA, names of this machine
//	handover_linux.go  passes listeners through a Unix socket
//	inside_linux.go    Enter: makes the namespace before the program begins
//	redirect_linux.go  leads the packets of all connections to the listener
//	command_linux.go   the command that makes the namespace
//	other.go           the error on systems without namespaces
package capture

import "errors"

// ErrNot says that this system cannot capture. The error that wraps it says what to allow.
var ErrNot = errors.New("--capture is not possible here")

// Inside says what Enter makes for a program.
type Inside struct {
	// Socket is the Unix socket of the proxy.
	Socket string
	// Local are the ports at which the program reaches this machine's own loopback address, by the
	// proxy. At all others it meets its own servers.
	Local []uint16
	// Files replace files of the system, for the program alone: by their path, the path of the
	// replacement. A file that is not there is not made.
	Files map[string]string
}
