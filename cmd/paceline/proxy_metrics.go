package main

import (
	"net"
	"net/http"
	"regexp"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/paceline-go/paceline/internal/app/proxy"
	"github.com/paceline-go/paceline/observe"
	"github.com/paceline-go/paceline/observe/prom"
)

// liveHeap is the memory in use at the end of the latest garbage collection. It is the one number
// that shows a leak under any load.
var liveHeap = collectors.GoRuntimeMetricsRule{Matcher: regexp.MustCompile(`^/gc/(heap/live:bytes|cycles/total:gc-cycles)$`)}

// proxyMetrics serves the metrics of the proxy and those of its process: goroutines, memory, open
// files, processor time.
func proxyMetrics(p *proxy.Proxy, r *reload) http.Handler {
	return withProcess(prom.Live(p.Sources), r)
}

// namelessMetrics is proxyMetrics without names of clients, keys, hosts and upstreams.
func namelessMetrics(p *proxy.Proxy, f *reload) http.Handler {
	return withProcess(prom.Live(func() (all []observe.Source) {
		for _, s := range p.NumberedSources() {
			all = append(all, prom.WithoutNames(s))
		}
		return all
	}), f)
}

// serveMetrics serves the address for the numbers alone, if there is one.
func serveMetrics(c *proxy.Config, p *proxy.Proxy, s *proxy.Server, l net.Listener, r *reload) {
	switch {
	case l == nil:
	case c.Metrics.Names:
		s.ServeMetrics(l, proxyMetrics(p, r))
	default:
		s.ServeMetrics(l, namelessMetrics(p, r))
	}
}

func withProcess(c prometheus.Collector, f *reload) http.Handler {
	r := prometheus.NewRegistry()
	r.MustRegister(f.metrics()...)
	r.MustRegister(c, collectors.NewGoCollector(collectors.WithGoCollectorRuntimeMetrics(liveHeap)),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{})
}
