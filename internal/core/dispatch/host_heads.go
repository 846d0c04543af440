package dispatch

import (
	"cmp"
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/paceline-go/paceline/internal/core/histogram"
	"github.com/paceline-go/paceline/internal/core/queue"
	"github.com/paceline-go/paceline/internal/core/stack"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// hosts keep load away from hosts that nothing reaches. A host may be closed: it is down, its load
// begins slowly, or this machine has no file descriptors left. The queue then holds it until an
// instant that the host names, or until the host has news. Requests to other hosts go on, and
// waiting for a held host costs nothing.
type hosts struct {
	queue *queue.Queue
	rand  *rand.Rand
	told  func(HostInfo)
	all   map[string]*host
	most  int   // size above which hosts without known state are forgotten
	last  *host // the latest looked-up host; nil: none
	held  held
	down  []*host // in the order in which they went down

	answerTime time.Duration // as in Config
	timed      bool          // there was a request with a deadline: answers are measured
	slow       func(HostInfo, time.Duration)
}

// fewHosts is how many hosts are kept before any is forgotten.
const fewHosts = 1024

type host struct {
	name     string
	health   *stack.Breaker
	inFlight int
	reason   string    // of the latest failure
	ready    mono.Time // while it is held
	place    int       // its index in the heap of held hosts; −1: it is not held
	answers  histogram.Recent
	alone    queue.Ticket  // of the request in flight whose answer is expected too late; zero: none
	slowFor  time.Duration // the latest reported whole time of a request that is too short; 0: none
}

// held is a heap of hosts, by the instant at which they open.
type held []*host

func (h held) Len() int           { return len(h) }
func (h held) Less(i, j int) bool { return h[i].ready < h[j].ready }
func (h held) Swap(i, j int)      { h[i], h[j] = h[j], h[i]; h[i].place, h[j].place = i, j }
func (h *held) Push(x any)        { x.(*host).place = len(*h); *h = append(*h, x.(*host)) }
func (h *held) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	(*h)[last], *h = nil, (*h)[:last]
	x.place = -1
	return x
}

// of returns the host of that name.
func (s *hosts) of(name string) *host {
	if s.last != nil && s.last.name == name {
		return s.last
	}
	h := s.all[name]
	if h == nil {
		if len(s.all) >= s.most {
			s.sweep()
		}
		watch, err := stack.NewBreaker(stack.BreakerConfig{Rand: s.rand})
		if err != nil {
			panic(err) // its zero configuration is ready
		}
		h = &host{name: name, health: watch, place: -1}
		s.all[name] = h
	}
	s.last = h
	return h
}

// sweep forgets hosts without waiting requests and without requests in flight. Their known state is
// lost: an outage of such a host must be found again, by a few failures.
func (s *hosts) sweep() {
	for name, h := range s.all {
		if h.inFlight > 0 || s.queue.WaitFor(name) > 0 {
			continue
		}
		if h.place >= 0 {
			heap.Remove(&s.held, h.place)
			s.queue.Release(name)
		}
		s.isUp(h)
		delete(s.all, name)
	}
	s.most = max(fewHosts, 2*len(s.all))
}

// lets returns the host of that name if a request may go there now. Otherwise it returns nil and
// holds the host, so that a request to another host becomes the head of the queue.
func (s *hosts) lets(now mono.Time, name string, cost *limit.Cost) *host {
	h := s.of(name)
	if h.ready = h.health.Ready(now, *cost); h.ready <= now {
		return h
	}
	s.queue.Hold(h.name)
	heap.Push(&s.held, h)
	return nil
}

// release ends the hold of hosts that are open again.
func (s *hosts) release(now mono.Time) {
	for len(s.held) > 0 && s.held[0].ready <= now {
		s.queue.Release(heap.Pop(&s.held).(*host).name)
	}
}

// wake is the first instant at which release has an effect; AfterSettle: at a Done; Never: no host
// is held.
func (s *hosts) wake() mono.Time {
	if len(s.held) == 0 {
		return limit.Never
	}
	return s.held[0].ready
}

func (h *host) admit(sent *limit.Sent) {
	h.inFlight++
	h.health.Admit(sent)
}

// takes returns how long an answer of the host takes, for a request that is of use for whole; 0: not
// known, or it does not matter. usual is false if whole is too short for most answers.
func (s *hosts) takes(h *host, whole time.Duration) (d time.Duration, usual bool) {
	if s.answerTime != 0 {
		return max(s.answerTime, 0), s.answerTime < whole
	}
	return h.answers.Within(whole)
}

// inTime reports whether the head of the queue, which has a deadline, may be sent to its host now. It
// may if its answer is expected before that, and due is then when that ends. It may
// also go alone, if all of its time was too short for an answer. If it may not, it has ended or was
// set aside.
func (d *Dispatcher) inTime(now mono.Time, t queue.Ticket, h *host, deadline mono.Time) (due mono.Time, alone,
	ok bool) {
	d.hosts.timed = true
	whole := d.queue.Whole(t)
	takes, usual := d.hosts.takes(h, whole)
	left := deadline.Sub(now)
	if !usual {
		d.hosts.tooShort(now, h, whole)
		if h.alone != (queue.Ticket{}) {
			d.queue.SetAside(now, t)
			return 0, false, false
		}
		if takes >= whole { // as configured
			takes = 0
		}
	}
	if left <= takes {
		e := d.queue.Lapse(now, t,
			fmt.Sprintf("%v are left, and answers take %v", left.Round(time.Microsecond), takes.Round(time.Microsecond)))
		if e.State.Ended() {
			d.ended(e)
		}
		return 0, false, false
	}
	return deadline.Add(-takes), !usual, true
}

