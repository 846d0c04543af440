package prom_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/observe"
	"github.com/paceline-go/paceline/observe/prom"
)

// Metrics of a Gate in a program that has a registry. A Collector of sources that come and go asks
// for them at each scrape.
func ExampleNew() {
	gate := paceline.NewGate(limit.MustRolling(20, time.Second))
	registry := prometheus.NewRegistry()
	registry.MustRegister(prom.New(gate))
	families, err := registry.Gather()
	fmt.Println(len(families) > 0, err)

	var tenants *prom.Collector = prom.Live(func() []observe.Source {
		return []observe.Source{observe.NameSource("tenant", gate)}
	})
	page := httptest.NewRecorder()
	tenants.Handler().ServeHTTP(page, httptest.NewRequest("GET", "/metrics", nil))
	fmt.Println(strings.Contains(page.Body.String(), `source="tenant"`))
	// Output:
	// true <nil>
	// true
}
