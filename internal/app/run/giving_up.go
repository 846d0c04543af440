package run

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/sending"
	"github.com/paceline-go/paceline/internal/app/run/telling"
	"github.com/paceline-go/paceline/internal/secret"
	"github.com/paceline-go/paceline/internal/send/outgoing"
	"github.com/paceline-go/paceline/internal/text"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/pool"
)

const (
	// deniedFirst bounds a run that is denied every request from the beginning. deniedLater bounds
	// one that was served before. It is longer since forbidden requests may lie together in the
	// input, and then look the same.
	deniedFirst, deniedLater = time.Minute, time.Hour
)

// denials keeps since when the server denies every request. Safe for concurrent use.
type denials struct {
	c       *Config
	teller  *telling.Teller
	course  *course
	epoch   time.Time
	trouble atomic.Int64 // until when refusals are evaluated, since the epoch: see troubled

	mu     sync.Mutex
	since  time.Time // zero: the last answer with evidence was no denial
	served bool      // some request was served
}

// heard takes in an answer.
func (d *denials) heard(now time.Time, ans *pool.Answer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case ans.Result == limit.Accepted:
		d.since, d.served = time.Time{}, true
	case ans.Denied && d.since.IsZero():
		d.since = now
	}
}

func (d *denials) last() (since time.Time, served bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.since, d.served
}

// deniedItself reports whether a denial is the request's own fault. It is if there is no key and
// other requests were served, or if the request is already a dead letter for a denial.
func (r *judge) deniedItself(j *job) bool {
	_, served := r.denials.last()
	return r.c.keyless && served || r.tally.WasRefused(j.r.ID)
}

// isForAll reports whether the account without credit, or the key out of use, of which an answer speaks, is that of
// all requests. Where the run knows no key, it is if the requests carry a credential and go to one host. Otherwise the
// answer is about one page or one host, and others may be served.
func (r *judge) isForAll(j *job) bool {
	if !r.c.keyless {
		return true
	}
	private := slices.ContainsFunc(r.c.Header, func(t format.Template) bool { return secret.PrivateField(t.Name()) }) ||
		slices.ContainsFunc(r.c.Query, func(t format.Template) bool { return secret.PrivateParameter(t.Name(), "") })
	for name := range j.r.Header {
		private = private || secret.PrivateField(name)
	}
	return private && r.hosts.count() == 1
}

// excluded judges an answer that says that the key's limit for the model is 0. It is as if there was
// no such model. Where there are several keys, another may have one.
func (r *judge) excluded(j *job, ans *pool.Answer) {
	ans.Outcome = limit.Outcome{Result: limit.Failed, Link: ans.Link, ArrivedAgo: ans.ArrivedAgo, RTT: ans.RTT}
	ans.Invalid, ans.Returned = true, false
	ans.Denied = len(r.c.Keys) > 1 || j.r.Estimate.Model == ""
	j.noModel = !ans.Denied
}

// giveUp ends a run whose requests were all denied for too long. The rest waits for another run.
func (d *denials) giveUp(keys []pool.KeyInfo, reason string) {
	left, last := 0, ""
	for _, k := range keys {
		if k.Banned() {
			continue
		}
		if k.Denials < telling.ManyDenials {
			return
		}
		left, last = left+1, k.Name
	}
	since, served := d.last()
	patience := deniedFirst
	if served {
		patience = deniedLater
	}
	if most := d.c.MaxOutage; most != 0 {
		patience = max(most, 0)
	}
	lasts := time.Since(since)
	if left == 0 || since.IsZero() || lasts < patience {
		return
	}
	who := fmt.Sprintf("key %s denies all", last)
	switch {
	case d.c.keyless:
		who = "the server denies all"
	case left > 1:
		who = fmt.Sprintf("all keys (%d) deny all", left)
	}
	d.course.goesWrong(exhausted(fmt.Sprintf("%s for %v: %s", who, lasts.Round(time.Second), reason)))
}

// exhausted is a pool.ErrExhausted with a text of its own.
type exhausted string

func (e exhausted) Error() string { return string(e) }
func (e exhausted) Unwrap() error { return pool.ErrExhausted }

