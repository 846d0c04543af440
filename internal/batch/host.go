package batch

import (
	"fmt"
	"hash/maphash"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/paceline-go/paceline/dispatch"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/mono"
	"github.com/paceline-go/paceline/queue"
)

// hostOf names the server of a URL.
func hostOf(u *url.URL) string {
	if u == nil {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// goesTo is where a request goes next, which a redirect may have changed.
func goesTo(r *queue.Request) string { return r.Value.(*job).hop.host }

// called is a host as people call it.
func called(host string) string {
	_, name, _ := strings.Cut(host, "://")
	return name
}

// hosts has what is known of every host of a run. Of each 8 bytes are kept, as there may be as many as requests: two that are
// alike are taken for one, and then a wrong one is waited for.
type hosts struct {
	seed maphash.Seed

	mu sync.Mutex
	of map[uint64]known
	// down is in how many groups a host is: each finds out for itself.
	down map[string]int
}

type known uint8

const (
	named    known = 1 << iota // by the input, not only by a redirect
	answered                   // in this run
)

func newHosts() hosts {
	return hosts{seed: maphash.MakeSeed(), of: map[uint64]known{}, down: map[string]int{}}
}

func (h *hosts) note(host string, k known) {
	id := maphash.String(h.seed, host)
	h.mu.Lock()
	defer h.mu.Unlock()
	if was := h.of[id]; was&k == 0 {
		h.of[id] = was | k
	}
}

func (h *hosts) known(host string) known {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.of[maphash.String(h.seed, host)]
}

// isNews notes that a host goes down in a group or is back, and says whether it is the first to go or the last to be back.
func (h *hosts) isNews(host string, down bool) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if down {
		h.down[host]++
		return h.down[host] == 1
	}
	if h.down[host]--; h.down[host] > 0 {
		return false
	}
	delete(h.down, host)
	return true
}

// outage tells of a host that goes down or is back. It is called by each Pool, one at a time. One of the input that has never
// answered, with a wrong name or certificate, is most likely wrong in the input, and ends the run.
func (r *Run) outage(h dispatch.HostInfo) {
	host := called(h.Host)
	isNews := r.hosts.isNews(h.Host, h.Down)
	if !h.Down && !isNews {
		return
	}
	if !h.Down {
		r.tell("%s is back after %v", host, h.Lasted.Round(100*time.Millisecond))
		return
	}
	if r.hosts.known(h.Host) == named && (h.Kind == limit.NoName || h.Kind == limit.BadCertificate) {
		r.course.first(&r.course.wrong, fmt.Errorf("%w: %s: %s", ErrHost, host, inWords(&h)))
		r.Drain()
		return
	}
	if !isNews {
		return
	}
	r.tell("nothing arrives at %s: %s; one request at a time goes to see, nothing is lost", host, inWords(&h))
}

// isAstray says that nothing came back from where only a redirect led. That this machine has no files left is no fault of the redirect.
func (r *Run) isAstray(j *job, ans *dispatch.Answer) bool {
	return j.hop.count > 0 && j.res.status == 0 && j.res.err != nil && j.res.sight != limit.NoFiles && !ans.Returned && r.hosts.known(j.hop.host)&named == 0
}

// blame has a request answer for where its redirect led: a server made that up, and whoever waits for a host that is not there waits for
// ever. So it is an attempt, and the host is not looked at again and again. One that has answered is, as it may have an outage.
func (r *Run) blame(j *job, ans *dispatch.Answer) {
	ans.Sight = limit.Working // else what was never sent is no attempt
	if r.hosts.known(j.hop.host)&answered != 0 {
		ans.Sight = limit.Broken
	}
	host, _ := r.sender.secrets.HideIn(called(j.hop.host))
	ans.Reason = fmt.Sprintf("redirected to %s: %s", host, ans.Reason)
}

// inWords is why nothing arrives: what went wrong in the end, without the way there.
func inWords(h *dispatch.HostInfo) string {
	cause := h.Reason[strings.LastIndex(h.Reason, ": ")+1:]
	cause = strings.TrimSpace(cause)
	switch h.Kind {
	case limit.NoName:
		return "its name cannot be resolved: " + cause
	case limit.BadCertificate:
		return "the TLS handshake fails: " + cause
	case limit.NoFiles:
		return "this machine has no files left: " + cause
	}
	return cause
}

// probe says in words when the next request goes to see, where nothing else can go.
func probe(now mono.Time, down []dispatch.HostInfo) string {
	next := down[0]
	for _, h := range down[1:] {
		if !h.Probing && h.Next < next.Next || next.Probing {
			next = h
		}
	}
	if next.Probing {
		return "the answer of " + called(next.Host)
	}
	return "the next request that goes to see, " + left(next.Next.Sub(now))
}
