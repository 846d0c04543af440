package proxy

import (
	"fmt"
	"log/slog"
	"sync"
	"time"
)

const (
	// hangupsFor is how long the hang-ups of a program are gathered into a line.
	hangupsFor = 10 * time.Second
	// mostHangups bounds the programs that a line names.
	mostHangups = 64
)

// hangups are clients that went away while their requests were in line. The log has one line for
// each program.
type hangups struct {
	mu    sync.Mutex
	all   map[string]*hangup // by the product in User-Agent
	log   *slog.Logger
	due   bool // a line is to come
	timer *time.Timer
}

// hangup is a program that hung up.
type hangup struct {
	times             int
	shortest, longest time.Duration
	helps             string
	reported          bool
}

// note takes in that the client of a request is gone.
func (h *hangups) note(v *visit) {
	waited, program := time.Since(v.came), product(v.in.UserAgent())
	if program == "" {
		program = "a program without User-Agent"
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	x := h.all[program]
	if x == nil {
		if len(h.all) >= mostHangups {
			return
		}
		if h.all == nil {
			h.all = map[string]*hangup{}
		}
		x = &hangup{shortest: waited}
		h.all[program], h.log = x, v.proxy.config.Log
	}
	x.times++
	x.shortest, x.longest = min(x.shortest, waited), max(x.longest, waited)
	if x.helps = "a longer timeout in the program"; x.shortest >= leastBound {
		bound := "--max-wait"
		if c := &v.proxy.config; c.Live && !c.Flags { // the file says it
			bound = "max_wait"
		}
		x.helps += fmt.Sprintf("; or %s below %s, with which it gets 429 and Retry-After", bound, inWords(x.shortest))
	}
	if !x.reported && !h.due {
		h.due, h.timer = true, time.AfterFunc(hangupsFor, h.report)
	}
}

// leastBound is the least bound of waits that is advised. With a lower one hardly a request would wait.
const leastBound = time.Second

// report writes the lines that are due.
func (h *hangups) report() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.due {
		h.due = false
		h.timer.Stop()
	}
	for program, x := range h.all {
		if !x.reported {
			x.reported = true
			h.log.Warn("a program hung up while its requests were in line", "program", program, "times", x.times,
				"shortest_wait", inWords(x.shortest), "longest_wait", inWords(x.longest), "helps", x.helps)
		}
	}
}
