package transport_test

import (
	"math/rand/v2"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/fairshare"
	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/ratetest/latency"
	"github.com/paceline-go/paceline/ratetest/service"
	"github.com/paceline-go/paceline/transport"
)

// A server that states its limit serves nearly all of it in the first window, with at most one
// request refused, though nobody configured the limit.
func TestAloneUsesWhatIsStated(t *testing.T) {
	race.Without(t) // the requests go as those of TestPerSecond
	states := 0
	for _, info := range service.All() {
		for _, preset := range info.Presets {
			t.Run(preset, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					if alone(t, info.Name, preset) {
						states++
					}
				})
			})
		}
	}
	if states < 19 {
		t.Errorf("%d sets of limits are stated, expected at least 19", states)
	}
}

// alone uses a server as the only client of its key, and reports whether the server states a limit.
func alone(t *testing.T, name, preset string) bool {
	const oneWay = 20 * time.Millisecond
	s, err := service.New(service.Config{Provider: name, Preset: preset, Before: latency.Constant(oneWay), After: latency.Constant(oneWay)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	server := &served{Handler: s}
	auto, err := fairshare.NewAuto(fairshare.AutoConfig{Alone: true, Rng: rand.New(rand.NewPCG(1, 1))})
	if err != nil {
		t.Fatal(err)
	}
	tr := mustNew(t, transport.Config{Base: server, Attempts: 1, Limit: func(p transport.Partition) limit.Limiter {
		if p.Scope == provider.Key {
			return auto
		}
		return nil
	}})
	get := func() {
		r, _ := http.NewRequest(http.MethodGet, "http://api.test/x", nil)
		r.Header.Set("Authorization", "Bearer one")
		if resp, err := tr.RoundTrip(r); err == nil {
			resp.Body.Close()
		} else {
			time.Sleep(100 * time.Millisecond)
		}
	}
	get()
	if by := auto.Found().By; by != "server" && by != "remains" {
		return false
	}
	var first provider.Policy // the limit that is used up first
	for _, p := range s.Limits() {
		ofKey := p.Scope == provider.Key || p.Scope == provider.Resource && p.Name == "requests" // GitHub's core
		if ofKey && p.Unit == provider.Requests && p.Window > 0 && (first.Limit == 0 || p.Limit < first.Limit) {
			first = p
		}
	}
	if first.Limit == 0 {
		return false
	}
	begin, end := time.Now(), make(chan struct{})
	for range 64 {
		go func() {
			for time.Since(begin) < first.Window {
				get()
			}
			end <- struct{}{}
		}()
	}
	time.Sleep(min(first.Window-3*oneWay, time.Hour))
	server.mu.Lock()
	ok, refused := server.status[http.StatusOK], server.status[http.StatusTooManyRequests]
	server.mu.Unlock()
	for range 64 {
		<-end
	}
	t.Logf("%v: %d of %d in %v, and %d refused", auto.Found(), ok, first.Limit, first.Window, refused)
	if float64(ok) < 0.9*float64(first.Limit) || refused > 1 {
		t.Errorf("%v: %d of %d were served in the first window, and %d refused", auto.Found(), ok, first.Limit, refused)
	}
	return true
}
