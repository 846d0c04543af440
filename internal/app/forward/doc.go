// Package forward is the forward proxy of `paceline proxy --forward`. Programs reach it by
// HTTPS_PROXY and HTTP_PROXY, and keep the addresses of their APIs.
//
// Requests to named hosts are those of an upstream. Their TLS ends here, with a certificate of an
// authority that lives for this run, and a handler gets them with whole URLs. No byte of a
// connection to another host is read.
//
// # Files
//
//	door.go                   Door: the requests and tunnels of programs
//	connection_credential.go  connections to named hosts: TLS, HTTP/1.1 and HTTP/2 within them
//	tunnel.go                 connections to other hosts
//	captured_conn.go          connections of programs that know of no proxy
//	peer_*.go                 whose the other end of a connection is
//	public_address.go         addresses that no tunnel may reach
//	variables.go              the environment of programs, as a table
//	authority.go              Authority: certificates for the named hosts
//	bundle.go                 the file of certificates that programs are to trust
package forward
