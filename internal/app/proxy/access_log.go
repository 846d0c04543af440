package proxy

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/paceline-go/paceline/internal/app/journal"
	"github.com/paceline-go/paceline/internal/secret"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/transport"
)

// log writes the line of a request. It leaves out the query and the header: both may have keys in
// them. The line of an upgrade is written when its connection has ended.
func (v *visit) log() {
	log := v.proxy.config.Access
	if v.handed || !log.Enabled(context.Background(), slog.LevelInfo) {
		return
	}
	took := time.Since(v.came)
	all := make([]slog.Attr, 0, 16)
	all = append(all, slog.String("method", shortened(v.in.Method)), slog.String("path", v.path()),
		slog.Int("status", v.w.status),
		slog.Float64("waited_ms", ms(v.waited())), slog.Float64("took_ms", ms(took)), slog.Int64("bytes", v.w.sent()))
	if v.w.over != nil {
		all = append(all, slog.String("upgrade", shortened(v.in.Header.Get("Upgrade"))))
	}
	if v.client != nil {
		all = append(all, slog.String("client", v.client.Name))
	} else if at := addressOf(v.in); at.IsValid() { // of whom there is no key
		all = append(all, slog.String("address", at.String()))
	}
	if v.upstream != nil {
		all = append(all, slog.String("upstream", v.upstream.Name))
	}
	if v.target != "" {
		all = append(all, slog.String("target", v.target))
	}
	if v.key != "" {
		all = append(all, slog.String("key", v.key))
	}
	if v.attempts > 1 {
		all = append(all, slog.Int("attempts", v.attempts))
	}
	if v.failed != nil {
		if all = append(all, slog.String("failed", v.failed.kind)); v.failed.limit != "" {
			all = append(all, slog.String("limit", v.failed.limit))
		}
	}
	if causes := v.causes(); len(causes) > 0 {
		all = append(all, slog.Attr{Key: "waited_for_ms", Value: slog.GroupValue(causes...)})
	}
	log.LogAttrs(context.Background(), slog.LevelInfo, "request", all...)
}

// causes are the limits that the request waited for, in milliseconds: waited_for_ms, as results of batches
// have it.
func (v *visit) causes() (all []slog.Attr) {
	if v.waits == nil {
		return nil
	}
	for _, l := range v.waits.Limits {
		if n := l.Waited.Milliseconds(); n > 0 {
			all = append(all, slog.Int64(l.Limit, n))
		}
	}
	return all
}

// openSent opens the file of attempts.
func (p *Proxy) openSent() (err error) {
	c := &p.config
	if c.Sent == "" {
		return nil
	}
	if p.sent, err = journal.OpenSentLog(c.Sent, c.Log); err != nil {
		return &ConfigError{Field: "Sent", Err: err}
	}
	return nil
}

// settled writes the line of an attempt for an audit.
func settled(a transport.Attempt, o limit.Outcome) {
	v := visitOf(a.Request.Context())
	ofProxy, ofClient := v.proxy.sent, v.client.Sent
	if ofProxy == nil && ofClient == nil {
		return
	}
	line := journal.SentLine{Upstream: v.upstream.Name, Client: v.client.Name, Method: shortened(v.in.Method),
		Path: v.path()}
	ofProxy.Add(line, &a, &o)
	ofClient.Add(line, &a, &o)
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// path is that of the request, without secrets that the proxy knows.
func (v *visit) path() string {
	p := v.in.URL.EscapedPath()
	for _, u := range v.proxy.routes { // v may have none, or the wrong one
		p, _ = u.secrets.HideIn(p)
	}
	if v.clientKey != "" && v.repeats(p) {
		p = strings.ReplaceAll(p, v.clientKey, secret.Hidden)
	}
	return shortenedPath(p)
}

const mostPath = 256

func shortenedPath(p string) string {
	if len(p) > mostPath {
		return p[:mostPath] + "…"
	}
	return p
}
