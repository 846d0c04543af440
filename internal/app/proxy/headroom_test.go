package proxy

import (
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/share/sharetest"
)

// Beside a client in bulk that leaves a quarter free others wait for nothing, and it has the rest of
// the part that is used.
func TestReserveOfAClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		served := &tally{n: map[string]int{}}
		conf := to(mustURL(t, "http://server.test"), "20/s")
		conf.MaxWait = time.Hour
		conf.Upstreams[0].Use = 0.9
		conf.Clients = Clients{Header: "X-Who", List: []Client{{Name: "bulk", Reserve: 0.25}, {Name: "people"}}}
		all := newCrowd(t, virtual(t, served, conf).proxy)
		all.join("bulk", 700, same("/bulk"))
		for range 30 {
			time.Sleep(500 * time.Millisecond)
			for range 3 { // beside the 15 of bulk there is room for three more below 90 %
				if waited, ok := all.ask("people", "/people"); ok && waited > 0 {
					t.Errorf("people wait for %v", waited)
				}
			}
			time.Sleep(500 * time.Millisecond)
		}
		if n := served.lately(); n["/bulk"] < 30*12-10 || n["/bulk"] > 31*15 {
			t.Errorf("in 30 s of 20/s, with 3/s of people's: %v", n)
		}
		time.Sleep(20 * time.Second)
		if n := served.lately(); n["/bulk"] == 0 {
			t.Error("bulk starves")
		}
	})
}

// A client in bulk leaves a quarter free in a store, too: people at another proxy, and at the same one, wait for
// nothing. It has the rest.
func TestReserveOfAClientInAStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, store := newStrictServer(t, 20, time.Second), new(sharetest.Memory)
		var all [2]*crowd
		for i := range all {
			conf := sharingConfig(t, s, store, "20/s")
			conf.MaxWait = time.Hour
			conf.Clients = Clients{Header: "X-Who", List: []Client{{Name: "bulk", Reserve: 0.25}, {Name: "people"}}}
			p, err := New(conf)
			if err != nil {
				t.Fatal(err)
			}
			all[i] = newCrowd(t, p)
			defer func() {
				all[i].leave()
				all[i].asking.Wait()
				conf.Shared.Close()
				p.close()
			}()
		}
		all[0].join("bulk", 1500, same("/bulk"))
		all[1].ask("people", "/people") // waits until the store is not new
		time.Sleep(2 * time.Second)
		asked, late := 0, 0
		before := s.all()
		for range 30 {
			for _, at := range all {
				time.Sleep(500 * time.Millisecond)
				asked++
				if waited, ok := at.ask("people", "/people"); ok && waited > 50*time.Millisecond {
					late++
				}
			}
		}
		if late > asked/20 {
			t.Errorf("%d of %d of people's wait for more than 50 ms", late, asked)
		}
		if n := s.all() - before - asked; n < 30*13*95/100 || n > 31*15 {
			t.Errorf("in 30 s of 20/s, with 2/s of people's, bulk sent %d", n)
		}
		if s.refused > 0 {
			t.Errorf("%d refused", s.refused)
		}
	})
}

// A ramp in a store begins with the first proxy, and not anew with the next one.
func TestRampInAStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, store := newStrictServer(t, 20, time.Second), new(sharetest.Memory)
		var all []*crowd
		start := func() *crowd {
			conf := sharingConfig(t, s, store, "20/s")
			conf.MaxWait, conf.Upstreams[0].Ramp = time.Hour, 20*time.Second
			p, err := New(conf)
			if err != nil {
				t.Fatal(err)
			}
			c := newCrowd(t, p)
			all = append(all, c)
			t.Cleanup(func() {
				c.leave()
				c.asking.Wait()
				conf.Shared.Close()
				p.close()
			})
			return c
		}
		first := start()
		first.ask("a", "/") // when the store is not new any more
		first.join("a", 1000, same("/"))
		for _, most := range []int{55, 155} { // 20/s · t²/2T: 50 within 10 s, 150 more within 20 s
			before := s.all()
			time.Sleep(10 * time.Second)
			if n := s.all() - before; n > most || n < most*8/10 {
				t.Errorf("%d within 10 s of the ramp, expected %d at most", n, most)
			}
			if most == 55 {
				start().join("b", 300, same("/"))
			}
		}
		before := s.all()
		time.Sleep(10 * time.Second)
		if n := s.all() - before; n < 185 || s.refused > 0 {
			t.Errorf("%d in 10 s after the ramp, %d refused", n, s.refused)
		}
	})
}

// A client has so many requests in flight as it may, to the end of their answers.
func TestInFlightOfAClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most, others atomic.Int64
		server := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/other" {
				others.Add(1)
				return
			}
			most.Store(max(most.Load(), now.Add(1)))
			http.NewResponseController(w).Flush() // the header, long before the end
			time.Sleep(time.Second)
			now.Add(-1)
		})
		conf := to(mustURL(t, "http://server.test"), "1000/s")
		conf.MaxWait = time.Hour
		conf.Clients = Clients{Header: "X-Who", List: []Client{{Name: "bulk", InFlight: 4}}}
		all := newCrowd(t, virtual(t, server, conf).proxy)
		all.join("bulk", 20, same("/bulk"))
		if all.join("others", 20, same("/other")); others.Load() != 20 {
			t.Errorf("%d of others' went at once", others.Load())
		}
		began := time.Now()
		all.asking.Wait()
		if took := time.Since(began); most.Load() != 4 || took > 6*time.Second {
			t.Errorf("%d at once, want 4; all took %v", most.Load(), took)
		}
	})
}
