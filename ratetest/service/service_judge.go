package service

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/ratetest/internal/host"
	"github.com/paceline-go/paceline/ratetest/rule"
)

// Line is a line of Config.LogTo: a request that was checked, or one that was answered, where a limit counts
// those that are under way. Instants are by the server's clock, in nanoseconds since 1970. Fields are only ever added.
type Line struct {
	// Event is "request" or "answered".
	Event  string `json:"event"`
	At     int64  `json:"at_unix_ns"`
	N      uint64 `json:"n"` // of the request, from 1, in order of checks
	Method string `json:"method,omitempty"`
	Path   string `json:"path,omitempty"` // its first 200 bytes
	// Client is "key 1", "key 2" and so on, because what a stranger sends may be a secret of another server; its address if it
	// has no key. Bannable is who is banned for it, where there are bans.
	Client   string `json:"client,omitempty"`
	Bannable string `json:"bannable,omitempty"`
	Verdict  string `json:"verdict,omitempty"` // accepted, limited, too_large, banned
	Status   int    `json:"status,omitempty"`
	By       string `json:"by,omitempty"`            // the limit that refused
	Wait     int64  `json:"wait_ns,omitempty"`       // until it would pass if nothing else came
	Until    int64  `json:"until_unix_ns,omitempty"` // the end of the ban
	// Counts are the limits that the request counts in.
	Counts []Count `json:"counts,omitempty"`
}

// Count is what a request is to a limit.
type Count struct {
	Policy string `json:"policy"`
	Who    string `json:"who"` // who shares it
	Cost   int64  `json:"cost"`
	// Left is what was left when the server had decided about the request. Whole is how long it takes from then until everything is there
	// again.
	Left  int64 `json:"left"`
	Whole int64 `json:"whole_ns,omitempty"`
}

// banned is a verdict: refused because of an earlier ban.
const banned = "banned"

// Report sums up what reached a Server, as an independent judge sees it who reads the lines of the log. Fields are
// only ever added.
type Report struct {
	Provider string `json:"provider"`
	Accepted int    `json:"accepted"`
	Limited  int    `json:"limited"` // over a limit; more than a limit is TooLarge
	TooLarge int    `json:"too_large"`
	AfterBan int    `json:"after_ban"` // refused because of a ban
	Bans     int    `json:"bans"`
	// Limits has one entry for each limit and each client, address, model or route that it is kept for, in the order of their first requests.
	Limits []Window `json:"limits"`
	// Wrong is how many of the server's decisions were against the rule, and FirstWrong has the first few. If it is not 0, the server has a
	// bug.
	Wrong      int           `json:"wrong"`
	FirstWrong []string      `json:"first_wrong,omitempty"`
	Dropped    int           `json:"dropped"` // on their way when the server closed
	Peak       int           `json:"peak"`    // most requests under way at once
	Elapsed    time.Duration `json:"elapsed_ns"`
}

// Window is one limit as it is kept for one client, address, model or route.
type Window struct {
	Policy string        `json:"policy"`
	Who    string        `json:"who"`
	Rule   provider.Rule `json:"rule"`
	Limit  int64         `json:"limit"`
	Window time.Duration `json:"window_ns,omitempty"`
	Burst  int64         `json:"burst,omitempty"`
	// Accepted and Refused are how many requests that count in it were accepted and refused. Another limit may have refused them. Cost is
	// what the accepted ones cost.
	Accepted int   `json:"accepted"`
	Refused  int   `json:"refused"`
	Cost     int64 `json:"cost"`
	// Worst is the most that was in use when a request passed; for a bucket, less what had flowed in by then. WorstPercent is
	// the same in percent of what the limit allows.
	Worst        int64   `json:"worst_window"`
	WorstPercent float64 `json:"worst_window_percent"`
}

// judge hears lines. It shares with the server the names of things and the configurations of rules, nothing that
// decides.
type judge struct {
	row    *tableRow
	limits map[string]provider.Policy
	ban    *banRule
	epoch  time.Time // the midnight before the first line
	index  map[[2]string]*dock
	order  []*dock
	bans   map[string]*sentence
	report Report
}

// dock recomputes one limit for one client, address, model or route.
type dock struct {
	Window
	witness rule.Witness // nil: of concurrency
	open    int64
}

type sentence struct {
	refused int // in a row
	served  int // bans
	until   int64
}

func newJudge(row *tableRow, limits []provider.Policy) *judge {
	j := &judge{row: row, ban: banOf(row, limits), limits: map[string]provider.Policy{}, index: map[[2]string]*dock{}, bans: map[string]*sentence{}}
	for _, p := range limits {
		j.limits[p.Name] = p
	}
	j.report.Limits = []Window{}
	return j
}

func (j *judge) dock(c *Count) (*dock, error) {
	id := [2]string{c.Policy, c.Who}
	if d := j.index[id]; d != nil {
		return d, nil
	}
	p, ok := j.limits[c.Policy]
	if !ok {
		return nil, fmt.Errorf("no limit %q", c.Policy)
	}
	d := &dock{Window: Window{Policy: c.Policy, Who: c.Who, Rule: p.Rule, Limit: p.Limit, Window: p.Window, Burst: p.Burst}}
	if p.Rule != provider.Concurrency {
		_, open, err := servedRule(j.row, p, j.epoch)
		if err != nil {
			return nil, err
		}
		if d.witness, err = open(); err != nil {
			return nil, err
		}
	}
	j.index[id] = d
	j.order = append(j.order, d)
	return d, nil
}

