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
//	door.go            Door: listens; requests and CONNECT of programs, and who may enter
//	named_conn.go      connections to named hosts: TLS, HTTP/1.1 or HTTP/2 inside; their credential
//	tunnel.go          connections to other hosts, passed on as bytes
//	captured_conn.go   connections of programs that do not know that there is a proxy
//	peer_*.go          which user's program is at the other end of a connection
//	public_address.go  which addresses are public: a tunnel may reach no others
//	variables.go       the environment variables of programs: proxies, and certificates of Deno, Node…
//	authority.go       Authority: the CA, and its certificates for the named hosts
//	bundle.go          the file of certificates that programs trust: the system's and the Authority's
package forward
