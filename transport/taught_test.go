package transport_test

import (
	"io"
	"math/rand/v2"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/fairshare"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/ratetest"
	"github.com/paceline-go/paceline/transport"
)

// A limiter without known figures learns the server's statements, as the limit of all requests or
// of a partition. It also learns of a refusal without a reason.
func TestTaught(t *testing.T) {
	for _, c := range []struct {
		name  string
		serve http.HandlerFunc
		by    string
	}{
		{"served", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("RateLimit-Policy", `"default";q=100;w=60`)
			w.Header().Set("RateLimit", `"default";r=99;t=60`)
		}, "server"},
		{"refused", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("RateLimit-Policy", `"default";q=100;w=60`)
			w.Header().Set("RateLimit", `"default";r=0;t=60`)
			w.WriteHeader(http.StatusTooManyRequests)
		}, "server"},
		{"refused without a word", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusTooManyRequests)
		}, "refusals"},
	} {
		for _, shared := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				auto, err := fairshare.NewAuto(fairshare.AutoConfig{Rng: rand.New(rand.NewPCG(1, 1))})
				if err != nil {
					t.Fatal(err)
				}
				config := transport.Config{Base: ratetest.InMemory(c.serve), Attempts: 1}
				if shared {
					config.Limiter = limit.NewAll(auto)
				} else {
					config.Limit = func(p transport.Partition) limit.Limiter {
						if p.Scope == provider.Key {
							return auto
						}
						return nil
					}
				}
				tr, err := transport.New(config)
				if err != nil {
					t.Fatal(err)
				}
				req, _ := http.NewRequest(http.MethodGet, "http://api.test/x", nil)
				req.Header.Set("Authorization", "Bearer one")
				resp, err := tr.RoundTrip(req)
				if err != nil {
					t.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				f := auto.Found()
				if f.By != c.by || c.by == "server" && (f.Rule.N != 100 || f.Rule.Per != time.Minute) {
					t.Errorf("%s, shared %v: found %v (%v)", c.name, shared, f, f.By)
				}
			})
		}
	}
}
