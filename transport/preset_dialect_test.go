package transport_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/ratetest"
	"github.com/paceline-go/paceline/ratetest/service"
	"github.com/paceline-go/paceline/transport"
)

// With a Preset and nothing else, no refusal of its provider's fake passes as served, also where it has
// status 200. The fake is at a host that no table knows, and a stranger has used up its limits.
func TestPresetsReadTheirRefusals(t *testing.T) {
	race.Without(t) // its requests go one after another, like those of the two tests of frozen partitions
	need.NotShort(t, "TestServiceSpeaks of ratetest/service reads the refusals of each server")
	within := 0
	for _, info := range service.All() {
		for _, preset := range info.Presets {
			who, ok := provider.Publisher(preset)
			published, _ := provider.LookupPreset(preset)
			atOnce := !slices.ContainsFunc(published.Policies, func(p provider.Policy) bool { return p.Unit != provider.Concurrent })
			if !ok || atOnce { // no request after another is refused for others in flight
				continue
			}
			t.Run(preset, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { within += readsRefusals(t, who, info.Name, preset) })
			})
		}
	}
	if within < 4 {
		t.Errorf("%d refusals with status 200, want those of Bybit, Kraken, Shopify and Etherscan", within)
	}
}

// readsRefusals returns how many refusals had status 200.
func readsRefusals(t *testing.T, who provider.Provider, fake, preset string) (within int) {
	var log bytes.Buffer
	s, err := service.New(service.Config{Provider: fake, Preset: preset, LogTo: &log})
	if err != nil {
		t.Fatal(err)
	}
	last := func() (l service.Line) {
		text := strings.Split(strings.TrimSpace(log.String()), "\n")
		for i := len(text) - 1; i >= 0 && l.Event != "request"; i-- {
			if err := json.Unmarshal([]byte(text[i]), &l); err != nil {
				t.Fatal(err)
			}
		}
		return l
	}
	var mu sync.Mutex
	var result limit.Result
	ended := func(a transport.Attempt) {
		mu.Lock()
		result = a.Result
		mu.Unlock()
	}
	refused := 0
	for _, line := range who.Examples {
		request := line[:strings.LastIndex(line, " = ")]
		method, rest, _ := strings.Cut(request, " ")
		target, body, _ := strings.Cut(rest, " ")
		made := func() *http.Request {
			r, err := http.NewRequest(method, "http://a.test"+target, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", "Bearer k")
			return r
		}
		for range 30_000 { // the largest limit: 25,000 of a day
			if resp, err := ratetest.InMemory(s).RoundTrip(made()); err != nil {
				t.Fatal(err)
			} else {
				resp.Body.Close()
			}
			if l := last(); l.Verdict != "accepted" || len(l.Counts) == 0 {
				break
			}
			log.Reset()
		}
		log.Reset()
		// A Transport of its own: it has sent nothing.
		tr := mustNew(t, transport.Config{Base: ratetest.InMemory(s), Preset: preset, Attempts: 1,
			MaxRetryAfter: time.Hour, Ended: ended})
		resp, err := tr.RoundTrip(made())
		if err == nil {
			resp.Body.Close()
		}
		l := last()
		if l.Verdict == "accepted" || l.Verdict == "unauthorized" {
			continue // it counts in no limit
		}
		refused++
		if l.Status == http.StatusOK {
			within++
		}
		if result == limit.Accepted || result == limit.Unsent {
			t.Errorf("%s: refused by %q with %d, and read as %v", request, l.By, l.Status, result)
		}
	}
	if refused == 0 {
		t.Error("nothing was refused")
	}
	return within
}
