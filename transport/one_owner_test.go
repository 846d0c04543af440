package transport_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/pool"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/transport"
)

// A limiter has no lock. So two owners of one are an error where the second is made, whatever they are.
func TestALimiterHasOneOwner(t *testing.T) {
	clients, err := transport.NewClients(transport.ClientsConfig{})
	if err != nil {
		t.Fatal(err)
	}
	shares := func(l limit.Limiter) error {
		_, err := transport.New(transport.Config{Base: newBase(0, ok), Limiter: l, Clients: clients, Client: nobody})
		return err
	}
	owners := map[string]func(l limit.Limiter) error{
		"a Transport": func(l limit.Limiter) error {
			_, err := transport.New(transport.Config{Base: newBase(0, ok), Limiter: l})
			return err
		},
		"a partition": func(l limit.Limiter) error {
			tr := mustNew(t, transport.Config{Base: newBase(0, ok), Limit: func(p transport.Partition) limit.Limiter {
				if p.Scope == provider.IP {
					return l
				}
				return nil
			}})
			resp, err := tr.RoundTrip(get(t, "http://a.test/"))
			if err == nil {
				resp.Body.Close()
			}
			return err
		},
		"a Transport with Clients": shares,
		"a Gate": func(l limit.Limiter) error {
			_, err := paceline.NewGateWith(paceline.GateConfig{Limiter: limit.Named("wrapped", l)})
			return err
		},
		"a Pool": func(l limit.Limiter) error {
			_, err := pool.New(pool.Config{Send: func(context.Context, pool.Attempt) pool.Answer { return pool.Answer{} },
				Keys: []pool.Key{{Name: "a", Limiter: l}}})
			return err
		},
		"a Pool's Shared": func(l limit.Limiter) error {
			_, err := pool.New(pool.Config{Send: func(context.Context, pool.Attempt) pool.Answer { return pool.Answer{} },
				Keys: []pool.Key{{Name: "a", Shared: []*pool.Shared{{Name: "both", Limiter: l}}}}})
			return err
		},
	}
	for first, take := range owners {
		for second, takeAgain := range owners {
			l := limit.MustRolling(20, time.Second)
			if err := take(l); err != nil {
				t.Fatalf("%s alone: %v", first, err)
			}
			if err := takeAgain(l); err == nil || !strings.Contains(err.Error(), "expected: one") {
				t.Errorf("%s, then %s: %v", first, second, err)
			}
		}
	}
}

// A configuration that is refused takes no limiter: the corrected one may have it.
func TestARefusedConfigurationTakesNoLimiter(t *testing.T) {
	l := limit.MustRolling(20, time.Second)
	if _, err := transport.New(transport.Config{Limiter: l, Attempts: -1}); err == nil {
		t.Fatal("Attempts -1 is taken")
	}
	if _, err := paceline.NewGateWith(paceline.GateConfig{Limiter: l, Fill: -1}); err == nil {
		t.Fatal("Fill -1 is taken")
	}
	mustNew(t, transport.Config{Limiter: l})
}
