package service

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/ratetest/internal/host"
)

// Line is a line of Config.LogTo: a checked request, or an answered one. Answers have a line only
// for limits of concurrency. Instants are by the server's clock, in nanoseconds since 1970. New
// versions may add fields, and remove none.
type Line struct {
	// Event is "request" or "answered".
	Event  string `json:"event"`
	At     int64  `json:"at_unix_ns"`
	N      uint64 `json:"n"` // number of the request, from 1, in order of checks
	Method string `json:"method,omitempty"`
	Path   string `json:"path,omitempty"` // its first 200 bytes
	// Client is "key 1", "key 2" and so on, since a stranger may send the secret of another server.
	// Without a key it is the address. Bannable is the client or address that may be banned for the
	// request, if the provider bans.
	Client   string `json:"client,omitempty"`
	Bannable string `json:"bannable,omitempty"`
	Verdict  string `json:"verdict,omitempty"` // accepted, limited, too_large, banned, unauthorized
	Status   int    `json:"status,omitempty"`
	By       string `json:"by,omitempty"`            // the limit that refused
	Wait     int64  `json:"wait_ns,omitempty"`       // until the request would pass if no other came
	Until    int64  `json:"until_unix_ns,omitempty"` // the end of the ban
	// Counts are the limits in which the request counts.
	Counts []Count `json:"counts,omitempty"`
}

// Count is the effect of a request on one limit.
type Count struct {
	Policy string `json:"policy"`
	Who    string `json:"who"` // the client, address, model or route
	Cost   int64  `json:"cost"`
	// Left is the amount left after the decision about the request. Whole is the time from then
	// until the limit is unused again.
	Left  int64 `json:"left"`
	Whole int64 `json:"whole_ns,omitempty"`
}

// The verdicts of this package, beyond those of package host. banned is a refusal because of an
// earlier ban. unauthorized is a request without the key that its endpoint asks for. It counts in no
// limit.
const (
	banned       = "banned"
	unauthorized = "unauthorized"
)

// Report sums up the requests that reached a Server. An independent judge makes it from the lines
// of the log. New versions may add fields, and remove none.
type Report struct {
	Provider string `json:"provider"`
	Accepted int    `json:"accepted"`
	Limited  int    `json:"limited"` // over a limit; a request above the whole limit is TooLarge
	TooLarge int    `json:"too_large"`
	AfterBan int    `json:"after_ban"` // refused because of a ban
	Bans     int    `json:"bans"`
	// Unauthorized is the number of requests without the key that their endpoint asks for.
	Unauthorized int `json:"unauthorized,omitempty"`
	// Limits has one entry for each limit and each client, address, model or route. They are in the
	// order of their first requests.
	Limits []Window `json:"limits"`
	// Wrong counts the server's decisions that break the rule. FirstWrong has the first few. If
	// Wrong is not 0, the server has a bug.
	Wrong      int           `json:"wrong"`
	FirstWrong []string      `json:"first_wrong,omitempty"`
	Dropped    int           `json:"dropped"` // on their way when the server closed
	Peak       int           `json:"peak"`    // most requests under way at once
	Elapsed    time.Duration `json:"elapsed_ns"`
}

// Window is one limit for one client, address, model or route.
type Window struct {
	Policy string        `json:"policy"`
	Who    string        `json:"who"`
	Rule   provider.Rule `json:"rule"`
	Limit  int64         `json:"limit"`
	Window time.Duration `json:"window_ns,omitempty"`
	Burst  int64         `json:"burst,omitempty"`
	// Accepted and Refused are the accepted and refused requests that count in this limit. Another
	// limit may have refused them. Cost is the cost of the accepted requests.
	Accepted int   `json:"accepted"`
	Refused  int   `json:"refused"`
	Cost     int64 `json:"cost"`
	// Worst is the highest use when a request passed. For a bucket, the inflow by then is
	// subtracted. WorstPercent is the same in percent of the limit.
	Worst        int64   `json:"worst_window"`
	WorstPercent float64 `json:"worst_window_percent"`
}

// judge reads lines. It has the names of things and the configurations of rules in common with the
// server, and no code that decides.
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
	refused int // refusals in a row
	served  int // bans so far
	until   int64
}

func newJudge(row *tableRow, limits []provider.Policy) *judge {
	j := &judge{row: row, ban: banOf(row, limits), limits: map[string]provider.Policy{}, index: map[[2]string]*dock{},
		bans: map[string]*sentence{}}
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
	d := &dock{Window: Window{Policy: c.Policy, Who: c.Who, Rule: p.Rule, Limit: p.Limit, Window: p.Window,
		Burst: p.Burst}}
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

// hear adds an arrival, and reports whether there was room for it.
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
	case unauthorized:
		j.report.Unauthorized++
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

// judgeBan recomputes the bans.
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

// Judge reads the log of a Server with that configuration, and returns its Report. Dropped, Peak
// and Elapsed are missing, since a log has none of them. The error names the line.
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
