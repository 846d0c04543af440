package transport_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/transport"
)

// New partitions of a client look at the client's limit while its requests are settled. The race detector
// sees a look without the lock.
func TestFillBesideSettles(t *testing.T) {
	own := func() limit.Limiter { return limit.MustRolling(1<<30, time.Second) }
	tr := transport.Must(transport.Config{
		Base:  roundTripper(func(*http.Request) (*http.Response, error) { return reply(200, "ok"), nil }),
		Limit: func(transport.Partition) limit.Limiter { return own() },
		Fill:  1,
		Client: func(*http.Request) transport.Client {
			return transport.Client{Name: "one", Limit: func() limit.Limiter { return own() }}
		},
	})
	var all sync.WaitGroup
	for n := range 4 {
		all.Go(func() {
			for i := range 50 {
				trip(t, tr, get(t, fmt.Sprintf("http://h%d-%d.test/", n, i)))
			}
		})
	}
	all.Wait()
}
