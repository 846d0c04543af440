//go:build unix

package main

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/need"
)

// What a proxy takes for clients in line at the base URL, each with a connection of its own: as many as
// 20,000 open files allow.
//
//	PACELINE_LONG=1 go test ./cmd/paceline -run TestMemoryOfWaiting -v
//
// The aim is 20 KiB for each client. Of today's 31, the stack of its goroutine takes 8, that of the reader of net/http 2,
// the buffers of net/http 10, and the request with its copy 9. The first three are net/http's as long as a handler waits.
func TestMemoryOfWaiting(t *testing.T) {
	need.LongOnly(t, "it measures the machine")
	const clients, mostKiB = 19000, 36
	server := newLawful(t, 1, time.Hour)
	p := newPassing(t, nil, "--to", server.URL, "--limit", "1/h", "--max-wait", "90000h", "--max-waiting", "30000", "--max-connections", "30000",
		"--idle-timeout", "1h", "--log", "off")
	p.begin()
	resident := func() float64 { return series(p.look("/metrics"))["process_resident_memory_bytes"] / 1e6 }
	before := resident()
	for i := range clients {
		c, err := net.Dial("tcp", p.at)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		body := fmt.Sprintf(`{"model":"gpt-4o-mini","messages":[{"role":"user","content":"%d"}]}`, i)
		fmt.Fprintf(c, "POST /v1/chat/completions?id=%d HTTP/1.1\r\nHost: %s\r\nUser-Agent: OpenAI/Python 1.99.1\r\nAuthorization: Bearer sk-1\r\n"+
			"Accept: application/json\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", i, p.at, len(body), body)
	}
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		n := 0.0
		for name, v := range series(p.look("/metrics")) {
			if strings.HasPrefix(name, "paceline_waiting{") {
				n += v
			}
		}
		if n >= clients-1 { // one has gone
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%v wait: %s", n, p.said.String())
		}
	}
	time.Sleep(3 * time.Second) // for a garbage collection, and interim answers
	all := series(p.look("/metrics"))
	after := all["process_resident_memory_bytes"] / 1e6
	t.Logf("%d clients in line: %.0f MB, %.0f before; %.1f KiB each; heap in use %.0f MB, stacks %.0f MB, goroutines %.0f", clients, after, before,
		(after-before)*1e6/1024/clients, all["go_memstats_heap_inuse_bytes"]/1e6, all["go_memstats_stack_inuse_bytes"]/1e6, all["go_goroutines"])
	if each := (after - before) * 1e6 / 1024 / clients; each > mostKiB {
		t.Errorf("%.1f KiB for each client, expected %d at most", each, mostKiB)
	}
}
