package proxy

import (
	"fmt"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/race"
)

// TestMemoryInLine: what a request in line takes, with its connection, the goroutines and buffers of net/http, and the
// copy for the upstream. Both ends of the connections are in this process: the client's end is about 900 bytes.
//
// The goroutine of a request has a stack of 8 KiB, and net/http's reader of its connection one of 2. The stack doubles if
// any function on the way into line goes deeper, and stays so for as long as the request waits.
func TestMemoryInLine(t *testing.T) {
	race.Without(t)
	const some, many, mostHeap, mostStacks = 64, 364, 22 << 10, 14 << 10
	c := to(upstreamOf(t, hello), "1/h", "100/d", "500/7d")
	c.MaxWait = 90000 * time.Hour
	x := start(t, c)
	used := func() (heap, stacks uint64) {
		for range 3 {
			runtime.GC()
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc, m.StackInuse
	}
	n := 0
	enter := func(all int) {
		for ; n < all; n++ {
			k, err := net.Dial("tcp", x.addr)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { k.Close() })
			body := fmt.Sprintf(`{"model":"gpt-4o-mini","messages":[{"role":"user","content":"%d"}]}`, n)
			fmt.Fprintf(k, "POST /v1/chat/completions?id=%d HTTP/1.1\r\nHost: %s\r\nUser-Agent: OpenAI/Python 1.99.1\r\nAuthorization: Bearer sk-1\r\n"+
				"Accept: application/json\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", n, x.addr, len(body), body)
		}
		until(t, func() bool { return waiting(x) == all-1 }) // one has gone
	}
	enter(some)
	heap, stacks := used()
	enter(many)
	heapNow, stacksNow := used()
	heap, stacks = (heapNow-heap)/(many-some), (stacksNow-stacks)/(many-some)
	t.Logf("%d bytes of heap, %d of stacks", heap, stacks)
	if heap > mostHeap || stacks > mostStacks {
		t.Errorf("%d bytes of heap and %d of stacks for each request in line, expected at most %d and %d", heap, stacks, mostHeap, mostStacks)
	}
}
