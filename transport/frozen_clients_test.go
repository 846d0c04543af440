package transport_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/transport"
)

// ofClients is a Transport with one partition at hand, whose clients have limits of their own. goes asks for a client.
func ofClients(t *testing.T, c transport.ClientsConfig) (tr *transport.Transport, goes func(client int) error) {
	t.Helper()
	common, err := transport.NewClients(c)
	if err != nil {
		t.Fatal(err)
	}
	tr = mustNew(t, transport.Config{Base: newBase(0, ok), Clients: common, MaxPartitions: 1, Client: func(r *http.Request) transport.Client {
		return transport.Client{Name: r.Header.Get("Client"), Limit: func() limit.Limiter { return rolling(t, 5, time.Hour, limit.Requests) }}
	}})
	return tr, func(client int) error {
		_, _, err := do(t, tr, get(t, "http://a.test/", "Client", fmt.Sprint("client ", client)))
		return err
	}
}

// Of idle clients the latest ones stay at hand, as many as Most says. Without a bound of its own, nobody is refused.
func TestIdleClientsAtHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr, goes := ofClients(t, transport.ClientsConfig{Most: 3})
		for i := range 12 {
			if err := goes(i); err != nil {
				t.Errorf("client %d: %v", i, err)
			}
			if got, want := tr.Snapshot().Frozen.Clients, max(i-3, 0); got != want {
				t.Errorf("after client %d, %d are frozen, expected %d", i, got, want)
			}
			time.Sleep(time.Second)
		}
	})
}

// A client that is refused since there is no room for it counts as refused, as a partition does.
func TestRefusedClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr, goes := ofClients(t, transport.ClientsConfig{Most: 1, MaxFrozen: 1})
		refused := int64(0)
		for i := range 8 {
			if err := goes(i); errors.Is(err, transport.ErrFull) {
				refused++
			} else if err != nil {
				t.Errorf("client %d: %v", i, err)
			}
		}
		if f := tr.Snapshot().Frozen; refused == 0 || f.Refused != refused {
			t.Errorf("%d were refused: %+v", refused, f)
		}
	})
}

// Each change reaches the limit of a client that has long been idle, and not the first alone.
func TestChangesReachFrozenClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		common, err := transport.NewClients(transport.ClientsConfig{Most: 1})
		if err != nil {
			t.Fatal(err)
		}
		own := func() limit.Limiter { return rolling(t, 5, time.Hour, limit.Requests) }
		tr := mustNew(t, transport.Config{Base: newBase(0, ok), Clients: common, MaxPartitions: 1, MaxWait: atMost(time.Nanosecond), Client: func(r *http.Request) transport.Client {
			return transport.Client{Name: r.Header.Get("Client"), Limit: own}
		}})
		goes := func(client string) (n int) {
			for range 10 {
				if _, _, err := do(t, tr, get(t, "http://a.test/", "Client", client)); err != nil {
					break
				}
				n++
			}
			return n
		}
		if n := goes("a"); n != 5 {
			t.Errorf("%d go of 5", n)
		}
		for i := range 5 {
			do(t, tr, get(t, "http://a.test/", "Client", fmt.Sprint("other ", i)))
		}
		for _, most := range []int64{6, 7, 8} {
			common.Change(func(now mono.Time, _ transport.Partition, l limit.Limiter) {
				if err := l.(*limit.Rolling).SetLimit(now, most); err != nil {
					t.Error(err)
				}
			})
		}
		if n := goes("a"); n != 3 {
			t.Errorf("%d more go of 8", n)
		}
	})
}

// A client's own limit outlives it, whatever names others make up.
func TestFrozenClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := mustNew(t, transport.Config{
			Base: newBase(0, ok), MaxPartitions: 5, MaxFrozen: 10_000, MaxWait: func(*http.Request) time.Duration { return time.Second },
			Client: func(r *http.Request) transport.Client {
				return transport.Client{Name: r.Header.Get("Client"), Limit: func() limit.Limiter { return limit.MustRolling(2, 24*time.Hour) }}
			},
		})
		ask := func(name string) error {
			_, _, err := do(t, tr, get(t, "http://a.test/", "Client", name))
			return err
		}
		for range 2 {
			if err := ask("one"); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(3 * time.Hour)
		full := 0
		for i := range 200 {
			if err := ask(fmt.Sprint("made up ", i)); errors.Is(err, transport.ErrFull) {
				full++
			} else if err != nil {
				t.Fatal(err)
			}
		}
		if full < 100 || full > 190 {
			t.Errorf("%d of 200 names were refused", full)
		}
		err := ask("one")
		if e, _ := errors.AsType[*transport.Error](err); !errors.Is(err, paceline.ErrDeadline) || e.Partition.Scope != transport.ScopeClient {
			t.Errorf("its own limit: %v", err)
		}
		if err := ask("made up 0"); err != nil {
			t.Errorf("a client that is known, and may send one more: %v", err)
		}
		time.Sleep(25 * time.Hour)
		if err := ask("new"); err != nil {
			t.Errorf("nothing counts any more: %v", err)
		}
	})
}
