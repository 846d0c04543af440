package main

import (
	"maps"
	"slices"

	"github.com/paceline-go/paceline/ratetest/service"
)

// tables are the formats of verbs that report tables.
var tables = []string{"text", "json", "csv"}

// flagValues has, by command, the values of flags that take only certain values, for a shell to
// complete.
var flagValues = map[string]map[string][]string{
	"run": {
		"strangers": slices.Sorted(maps.Keys(countingKinds)),
		"format":    {"auto", "jsonl", "openai-batch", "anthropic-batch"}, "rule": {"bucket", "rolling"},
		"count": {"documented", "reserved", "sum", "used", "produced", "input"}, "unanswered": {"resend", "hold"},
		"partly": {"done", "again", "hold"}, "sync": {"group", "always"},
		"progress": {"auto", "off", "5s"}, "color": {"auto", "always", "never"},
		"log-level": {"debug", "info", "warn", "error"},
		"limit":     {"20/s", "100/min", "4500/h", "auto", "none"},
	},
	"proxy": {
		"log": {"text", "json", "off"}, "log-level": {"debug", "info", "warn", "error"},
		"limit": {"20/s", "100/min", "4500/h", "none"}, "tunnels": {"public", "none"}, "env": {"sh", "docker", "json"},
	},
	"serve exchange":  {"output": tables},
	"serve openai":    {"output": tables, "count": countings},
	"serve anthropic": {"output": tables, "count": countings},
}

// completions are flagValues and the names of providers and presets, of which a shell completes one and help lists none.
func completions() map[string]map[string][]string {
	all := maps.Clone(flagValues)
	for _, verb := range []string{"run", "proxy", "exec", "explain"} {
		names := map[string][]string{"provider": providerNames(), "preset": presetNames()}
		maps.Copy(names, all[verb])
		all[verb] = names
	}
	for _, p := range service.All() {
		all["serve "+p.Name] = map[string][]string{"preset": p.Presets}
	}
	return all
}

// meant maps names that other programs use for a flag to our names, where these are too different
// to be found as a misspelling.
var meant = map[string]string{
	"rate": "limit", "rps": "limit", "qps": "limit", "rate-limit": "limit", "throttle": "limit", "r": "limit",
	"l":       "limit",
	"workers": "concurrency", "parallel": "concurrency", "threads": "concurrency", "jobs": "concurrency",
	"c": "concurrency", "j": "concurrency",
	"retries": "attempts", "retry": "attempts", "max-retries": "attempts", "tries": "attempts",
	"max-time": "timeout", "t": "timeout",
	"data": "body", "payload": "body", "d": "body", "request": "method", "verb": "method", "X": "method",
	"file": "out", "save": "out", "output-file": "out", "out-file": "out", "results": "out",
	"key": "key-env", "keys": "key-env", "api-key": "key-env", "token": "key-env",
	"cost": "budget", "deadline": "ttl or --until", "silent": "quiet", "s": "quiet", "debug": "verbose", "plan": "dry-run",
	"n":    "dry-run",
	"port": "addr", "listen": "addr", "address": "addr", "bind": "addr", "host": "addr", "p": "addr", "rpm": "limit",
}
