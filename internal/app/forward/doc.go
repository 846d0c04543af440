// Package forward is the forward proxy of `paceline proxy --forward`, and of the programs that
// `paceline exec` runs. Programs reach the proxy by the environment variables HTTPS_PROXY and
// HTTP_PROXY. So they use the same addresses of APIs as without the proxy.
//
// In package forward, a host is called named if the proxy has an upstream for it: a server whose
// limits the proxy keeps. Requests to named hosts are decrypted here, with a certificate of an
// authority that is made at each start of the proxy, or for each program of `paceline exec`. A
// handler gets these requests with complete URLs. Connections to other hosts are refused or passed
// on, by Config.Tunnels. In a connection that is passed on, the proxy does not look at the bytes,
// unless it is plain HTTP.
//
// # Files
//
//	door.go            Door: who may enter; which hosts a CONNECT may reach; refusals
//	named_conn.go      hosts with limits: TLS with the program; HTTP/1.1 or 2; "certificate not
//	                   trusted"
//	tunnel.go          other hosts: bytes passed on, by the proxy on the way out; counts of them
//	captured_conn.go   connections of --capture: to which host, by the server name in TLS
//	peer_*.go          which user's program is at the other end of a connection
//	ack_now_*.go       a client that connects anew, or sends head and body apart, does not wait for the
//	                   kernel
//	public_address.go  tunnels to private addresses are refused
//	variables.go       the environment variables of programs: proxies, and certificates of Deno, Node…
//	authority.go       the CA and its certificates: names, days, constraints
//	bundle.go          the file of certificates that programs trust: the system's and this CA's
package forward
