package send

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// sends lets clients send requests to a server that acts by its script, over and over. It compares
// what each Exchange reports with what arrived. The promises: No request arrives twice. A request
// reported as not written did not arrive. An answered request arrived and is reported as written.
// Every request to a server that only answers gets an answer.
func sends(t *testing.T, l link, foreign bool, clients, each int, script []byte) {
	var n atomic.Int64
	next := func() act {
		i := int(n.Add(1)) - 1
		if len(script) == 0 {
			return answer
		}
		return act(script[i%len(script)] % byte(acts))
	}
	s, url, bare := l.start(t, next)
	var rt http.RoundTripper = bare
	if foreign {
		rt = roundTripper(bare.RoundTrip)
	}
	b := over1(t, rt)
	type result struct {
		shape  shape
		a      Exchange
		status int
		err    error
	}
	results := make([]result, clients*each)
	var all sync.WaitGroup
	for c := range clients {
		all.Go(func() {
			for i := range each {
				id := c*each + i
				r := &results[id]
				r.shape = shapes[(id*7+len(script))%len(shapes)]
				ctx, cancel := context.WithTimeout(t.Context(), 15*time.Millisecond)
				if len(script) == 0 {
					cancel()
					ctx, cancel = context.WithCancel(t.Context())
				}
				r.status, r.err = finish(b.Send(r.shape.request(ctx, url, id), &r.a))
				cancel()
			}
		})
	}
	all.Wait()
	s.close()
	for id := range results {
		r := &results[id]
		came, written := s.came(id), r.a.Written()
		bad := ""
		switch {
		case came > 1:
			bad = "arrived more than once"
		case came == 1 && !written:
			bad = "arrived, and counts as not written"
		case r.status != 0 && (came != 1 || !written):
			bad = "was answered"
		case r.status == 0 && r.err == nil:
			bad = "neither an answer nor an error"
		case len(script) == 0 && r.err != nil:
			bad = "failed, and the server only answers"
		case errors.Is(r.err, ErrTwice) && !written:
			bad = "refused before it was written"
		}
		if bad != "" {
			t.Errorf("%s, script %v: request %d (%v) %s: arrived %d times, written %v, %d, %v", l.name, script, id, r.shape, bad, came, written, r.status, r.err)
		}
	}
}

func TestRandom(t *testing.T) {
	for _, l := range links {
		for seed := range uint64(3) {
			t.Run(fmt.Sprint(l.name, "/", seed), func(t *testing.T) {
				t.Parallel()
				rng := rand.New(rand.NewPCG(seed, 1))
				script := make([]byte, 60)
				for i := range script {
					if script[i] = byte(rng.IntN(int(acts))); script[i] == byte(stall) && rng.IntN(4) > 0 || rng.IntN(3) == 0 {
						script[i] = byte(answer)
					}
				}
				if seed == 0 {
					script = nil
				}
				sends(t, l, seed == 1, 6, 10, script)
			})
		}
	}
}

// FuzzOnce is the same, with a server's script from anywhere. The first byte is how clients and server speak.
func FuzzOnce(f *testing.F) {
	f.Add([]byte{})
	for l := range links {
		f.Add([]byte{byte(l), 0, 2, 0, 1, 0, 9, 0, 10, 3, 4, 11})
		f.Add([]byte{byte(l) | 16, 0, 0, 2, 2, 9, 9, 7, 8, 6})
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) == 0 || len(script) > 100 {
			return
		}
		sends(t, links[int(script[0]%16)%len(links)], script[0]&16 > 0, 2, 2, script[1:])
	})
}

// A server that is restarted again and again, in good order, while many clients send: HTTP/2 says GOAWAY, HTTP/1.1 closes what is
// idle.
func TestRestarts(t *testing.T) {
	for _, l := range []link{links[0], links[2], links[4], links[5]} {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			restarts(t, l)
		})
	}
}

func restarts(t *testing.T, l link) {
	arrivals := map[string]int{}
	var mu sync.Mutex
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		arrivals[r.Header.Get("X-Id")]++
	})
	var at atomic.Pointer[http.Server]
	server, client := tlsConfigs("h2", "http/1.1")
	start := func() { // each time elsewhere: a port of which the listener is gone may be a client's by now
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Error(err)
			return
		}
		srv := &http.Server{Addr: ln.Addr().String(), Handler: handler, TLSConfig: server.Clone(), ErrorLog: log.New(io.Discard, "", 0)}
		at.Store(srv)
		if l.secure {
			go srv.ServeTLS(ln, "", "")
		} else {
			go srv.Serve(ln)
		}
	}
	start()
	url := "http://127.0.0.1"
	if l.secure {
		url = "https://127.0.0.1"
	}
	b := over1(t, &http.Transport{
		TLSClientConfig: client, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 8,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, at.Load().Addr)
		},
	})
	over := make(chan struct{})
	var all sync.WaitGroup
	var answered, unwritten, lost atomic.Int64
	for c := range 8 {
		all.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-over:
					return
				default:
				}
				id, a := c*100_000+i, new(Exchange)
				status, err := finish(b.Send(shapes[i%len(shapes)].request(t.Context(), url, id), a))
				mu.Lock()
				came := arrivals[idOf(id)]
				mu.Unlock()
				switch {
				case came > 1 || came == 1 && !a.Written() || status == 200 && came != 1:
					t.Errorf("request %d arrived %d times, written %v, %d, %v", id, came, a.Written(), status, err)
				case err == nil:
					answered.Add(1)
				case a.Written():
					lost.Add(1)
				default:
					unwritten.Add(1)
				}
			}
		})
	}
	for n := 1; n <= 10; n++ {
		for answered.Load() < int64(20*n) && !t.Failed() {
			time.Sleep(time.Millisecond)
		}
		srv := at.Load()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		if srv.Shutdown(ctx) != nil {
			srv.Close()
		}
		cancel()
		start()
	}
	close(over)
	all.Wait()
	at.Load().Close()
	t.Logf("%d answered, %d never written, %d written without an answer", answered.Load(), unwritten.Load(), lost.Load())
}
