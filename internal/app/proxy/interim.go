package proxy

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/sending"
	"github.com/paceline-go/paceline/internal/send"
)

// interimEvery is the time between two interim answers. The shortest timeout in use is httpx's 5 s.
const interimEvery = 2 * time.Second

// interims are the clients that get interim answers (RFC 9110, 15.2) in line. Each answer begins a
// client's timeout for reading anew. Clients differ: an answer that one of them passes over is an
// error, or the end, for another. So no other client gets any. TestInterimClients tries all of them.
var interims = []struct {
	begins string // the User-Agent is this, or this and a version
	has    string // elsewhere in it
	status int
}{
	{"python-requests", "", http.StatusContinue},
	{"Python-urllib", "", http.StatusContinue},
	{"Boto3", "", http.StatusContinue},
	{"python-httpx", "", http.StatusContinue},
	{"Python", " aiohttp/", http.StatusContinue},
	{"Ruby", "", http.StatusContinue},
	{"", "/Python ", http.StatusContinue}, // SDKs over httpx: OpenAI/Python 1.2
	{"node", "", http.StatusProcessing},
	{"undici", "", http.StatusProcessing},
	{"", "/JS ", http.StatusProcessing}, // SDKs over fetch: OpenAI/JS 4.1
	{runs, "", http.StatusProcessing},
}

// runs is the product of paceline run. Its interim answers say where its request is: see sending.FieldLine.
const runs = "paceline"

// interimFor is the status of a client's interim answers; 0: it gets none.
func interimFor(agent string) int {
	for _, row := range interims {
		rest, ok := strings.CutPrefix(agent, row.begins)
		if ok && (row.begins == "" || rest == "" || rest[0] == '/') && strings.Contains(rest+" ", row.has) {
			return row.status
		}
	}
	return 0
}

// newLine returns the line of this request; nil: it gets no interim answers.
func (v *visit) newLine() *line {
	status := v.interim()
	if status == 0 {
		return nil
	}
	return &line{status: status, states: product(v.in.UserAgent()) == runs}
}

// interim is the status of the interim answers to this request; 0: it gets none.
func (v *visit) interim() int {
	h := v.in.Header
	status := interimFor(h.Get("User-Agent"))
	if status == 0 || !v.in.ProtoAtLeast(1, 1) || h["Upgrade"] != nil || v.proxy.config.FinalOnly {
		return 0
	}
	// A server between the client and the proxy may not pass interim answers on.
	if !v.whole && (h["Via"] != nil || slices.ContainsFunc(slices.Collect(maps.Keys(h)), fromServerInFront)) {
		return 0
	}
	if h["Expect"] != nil && status != http.StatusContinue {
		return 0 // net/http may answer 100 at the same time
	}
	return status
}

// line is the time of a request in line, in which its client gets interim answers. Nobody may touch
// the header of the answer meanwhile, as net/http reads it. There is no flush: net/http would begin
// the final answer.
type line struct {
	mu     sync.Mutex // guards waits, and is held during writes
	waits  bool
	status int  // of the answers
	states bool // they say where the request is
	told   bool // there was one
	to     http.ResponseWriter
	every  *send.Watch
	item   send.Watched
}

// enter begins the time in line, unless l is nil.
func (l *line) enter(v *visit) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waits, l.to, l.every, l.item.Of = true, v.w.ResponseWriter, v.proxy.interims, l
	l.every.Begin(&l.item)
}

// leave ends it. Afterwards no interim answer is under way.
func (l *line) leave() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waits {
		l.waits = false
		l.every.End(&l.item)
	}
}

// sends ends it, since the request is sent now. A client that was told of the wait hears that first.
func (l *line) sends() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waits {
		l.waits = false
		l.every.End(&l.item)
		if l.told && l.states {
			l.sayLocked(sending.LineSent)
		}
	}
}

// hands ends it, since another process goes on with the request. Nobody here knows when that sends it, so
// its client hears that it may be sent.
func (l *line) hands(to http.ResponseWriter) {
	if l == nil || !l.states {
		return
	}
	l.leave()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.to = to
	l.sayLocked(sending.LineSent)
}

// sayLocked sends an interim answer.
func (l *line) sayLocked(state string) {
	if h := l.to.Header(); l.states {
		h.Set(sending.FieldLine, state)
		defer h.Del(sending.FieldLine)
	}
	l.to.WriteHeader(l.status)
	l.told = true
}

// Expired sends an interim answer.
func (l *line) Expired() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waits {
		l.sayLocked(sending.LineWaits)
		l.every.Begin(&l.item)
	}
}
