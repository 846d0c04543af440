//go:build unix

package keeper

import (
	"fmt"
	"strings"

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
			if c.Name == r.client.Name {
				observe.AddCounts(&sum, &c.Counts)
			}
		}
	}
	f.Requests, f.Refused = sum.Sent-sum.Unsent, sum.Limited
	f.Named, f.Others, f.Elsewhere = r.door.Figures()
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
	}
	if f.Others > 0 {
		fmt.Fprintf(&b, "; %d connections to %d other hosts passed unread", f.Others, f.Elsewhere)
	}
	return b.String()
}
