package main

import (
	"net/http"
	"regexp"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/paceline-go/paceline/internal/app/proxy"
	"github.com/paceline-go/paceline/observe/prom"
)

// liveHeap is the memory in use at the end of the latest garbage collection. It is the one number
// that shows a leak under any load.
var liveHeap = collectors.GoRuntimeMetricsRule{Matcher: regexp.MustCompile(`^/gc/(heap/live:bytes|cycles/total:gc-cycles)$`)}

// proxyMetrics serves the metrics of the proxy and those of its process: goroutines, memory, open
// files, processor time.
func proxyMetrics(p *proxy.Proxy) http.Handler {
	r := prometheus.NewRegistry()
	r.MustRegister(prom.Live(p.Sources), collectors.NewGoCollector(collectors.WithGoCollectorRuntimeMetrics(liveHeap)),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{})
}
