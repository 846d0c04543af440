// Package prom exports Snapshots of a paceline.Gate, Group, Pool or transport.Transport to
// Prometheus, as metrics.
//
//	http.Handle("/metrics", prom.Handler(gate, observe.NameSource("exchange", pool)))
//
// A program with a Prometheus registry of its own registers a Collector of package prom in that
// registry, and does not use Handler. The Collector takes a Snapshot of its sources at each scrape,
// and does nothing between scrapes. The file deploy/alerts.yaml contains alert rules for these
// metrics.
//
// Names of clients and hosts come from strangers, so label values are bounded in length and in
// number: 100 clients, 100 keys and 50 hosts for each source. The values that come first get series
// of their own. All later values together share one series, with the value "other". No label
// contains a credential. For a page for people, use package dashboard.
//
// # Files
//
//	metrics.go   Handler and Collector: the name, help and labels of each metric
//	collect.go   the values of metrics, from a Snapshot; sums of series without names
//	nameless.go  metrics without names of clients, keys, hosts and targets
//	source.go    which clients and keys have series of their own; "other"
package prom
