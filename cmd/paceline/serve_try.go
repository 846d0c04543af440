package main

import (
	"cmp"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/ratetest/llm"
)

// greeting is the text of a server at its start: its address, its rule, and commands to try it.
type greeting struct {
	what string
	try  []string // for a shell, ready to paste
}

func (g greeting) text() string {
	text := g.what + "; Ctrl-C ends it\n"
	if len(g.try) > 0 {
		text += "try it in another terminal:\n  " + strings.Join(g.try, "\n  ") + "\n"
	}
	return text
}

// reachable returns an address for clients. An address for listening on all of a machine's
// addresses becomes the loopback address.
func reachable(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil && ip.IsUnspecified() {
		u.Host = "127.0.0.1:" + u.Port()
	}
	return u.String()
}

// many is the beginning of a pipe of n lines. The number of the line stands in place of &.
func many(n int, line string) string {
	return fmt.Sprintf("seq %d | sed %s | ", n, cli.Quoted("s|.*|"+line+"|"))
}

// urls is the beginning of a pipe of n URLs, each on a line. Each is url followed by the number of
// its line.
func urls(n int, url string) string {
	return fmt.Sprintf("seq -f %s %d | ", cli.Quoted(strings.ReplaceAll(url, "%", "%%")+"%g"), n)
}

// limitFlag writes a limit as paceline run expects it.
func limitFlag(n int64, per time.Duration) string {
	unit := plain(per)
	if one, ok := strings.CutPrefix(unit, "1"); ok && (one == "s" || one == "m" || one == "h") {
		unit = one
	}
	return fmt.Sprintf("--limit %d/%s", n, unit)
}

// try returns commands that try a provider's fake.
func (s *serveProvider) try(url string, limits []provider.Policy) []string {
	at := url + "/any/path"
	return []string{
		"curl -i " + at,
		"paceline explain " + explainedAs(s.about.Name) + at,
		urls(triesOf(limits), at+"?id=") + "paceline run " + serverFlags(limits) + " -",
	}
}

// tries is how many requests a command sends that tries a server.
const tries = 3

// triesOf is how many of them go without a long wait.
func triesOf(limits []provider.Policy) int {
	const long = 10 * time.Second
	n := int64(tries)
	for _, p := range limits {
		if p.Unit == provider.Requests && p.Window > long {
			n = min(n, p.Limit)
		}
	}
	return int(n)
}

// serverFlags are the limits of run for a server: the first, and all others that so few requests can exceed.
func serverFlags(limits []provider.Policy) string {
	var flags []string
	add := func(flag string) {
		if !slices.Contains(flags, flag) {
			flags = append(flags, flag)
		}
	}
	rated := false
	for _, p := range limits {
		switch {
		case p.Rule == provider.Concurrency:
			if p.Limit < tries {
				add(fmt.Sprintf("--concurrency %d", p.Limit))
			}
		case p.Unit != provider.Requests || rated && p.Limit >= tries && (p.Burst == 0 || p.Burst >= tries):
		case p.Rule == provider.Bucket && p.Burst > 0 && p.Burst < p.Limit:
			// Any window of run lets as much through at once as its limit.
			rated = true
			add(limitFlag(p.Burst, p.Window*time.Duration(p.Burst)/time.Duration(p.Limit)))
		default:
			rated = true
			add(limitFlag(p.Limit, p.Window))
		}
	}
	if !rated {
		flags = append([]string{"--limit 1/s"}, flags...)
	}
	return strings.Join(flags, " ")
}

// explainedAs returns the flag with which explain reads answers of this provider. It is empty if
// explain has no name for it, as for shapes of header fields.
func explainedAs(vendor string) string {
	if _, ok := provider.Lookup(vendor); !ok {
		return ""
	}
	return "--provider " + vendor + " "
}

// try returns commands that try a fake of a language model.
func (s *serveLLM) try(url string, limits llm.Limits) []string {
	model, key := "gpt-4o", "k"
	if len(s.config.Keys) > 0 {
		key = s.config.Keys[0]
	}
	path, fields, line := "/v1/chat/completions", "-H "+cli.Quoted("Authorization: Bearer "+key),
		`{"custom_id":"&","method":"POST","url":"/v1/chat/completions","body":%s}`
	if s.config.Provider == llm.Anthropic {
		model, path, fields = "claude-sonnet-4", "/v1/messages",
			"-H "+cli.Quoted("x-api-key: "+key)+" -H 'anthropic-version: 2023-06-01'"
		line = `{"custom_id":"&","params":%s}`
	}
	if len(s.config.Models) > 0 && !s.config.Published {
		model = s.config.Models[0]
	}
	body := fmt.Sprintf(`{"model":%q,"max_tokens":50,"messages":[{"role":"user","content":"Hello"}]}`, model)
	run := ""
	if limits.Window == time.Minute {
		for _, l := range []struct {
			flag string
			n    int64
		}{{"rpm", limits.Requests}, {"tpm", limits.Tokens}, {"itpm", limits.Input}, {"otpm", limits.Output}} {
			if l.n > 0 {
				run += fmt.Sprintf(" --%s %d", l.flag, l.n)
			}
		}
	} else if limits.Requests > 0 {
		run = " " + limitFlag(limits.Requests, limits.Window)
	}
	return []string{
		"curl -i " + url + path + " " + fields + " -H 'Content-Type: application/json' -d " + cli.Quoted(body),
		many(3, fmt.Sprintf(line, body)) + "KEY=" + cli.Quoted(key) + " paceline run --key-env KEY --base-url " + url +
			cmp.Or(run, " --limit none") + " -",
	}
}