// troubled is how long after a refusal tell still evaluates refusals.
const troubled = time.Minute

// tell reports what the refusals so far prove: an option of the user is wrong, or a key gets
// nothing but refusals.
func (d *denials) tell(of *pool.Pool, key int, ans *pool.Answer) {
	now := time.Since(d.epoch)
	if ans.Result == limit.Limited || ans.Misordered || ans.Denied {
		d.trouble.Store(int64(now + troubled))
	} else if int64(now) > d.trouble.Load() {
		return
	}
	keys := of.Keys()
	if ans.Denied {
		d.giveUp(keys, ans.Reason)
	}
	for i, k := range keys {
		reason := ""
		if i == key {
			reason = ans.Reason
		}
		d.teller.TellRow(&k, reason)
		for _, retreat := range k.Retreats {
			at := d.epoch.Add(time.Duration(retreat.Until))
			if d.teller.IsNews(retreat.Option+retreat.Limit+k.Name, at, 0) {
				d.teller.Tell(d.retreatText(k.Name, &retreat, at.Format("15:04:05")))
			}
		}
	}
}

// retreatText says that a promise of the user proved wrong, what follows until then, and what to change.
func (d *denials) retreatText(key string, of *limit.Retreat, until string) string {
	whose := " of key " + key
	if d.c.keyless {
		whose = ""
	}
	if of.Option == "Gap" {
		return fmt.Sprintf("--nonce-gap %v is too short: a request%s overtook the one before it, and a nonce was refused. "+
			"Until %s one request%s is in flight at a time; expected a longer --nonce-gap, or none", d.c.Gap, whose, until, whose)
	}
	return fmt.Sprintf("--latency-max %v is too short: requests%s were refused that keep to it and to the limit. "+
		"Until %s the limit counts without it; expected a longer --latency-max, or none", d.c.Arrivals.OneWayMax, whose, until)
}

// outOfUse are the names of the keys that the server refused for good.
func (p pools) outOfUse() (names []string) {
	if p[0].r.c.keyless {
		return nil
	}
	for _, k := range p[0].pool.Keys() {
		if k.Banned() {
			names = append(names, k.Name)
		}
	}
	return names
}

// goesTo returns the host to which a request goes next. A redirect may have changed it.
func goesTo(r *pool.Request) string { return r.Value.(*job).hop.Host }

// called is the name of a host for people.
func called(host string) string {
	_, name, _ := strings.Cut(host, "://")
	return name
}

// hosts keeps the state of every host of a run. There may be as many hosts as requests, so it keeps
// only 8 bytes of each name. Two hosts with equal bytes are taken for one. A run may then wait for
// a host whose name is wrong.
type hosts struct {
	teller *telling.Teller
	course *course
	seed   maphash.Seed

	mu sync.Mutex
	of map[uint64]known
	// down counts the groups in which a host is down. Each group finds that out for itself.
	down map[string]int
}

type known uint8

const (
	named    known = 1 << iota // the input names the host, not only a redirect
	answered                   // the host has answered in this run
)

func newHosts(teller *telling.Teller, course *course) *hosts {
	return &hosts{teller: teller, course: course, seed: maphash.MakeSeed(), of: map[uint64]known{}, down: map[string]int{}}
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

// answers notes that a host has sent an answer, if it has.
func (h *hosts) answers(host string, res *sending.Response) {
	if res.Status != 0 {
		h.note(host, answered)
	}
}

// anyAnswered reports whether a host has answered in this run.
func (h *hosts) anyAnswered() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, k := range h.of {
		if k&answered != 0 {
			return true
		}
	}
	return false
}

// count returns how many hosts are known.
func (h *hosts) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.of)
}

// isNews notes that a host goes down in a group, or comes back there. It reports whether this group
// is the first where the host is down, or the last where it comes back.
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

