package proxybench

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/paceline-go/paceline/internal/core/ceiling"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/ratetest/rule"
)

const (
	plainPath  = "/plain"
	streamPath = "/stream"
	holdPath   = "/hold"
	strictPath = "/strict"

	streamEvents = 5
	between      = 10 * time.Millisecond // events of a stream
)

// Limit is how many requests any second may have at the strict server, whose path takes up to jitter each way.
const (
	Limit  = 100
	jitter = 50 * time.Millisecond
)

// upstream is the server that all proxies are before.
type upstream struct {
	URL    *url.URL
	server *http.Server
	gone   context.CancelFunc

	mu      sync.Mutex
	epoch   time.Time
	rule    rule.Amendable
	rng     *rand.Rand
	served  int
	refused int
	legs    []ceiling.Leg
}

func newUpstream() (*upstream, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	u := &upstream{URL: &url.URL{Scheme: "http", Host: ln.Addr().String()}, gone: cancel}
	mux := http.NewServeMux()
	body := []byte("all the same, whichever way it comes here\n")
	mux.HandleFunc(plainPath, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(body) })
	mux.HandleFunc(streamPath, stream)
	mux.HandleFunc(holdPath, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-ctx.Done():
		case <-r.Context().Done():
		}
	})
	mux.HandleFunc(strictPath, u.judge)
	u.server = &http.Server{Handler: mux}
	go func() { _ = u.server.Serve(ln) }()
	return u, nil
}

func (u *upstream) close() {
	u.gone()
	u.server.Close()
}

// stream sends events that say when they were sent.
func stream(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	c := http.NewResponseController(w)
	for i := range streamEvents {
		if i > 0 {
			time.Sleep(between)
		}
		fmt.Fprintf(w, "data: %d\n\n", time.Now().UnixNano())
		_ = c.Flush()
	}
}

// again begins a new run of the strict server, with empty windows.
func (u *upstream) again(seed uint64) error {
	r, err := rule.NewRolling(rule.RollingConfig{Limit: Limit, Window: time.Second})
	if err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.epoch, u.rule, u.rng = time.Now(), r, rand.New(rand.NewPCG(seed, 0))
	u.served, u.refused, u.legs = 0, 0, nil
	return nil
}

// judge is the strict server and the latencies of the path to it.
func (u *upstream) judge(w http.ResponseWriter, _ *http.Request) {
	u.mu.Lock()
	leg := ceiling.Leg{Forward: time.Duration(u.rng.Int64N(int64(jitter))),
		Back: time.Duration(u.rng.Int64N(int64(jitter)))}
	u.legs = append(u.legs, leg)
	u.mu.Unlock()
	time.Sleep(leg.Forward)
	u.mu.Lock()
	fits := u.rule.Arrive(mono.Time(time.Since(u.epoch)), 1)
	if fits {
		u.served++
	} else {
		u.refused++
	}
	u.mu.Unlock()
	time.Sleep(leg.Back)
	if !fits {
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	_, _ = io.WriteString(w, "ok\n")
}

// verdict is what the strict server counted, and the most that any client could have been served by it.
func (u *upstream) verdict(d time.Duration) (served, refused, most int, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.legs) == 0 {
		return 0, 0, 0, nil
	}
	most, err = ceiling.Config{Limit: Limit, Window: time.Second}.Most(d, u.legs)
	return u.served, u.refused, most, err
}
