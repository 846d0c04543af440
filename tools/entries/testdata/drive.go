// Command drive does one operation twice, and marks where the second begins. Only that second one
// is counted: the first also does work that is done once per process. Package entries adds the
// command to the build, with import paths in place of the words in capitals.
package main

import (
	"context"
	"io"
	"log"
	"net/http"
	"os"
	"strings"
	"time"

	count "COUNT"
	limit "LIMIT"
	paceline "MODULE"
	transport "TRANSPORT"
)

func main() {
	var once func() error
	switch os.Args[1] {
	case "roundtrip":
		once = roundTrip()
	case "wait":
		once = wait()
	}
	if err := once(); err != nil {
		log.Fatal(err)
	}
	count.Mark()
	if err := once(); err != nil {
		log.Fatal(err)
	}
}

func roundTrip() func() error {
	t := transport.Must(transport.Config{Limiter: limit.MustRolling(20, time.Second), Base: server{}})
	return func() error {
		r, err := http.NewRequest(http.MethodGet, "http://a.test/", nil)
		if err != nil {
			return err
		}
		_, err = t.RoundTrip(r)
		return err
	}
}

// server answers with an empty body.
type server struct{}

func (server) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{
		Status: "200", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{},
		Body: io.NopCloser(strings.NewReader("")),
	}, nil
}

func wait() func() error {
	g := paceline.NewGate(limit.MustRolling(20, time.Second))
	return func() error {
		p, err := g.Wait(context.Background(), limit.One)
		if err != nil {
			return err
		}
		p.Settle(limit.Outcome{Result: limit.Accepted})
		return nil
	}
}