// outage reports a host that goes down or comes back. Each Pool calls it, one call at a time. A
// host in the input that never answered and whose name or certificate is wrong ends the run: most
// likely the input is wrong.
func (h *hosts) outage(of pool.HostInfo) {
	host := called(of.Host)
	isNews := h.isNews(of.Host, of.Down)
	if !of.Down && !isNews {
		return
	}
	if !of.Down {
		h.teller.Say("%s is back after %v", host, of.Lasted.Round(100*time.Millisecond))
		return
	}
	if h.known(of.Host) == named && (of.Kind == limit.NoName || of.Kind == limit.BadCertificate) {
		err := fmt.Errorf("%w: %s: %s", ErrHost, host, inWords(&of))
		if strings.HasPrefix(of.Reason, outgoing.Prefix) {
			err = noWay(of.Reason)
		}
		h.course.goesWrong(err)
		return
	}
	if !isNews {
		return
	}
	h.teller.Say("%s %s: %s; one request at a time goes to see, nothing is lost", outageOf(&of), host, inWords(&of))
}

// slow reports a host whose answers take longer than all of the time of requests. Each Pool calls
// it, one call at a time.
func (h *hosts) slow(of pool.HostInfo, whole time.Duration) {
	if h.teller.IsNews("slow "+of.Host, time.Now(), time.Minute) {
		h.teller.Say("answers of %s take %s (95 %% of them no longer), and requests are of use for %s: of those that wait for it "+
			"one at a time goes",
			called(of.Host), text.Span(of.AnswerTime), text.Span(whole))
	}
}

// isShut reports whether the proxy on the way out lets nothing pass: it wants a password, or it has
// refused the way and no host has answered yet. Then the run ends. Any other request would fail in
// the same way.
func (r *judge) isShut(w *outgoing.Error) bool {
	if !w.Refuses && !(w.Forbids && !r.hosts.anyAnswered()) {
		return false
	}
	r.course.goesWrong(noWay(w.Error()))
	return true
}

// noWay is an ErrHost with a text of its own.
type noWay string

func (e noWay) Error() string { return string(e) }
func (e noWay) Unwrap() error { return ErrHost }

// isAstray reports whether nothing came back from a host that only a redirect led to. If this
// machine has no file descriptors left, the redirect is not at fault.
func (h *hosts) isAstray(j *job, ans *pool.Answer) bool {
	return j.hop.Count > 0 && j.res.Status == 0 && j.res.Err != nil && j.res.Sight != limit.NoFiles && !ans.Returned &&
		h.known(j.hop.Host)&named == 0
}

// blame counts a failed attempt for a request whose redirect led to a host that does not answer. A
// server chose that host. If it does not exist, a wait for it would never end. The run does wait
// for a host that has answered before, since it may have an outage.
func (h *hosts) blame(j *job, ans *pool.Answer, secrets *format.Secrets) {
	ans.Link = limit.Working // otherwise an unsent request would not count as an attempt
	if h.known(j.hop.Host)&answered != 0 {
		ans.Link = limit.Broken
	}
	host, _ := secrets.Of(j.r).HideIn(called(j.hop.Host))
	ans.Reason = fmt.Sprintf("redirected to %s: %s", host, ans.Reason)
}

// outageOf says what an outage is. The name of the host follows.
func outageOf(h *pool.HostInfo) string {
	if h.Kind == limit.Broken || h.Kind == limit.Away {
		return "only errors come from"
	}
	return "nothing arrives at"
}

// inWords says why a host is down. It keeps the last part of the error, which has the cause.
func inWords(h *pool.HostInfo) string {
	if strings.HasPrefix(h.Reason, outgoing.Prefix) {
		return h.Reason
	}
	cause := h.Reason[strings.LastIndex(h.Reason, ": ")+1:]
	cause = strings.TrimSuffix(strings.TrimSpace(cause), ".")
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

// probe returns when the next request tries a host that is down, if no other request can go, and the wait in words.
func probe(down []pool.HostInfo) (at mono.Time, text string) {
	next := down[0]
	for _, h := range down[1:] {
		if !h.Probing && h.Next < next.Next || next.Probing {
			next = h
		}
	}
	if next.Probing {
		return next.Next, "the answer of " + called(next.Host)
	}
	return next.Next, "the next request that goes to see"
}
