//go:build unix

package keeper

import (
	"fmt"
	"strings"
	"time"

	"github.com/paceline-go/paceline/internal/app/proxy"
	"github.com/paceline-go/paceline/internal/text"
	"github.com/paceline-go/paceline/observe"
)

// Figures are the figures of a run's end.
type Figures struct {
	Hosts     []string `json:"hosts"`
	Requests  int64    `json:"requests"`
	Refused   int64    `json:"refused"`
	Named     int64    `json:"connections"`
	Others    int64    `json:"other_connections"`
	Elsewhere int      `json:"other_hosts"`
	// Denied answers have status 401 or 403.
	Denied      int64   `json:"denied"`
	Banned      int64   `json:"banned"`
	LongestWait float64 `json:"longest_wait_seconds"`

	captured bool
}

func (r *Run) figures(p *proxy.Proxy) (f Figures) {
	f.captured = r.Capture
	for i := range r.Upstreams {
		f.Hosts = append(f.Hosts, r.Upstreams[i].To.Host)
	}
	var sum observe.Counts
	for _, source := range p.Sources() {
		for _, c := range source.Snapshot().Clients {
			if proxy.IsLineOf(c.Name, r.client.Name) {
				observe.AddCounts(&sum, &c.Counts)
			}
		}
	}
	f.Requests, f.Refused = sum.Sent-sum.Unsent, sum.Limited
	f.Named, f.Others, f.Elsewhere = r.door.Figures()
	f.Denied, f.Banned, f.LongestWait = r.door.Denied(), r.door.Banned(), r.door.LongestWait().Seconds()
	return f
}

// Words is the line at the end. A program that went past the proxy is named.
func (f Figures) Words() string {
	hosts := text.Some(f.Hosts, 3)
	var b strings.Builder
	switch {
	case f.Named == 0 && f.captured:
		fmt.Fprintf(&b, "paceline: the program asked nothing of %s", hosts)
	case f.Named == 0:
		fmt.Fprintf(&b, "paceline: nothing of the program came for %s: it may not read HTTPS_PROXY (try --capture), or it asked "+
			"nothing there", hosts)
	default:
		fmt.Fprintf(&b, "paceline: %d requests to %s, %d refused", f.Requests, hosts, f.Refused)
		if f.Denied > 0 {
			fmt.Fprintf(&b, ", %d denied (401, 403)", f.Denied)
		}
		if f.Banned > 0 {
			fmt.Fprintf(&b, ", %s", text.Count(int(f.Banned), "ban", "bans"))
		}
		if f.LongestWait >= 1 {
			fmt.Fprintf(&b, ", longest wait %s", text.Span(time.Duration(f.LongestWait*float64(time.Second))))
		}
	}
	if f.Others > 0 {
		fmt.Fprintf(&b, "; %s to %s passed unread", text.Count(int(f.Others), "connection", "connections"),
			text.Count(f.Elsewhere, "other host", "other hosts"))
	}
	return b.String()
}