// hear tells the dock of an arrival, and reports whether there was room for it.
func (d *dock) hear(at mono.Time, cost int64, passed bool) (room bool) {
	if d.witness == nil {
		if room = d.open < d.Limit; passed {
			d.open++
			d.Worst = max(d.Worst, d.open)
		}
	} else {
		before := d.witness.Finding()
		d.witness.Hear(at, cost, passed)
		after := d.witness.Finding()
		if passed {
			room = after.Most <= after.Limit || after.Most == before.Most
		} else {
			room = after.Needless > before.Needless
		}
		d.Worst = after.Most
	}
	if passed {
		d.Accepted++
		d.Cost += cost
	} else {
		d.Refused++
	}
	return room
}

func (j *judge) hear(line *Line) error {
	at := time.Unix(0, line.At)
	if j.epoch.IsZero() {
		j.epoch = epoch(at)
	}
	now := mono.Of(j.epoch, at)
	if line.Event == "answered" {
		for i := range line.Counts {
			d, err := j.dock(&line.Counts[i])
			if err != nil {
				return err
			}
			if d.open--; d.open < 0 {
				j.wrong("request %d was answered, and never asked", line.N)
			}
		}
		return nil
	}
	j.judgeBan(line)
	switch line.Verdict {
	case banned:
		j.report.AfterBan++
		return nil
	case host.Accepted:
		j.report.Accepted++
	case host.Limited:
		j.report.Limited++
	case host.TooLarge:
		j.report.TooLarge++
	default:
		return fmt.Errorf("verdict %.50q %w", line.Verdict, errLine)
	}
	passed, obstacle := line.Verdict == host.Accepted, false
	for i := range line.Counts {
		c := &line.Counts[i]
		if c.Cost < 1 || c.Cost > provider.MaxCount {
			return fmt.Errorf("cost %d %w", c.Cost, errLine)
		}
		d, err := j.dock(c)
		if err != nil {
			return err
		}
		switch room := d.hear(now, c.Cost, passed); {
		case passed && !room:
			j.wrong("request %d passed though %s of %s had no room", line.N, c.Policy, c.Who)
		case !passed && !room && c.Policy == line.By:
			obstacle = true
		}
	}
	if !passed && !obstacle {
		j.wrong("request %d was refused by %s, which had room", line.N, line.By)
	}
	return nil
}

// judgeBan recomputes who is banned.
func (j *judge) judgeBan(line *Line) {
	b := j.ban
	if b == nil {
		return
	}
	who := line.Bannable
	s := j.bans[who]
	if s == nil {
		s = &sentence{}
		j.bans[who] = s
	}
	if (line.Verdict == banned) != (line.At < s.until) {
		j.wrong("request %d of %s: %s, and the ban ends at %d", line.N, who, line.Verdict, s.until)
	}
	switch line.Verdict {
	case host.Accepted:
		s.refused = 0
	case host.Limited, host.TooLarge:
		if b.by != "" && line.By != b.by {
			return
		}
		if s.refused++; s.refused == b.after {
			s.refused = 0
			d := b.first
			for range min(s.served, 60) {
				d = min(2*d, b.most)
			}
			s.served++
			s.until = line.At + int64(d)
			j.report.Bans++
		}
	}
}

func (j *judge) wrong(format string, args ...any) {
	if j.report.Wrong++; len(j.report.FirstWrong) < 5 {
		j.report.FirstWrong = append(j.report.FirstWrong, fmt.Sprintf(format, args...))
	}
}

// sum returns a report that shares nothing with the judge.
func (j *judge) sum() Report {
	r := j.report
	r.Provider = j.row.name
	r.FirstWrong = append([]string(nil), j.report.FirstWrong...)
	r.Limits = make([]Window, 0, len(j.order))
	for _, d := range j.order {
		w := d.Window
		p := j.limits[w.Policy]
		w.WorstPercent = 100 * float64(w.Worst) / float64(most(&p))
		r.Limits = append(r.Limits, w)
	}
	return r
}

// Judge reads a log that a Server of that configuration wrote and sums it up as its Report does, but for Dropped,
// Peak and Elapsed, which a log does not have. The error names the line.
func Judge(c Config, log io.Reader) (Report, error) {
	row, _, limits, err := c.policies()
	if err != nil {
		return Report{}, err
	}
	j := newJudge(row, limits)
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		var line Line
		err := json.Unmarshal(lines.Bytes(), &line)
		if err == nil && line.Event != "request" && line.Event != "answered" {
			err = fmt.Errorf("event %.50q %w", line.Event, errLine)
		}
		if err == nil {
			err = j.hear(&line)
		}
		if err != nil {
			return Report{}, fmt.Errorf("ratetest: line %d of the log: %w", n, err)
		}
	}
	return j.sum(), lines.Err()
}
