// Package forward is the forward proxy of `paceline proxy --forward`. Programs reach the proxy by
// the environment variables HTTPS_PROXY and HTTP_PROXY, so they need no other addresses for their
// APIs.
//
// In this package, a host is called named if the proxy has an upstream for it: a server whose
// limits the proxy keeps. Requests to named hosts are decrypted here, with a certificate of an
// authority that is made for this run. A handler gets these requests with complete URLs.
// Connections to other hosts are passed on as they are: the proxy does not look at their bytes.
//
// # Files
//
//	door.go            Door: the requests and tunnels of programs
//	named_conn.go      connections to named hosts: TLS, HTTP/1.1 and HTTP/2 within them
//	tunnel.go          connections to other hosts
//	captured_conn.go   connections of programs that do not know that there is a proxy
//	peer_*.go          which user's program is at the other end of a connection
//	public_address.go  addresses that no tunnel may reach
//	variables.go       the environment of programs, as a table
//	authority.go       Authority: certificates for the named hosts
//	bundle.go          the file of certificates that programs are to trust
package forward
