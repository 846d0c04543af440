package http1

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// Whoever closes a body twice gives its connection back once.
func TestClosedTwice(t *testing.T) {
	address := server(t, func(_ int, conn net.Conn, in *bufio.Reader) {
		for {
			if _, err := http.ReadRequest(in); err != nil {
				return
			}
			fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
	})
	client := newClient(t)
	res, _, err := client.Send(context.Background(), request(t, "GET", "http://"+address+"/"), nil, time.Minute, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.ReadAll(res.Body)
	res.Body.Close()
	res.Body.Close()
	if n := len(client.idle[address]); n != 1 {
		t.Errorf("%d connections are kept of one", n)
	}
	if _, err := res.Body.Read(make([]byte, 1)); err == nil {
		t.Error("a closed body is read")
	}
}
