package proxy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/transport"
)

// A large file is compacted while the proxy runs. Requests that may still count stay. The others
// go, and with them the names of places without any request.
func TestStateIsCompacted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "proxy.state")
	first := open(t, path)
	l := ledger{first, "api"}
	p := transport.Partition{Host: "server", Key: "A"}
	arrived := func(p transport.Partition, ago time.Duration) {
		t.Helper()
		entry, err := l.Send(p, limit.One)
		if err != nil {
			t.Fatal(err)
		}
		l.Settle(entry, limit.One, limit.Outcome{Result: limit.Accepted, ArrivedAgo: ago})
	}
	known := func(want int) {
		t.Helper()
		first.journal.Flush()
		if all, _ := (ledger{open(t, copyState(t, path)), "api"}).Earlier(scope(p, provider.Key), time.Now()); len(all) != want {
			t.Errorf("%d are known that may still count, expected %d", len(all), want)
		}
	}
	fill := func() {
		t.Helper()
		before := size(t, path)
		for q := p; size(t, path) >= before; { // few records, and many bytes
			q.Route = strings.Repeat("x", 1<<20)
			arrived(q, 2*time.Hour)
			if before = max(before, size(t, path)); before > 2*compactFrom {
				t.Fatalf("it has grown to %d bytes", before)
			}
		}
	}
	arrived(p, time.Second)
	arrived(p, 10*time.Minute)
	fill()
	if n := size(t, path); n > compactFrom/2 {
		t.Errorf("it has %d bytes", n)
	}
	known(1) // a minute counts
	first.keepFor(time.Hour)
	arrived(p, 10*time.Minute)
	fill()
	first.keepFor(time.Second)
	known(2)
}

func size(t *testing.T, path string) int64 {
	t.Helper()
	at, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return at.Size()
}
