// Package forward is the forward proxy of `paceline proxy --forward`, and of the programs that
// `paceline exec` runs. Programs reach the proxy by the environment variables HTTPS_PROXY and
// HTTP_PROXY. So they use the same addresses of APIs as without the proxy.
//
// In this package, a host is called named if the proxy has an upstream for it: a server to whose
// limits the proxy keeps. This package decrypts requests to named hosts, with a certificate of an
// authority (CA) that is made anew for each start of the proxy, or each run of `paceline exec`. A
// handler gets these requests with complete URLs. The package passes on connections to other hosts
// as they are, and does not look at their bytes.
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
