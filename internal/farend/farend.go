// Package farend has a server at the other end of a connection in memory, for tests of who opens connections and writes to them, in virtual time. A
// fake that is an http.Handler needs none of it where ratetest.InMemory does.
package farend

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
)

// Conn returns a connection to a server that reads each request to its end, asks status, and answers with that and nothing else. Its
// goroutine ends with the connection, and is the only one that calls status.
func Conn(status func() int) net.Conn {
	client, server := net.Pipe()
	go func() {
		defer server.Close()
		for in := bufio.NewReader(server); ; {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			io.Copy(io.Discard, r.Body)
			code := status()
			fmt.Fprintf(server, "HTTP/1.1 %d %s\r\nContent-Length: 0\r\n\r\n", code, http.StatusText(code))
		}
	}()
	return client
}