// tooShort reports, once, that all of a request's time is too short for an answer of its host.
func (s *hosts) tooShort(now mono.Time, h *host, whole time.Duration) {
	if h.slowFor == 0 && whole > 0 {
		h.slowFor = whole
		s.slow(s.info(now, h), whole)
	}
}

// goesAlone makes others with too little time wait for the answer of this one.
func (s *hosts) goesAlone(h *host, t queue.Ticket) {
	h.alone = t
	s.queue.HoldAside(h.name)
}

// answered measures an answer, and ends the time of a request that went alone.
func (s *hosts) answered(now mono.Time, a *Attempt, accepted bool) {
	h := a.host
	if accepted {
		h.answers.Add(now.Sub(a.At))
	}
	if h.alone != (queue.Ticket{}) && h.alone == a.Ticket {
		h.alone = queue.Ticket{}
		s.queue.ReleaseAside(h.name)
	}
	if s.answerTime == 0 && h.answers.P95() < h.slowFor/2 {
		h.slowFor = 0 // a slow time after this one is news
	}
}

// settle records the evidence of an attempt about its host. It returns free if the attempt is not
// to be counted: it never left this machine, and the fault is the host's, not the request's.
func (s *hosts) settle(now mono.Time, a *Attempt, sent *limit.Sent, ans *Answer) (free bool) {
	h := a.host
	h.inFlight--
	if s.timed {
		s.answered(now, a, ans.Result == limit.Accepted)
	}
	if ans.Result == limit.Unsent && ans.Link == limit.Implied && !ans.Returned && !ans.Invalid && !ans.Banned {
		ans.Link = limit.Unreachable
	}
	h.health.Settle(now, sent, &ans.Outcome)
	if ans.Link > limit.Working {
		h.reason = ans.Reason
	}
	if state, news := h.health.News(now); news {
		if s.isUp(h); state.Down {
			s.down = append(s.down, h)
		}
		s.told(s.info(now, h))
	}
	if h.place >= 0 {
		h.ready = h.health.Ready(now, a.Request.Cost)
		heap.Fix(&s.held, h.place)
	}
	return ans.Result == limit.Unsent && stack.Excuses(ans.Link, h.health.State(now).Down)
}

// isUp takes a host off the list of those that are down.
func (s *hosts) isUp(h *host) {
	s.down = slices.DeleteFunc(s.down, func(d *host) bool { return d == h })
}

// HostInfo is the known state of a host: a server that gets requests, by its name from
// queue.Config.Host.
type HostInfo struct {
	Host string
	// Down means that nothing reaches it. One request at a time probes, and a request that was not
	// sent is no attempt.
	Down   bool
	Kind   limit.Link // the latest evidence of the outage
	Reason string     // of the latest failed attempt
	// Since is, while Down, when the first failure of the outage was known; else when the last
	// outage ended.
	Since    mono.Time
	Next     mono.Time     // while Down: no request goes sooner
	Probing  bool          // while Down: a probe is on its way
	Probes   int           // failed probes
	Lasted   time.Duration // while it is not Down: the length of the last outage; 0: there was none
	InFlight int
	Waiting  int // those in a backoff included
	// AnswerTime is Config.AnswerTime. If that is not positive, it is what 95 % of the latest answers
	// did not exceed, from the decision to send to the end of the answer; 0: none was measured.
	// Answers are measured once a request has a deadline.
	AnswerTime time.Duration
}

func (s *hosts) info(now mono.Time, h *host) HostInfo {
	st := h.health.State(now)
	return HostInfo{
		Host: h.name, Down: st.Down, Kind: st.Kind, Reason: h.reason, Since: st.Since, Next: st.Next, Probing: st.Probing,
		Probes: st.Probes, Lasted: st.Lasted, InFlight: h.inFlight, Waiting: s.queue.WaitFor(h.name),
		AnswerTime: cmp.Or(max(s.answerTime, 0), h.answers.P95()),
	}
}

// Hosts returns the known state of hosts, in the order of their names. Hosts without waiting
// requests may be forgotten.
func (d *Dispatcher) Hosts(now mono.Time) []HostInfo {
	infos := make([]HostInfo, 0, len(d.hosts.all))
	for _, h := range d.hosts.all {
		infos = append(infos, d.hosts.info(now, h))
	}
	slices.SortFunc(infos, func(a, b HostInfo) int { return strings.Compare(a.Host, b.Host) })
	return infos
}

// Down returns the hosts that nothing reaches, in the order in which they went down.
func (d *Dispatcher) Down(now mono.Time) []HostInfo {
	infos := make([]HostInfo, len(d.hosts.down))
	for i, h := range d.hosts.down {
		infos[i] = d.hosts.info(now, h)
	}
	return infos
}

// Stuck reports whether the only work is to wait for hosts that have been down for long or longer.
// Requests wait for those hosts, none waits for others, and none is in flight. h is the host that
// went down first. If it is not so, at is when to ask again unless something happens before;
// limit.Never: not at all.
func (d *Dispatcher) Stuck(now mono.Time, long time.Duration) (h HostInfo, at mono.Time, stuck bool) {
	at = limit.Never
	waiting := 0
	for _, down := range d.hosts.down {
		over, _ := down.health.State(now).Over(long)
		if over > now {
			at = min(at, over)
			continue
		}
		if n := d.queue.WaitFor(down.name); n > 0 {
			if waiting == 0 {
				h = d.hosts.info(now, down)
			}
			waiting += n
		}
	}
	c := d.queue.Counts()
	if waiting == 0 || waiting < c.Waiting || c.InFlight > 0 {
		return HostInfo{}, at, false
	}
	return h, at, true
}
