package llm

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"time"

	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/ratetest/internal/host"
)

// Line is a line of Config.LogTo: a checked request, or an amendment of its cost. Instants are in
// nanoseconds since the start of the server. New versions may add fields, and remove none.
type Line struct {
	// Event is "request" or "amended".
	Event string `json:"event"`
	At    int64  `json:"at_ns"`
	N     uint64 `json:"n"` // number of the request, from 1, in order of receipt
	// Key is a name from Config.Keys. On a server that accepts any key, it is "key 1", "key 2" and
	// so on, since a stranger may send the secret of another server. Empty: unknown.
	Key     string `json:"key,omitempty"`
	Model   string `json:"model,omitempty"`
	API     string `json:"api,omitempty"`
	Stream  bool   `json:"stream,omitempty"`
	Before  int64  `json:"before_ns,omitempty"` // the latency as drawn
	Verdict string `json:"verdict,omitempty"`   // see Report.Verdicts
	Status  int    `json:"status,omitempty"`    // 0: no status was sent
	By      string `json:"by,omitempty"`        // the limit that refused
	Wait    int64  `json:"wait_ns,omitempty"`   // until the request would pass if no other came
	Fault   string `json:"fault,omitempty"`     // the injected fault: see Config.Faults
	Retry   string `json:"retry,omitempty"`     // X-Stainless-Retry-Count: the number of the retry by an official SDK
	// Estimate and MaxOutput are from the request. Used is the usage that the server decided.
	Estimate  int64 `json:"estimate,omitempty"`
	MaxOutput int64 `json:"max_output,omitempty"`
	Used      Usage `json:"used,omitzero"`
	// Counted is the amounts against the limits: requests, input, output and tokens. In an
	// amendment, it is the added amounts.
	Counted [4]int64 `json:"counted,omitzero"`
	// Passed is, in an amendment, the time of the request's check.
	Passed int64 `json:"passed_ns,omitempty"`
}

// The verdicts of this package, beyond those of package host.
const (
	unpaid       = "unpaid"
	faulty       = "faulty"
	malformed    = "malformed"
	unauthorized = "unauthorized"
	unknownModel = "unknown_model"
)

// Report sums up the requests that reached a Server. An independent judge makes it from the lines
// of the log. New versions may add fields, and remove none.
type Report struct {
	Accounts []Account `json:"accounts"` // in the order of their first requests
	// Verdicts counts the requests by verdict: accepted, limited, too_large, unpaid, faulty,
	// malformed, unauthorized, unknown_model. too_large is more than a limit allows: 429, too.
	// unpaid has no credit left. faulty was refused by a fault, before the limits were checked.
	Verdicts map[string]int `json:"verdicts"`
	// Faults counts the injected faults by name, those in accepted requests too.
	Faults map[string]int `json:"faults"`
	// Retries counts the requests that an official SDK marks as retries.
	Retries int `json:"retries"`
	// Wrong counts the limits' verdicts that break the rule. FirstWrong has the first few. If Wrong
	// is not 0, the server has a bug.
	Wrong      int           `json:"wrong"`
	FirstWrong []string      `json:"first_wrong,omitempty"`
	Dropped    int           `json:"dropped"` // on their way when the server closed
	Elapsed    time.Duration `json:"elapsed_ns"`
}

// Account is a key and a model.
type Account struct {
	Key      string `json:"key"`
	Model    string `json:"model"`
	Accepted int    `json:"accepted"`
	Limited  int    `json:"limited"` // with the requests that were too large
	// Input, Cached and Output are the tokens of the accepted requests.
	Input  int64    `json:"input_tokens"`
	Cached int64    `json:"cached_tokens"`
	Output int64    `json:"output_tokens"`
	Limits []Window `json:"limits"`
}

// Window is one limit of an account. A full bucket lets up to twice its limit through in a window.
type Window struct {
	Name   string        `json:"name"` // as in Line.By
	Limit  int64         `json:"limit"`
	Window time.Duration `json:"window_ns"`
	// Counted is the highest count when a request passed. It is never above Limit.
	Counted int64 `json:"counted_most"`
	// Worst is the true usage of the accepted requests in the fullest closed window, by their
	// arrival. Sent is the same with the limited requests. The percentages are of the limit.
	Worst        int64   `json:"worst_window"`
	WorstPercent float64 `json:"worst_window_percent"`
	Sent         int64   `json:"worst_window_sent"`
	SentPercent  float64 `json:"worst_window_sent_percent"`
}

// judge reads lines. It has the names of things in common with the server, and no code that
// decides.
type judge struct {
	config Config
	index  map[[2]string]*judged
	order  []*judged
	report Report
}

type judged struct {
	Account
	limits    [families]int64
	windows   [families]time.Duration
	witnesses [families]rule.AmendedWitness
	true, all [families]*rule.Densest
}

func newJudge(c Config) *judge {
	return &judge{config: c, index: map[[2]string]*judged{},
		report: Report{Verdicts: map[string]int{}, Faults: map[string]int{}}}
}

func (j *judge) account(key, model string) (*judged, error) {
	id := [2]string{key, model}
	if a := j.index[id]; a != nil {
		return a, nil
	}
	a := &judged{Account: Account{Key: key, Model: model}}
	limits := j.config.limitsOf(model)
	for f := range families {
		limit, window := limits.of(f)
		if limit == 0 {
			continue
		}
		a.limits[f], a.windows[f] = limit, window
		var w rule.Witness
		var err error
		if j.config.Rolling {
			w, err = j.config.rolling(f, limit, window).Witness()
		} else {
			w, err = rule.BucketConfig{Limit: limit, Window: window}.Witness()
		}
		if err != nil {
			return nil, err
		}
		a.witnesses[f] = w.(rule.AmendedWitness)
		if a.true[f], err = rule.NewDensest(window, 0); err != nil {
			return nil, err
		}
		a.all[f], _ = rule.NewDensest(window, 0)
	}
	j.index[id] = a
	j.order = append(j.order, a)
	return a, nil
}

// spread returns the counts of a line by family.
func spread(c [4]int64) amounts {
	return amounts{c[0], c[1], c[2], c[3], c[0], c[3], c[0], c[1], c[2], c[3]}
}

func (j *judge) hear(line *Line) error {
	if line.Event == "request" {
		j.report.Verdicts[line.Verdict]++
		if line.Fault != "" {
			j.report.Faults[line.Fault]++
		}
		if line.Retry != "" && line.Retry != "0" {
			j.report.Retries++
		}
		if line.Verdict != host.Accepted && line.Verdict != host.Limited && line.Verdict != host.TooLarge {
			return nil
		}
	}
	a, err := j.account(line.Key, line.Model)
	if err != nil {
		return err
	}
	at, counted := mono.Time(line.At), spread(line.Counted)
	if line.Event == "amended" {
		for f, w := range a.witnesses {
			if w != nil {
				w.Amend(at, mono.Time(line.Passed), counted[f])
			}
		}
		return nil
	}
	passed := line.Verdict == host.Accepted
	used := j.config.used(line.Used)
	if passed {
		a.Accepted++
		a.Input += line.Used.Input
		a.Cached += line.Used.Cached
		a.Output += line.Used.Output
	} else {
		a.Limited++
	}
	obstacles, over := 0, false // limits in the request's way; the request is larger than one of them
	for f, w := range a.witnesses {
		if w == nil {
			continue
		}
		before := w.Finding()
		asked := asks(f, counted[f], a.limits[f])
		w.Hear(at, asked, passed)
		if passed && asked < counted[f] {
			w.Amend(at, at, counted[f]-asked)
		}
		after := w.Finding()
		if passed && after.Most > after.Limit && after.Most > before.Most {
			j.wrong("request %d passed though %d of %d %s were used with it", line.N, after.Most, after.Limit, familyNames[f])
		}
		if !passed && after.Refused > before.Refused && after.Needless == before.Needless {
			obstacles++
		}
		over = over || asked > a.limits[f]
		a.all[f].Hear(at, used[f])
		if passed {
			a.true[f].Hear(at, used[f])
		}
	}
	if !passed && (obstacles == 0 || over != (line.Verdict == host.TooLarge)) {
		j.wrong("request %d was %s by %s with %d limits in its way", line.N, line.Verdict, line.By, obstacles)
	}
	return nil
}

func (j *judge) wrong(format string, args ...any) {
	if j.report.Wrong++; len(j.report.FirstWrong) < 5 {
		j.report.FirstWrong = append(j.report.FirstWrong, fmt.Sprintf(format, args...))
	}
}

// sum returns a report that shares nothing with the judge.
func (j *judge) sum() Report {
	r := j.report
	r.Verdicts, r.Faults = map[string]int{}, map[string]int{}
	maps.Copy(r.Verdicts, j.report.Verdicts)
	maps.Copy(r.Faults, j.report.Faults)
	r.FirstWrong = append([]string(nil), j.report.FirstWrong...)
	r.Accounts = make([]Account, 0, len(j.order))
	for _, a := range j.order {
		account := a.Account
		for f, w := range a.witnesses {
			if w == nil {
				continue
			}
			worst, _, _ := a.true[f].Most()
			all, _, _ := a.all[f].Most()
			percent := func(n int64) float64 { return 100 * float64(n) / float64(a.limits[f]) }
			account.Limits = append(account.Limits, Window{
				Name: familyNames[f], Limit: a.limits[f], Window: a.windows[f], Counted: w.Finding().Most,
				Worst: worst, WorstPercent: percent(worst), Sent: all, SentPercent: percent(all),
			})
		}
		r.Accounts = append(r.Accounts, account)
	}
	return r
}

// Judge reads the log of a Server with that configuration, and returns its Report. Dropped and
// Elapsed are missing, since a log has neither. The error names the line.
func Judge(c Config, log io.Reader) (Report, error) {
	c, err := c.filled()
	if err != nil {
		return Report{}, err
	}
	j := newJudge(c)
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		var line Line
		err := json.Unmarshal(lines.Bytes(), &line)
		if err == nil {
			err = line.check()
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

// check refuses lines with values that the witnesses do not accept.
func (l *Line) check() error {
	if l.Event != "request" && l.Event != "amended" {
		return fmt.Errorf("event %.50q is not request or amended", l.Event)
	}
	const most = 1 << 44
	for _, n := range append([]int64{l.Used.Input, l.Used.Output, l.Used.Cached, l.Used.Input - l.Used.Cached},
		l.Counted[:]...) {
		if n > most || n < 0 && (l.Event == "request" || n < -most) {
			return fmt.Errorf("%d tokens are not from 0 to %d", n, int64(most))
		}
	}
	return nil
}
