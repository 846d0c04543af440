package main

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/paceline-go/paceline/latency"
	"github.com/paceline-go/paceline/ratetest"
	"github.com/paceline-go/paceline/rule"
)

const serveExchangeLong = `Serve an exchange that refuses what is over the limit, wants nonces that rise, bans keys that are refused too often, and
delays each request before and after its check.

GET or POST /api/request with api_key, nonce and req_id, in the query or as a form in the body:

  200 {"status":"OK","req_id":17}
  400 {"status":"error","error_msg":"..."}   bad nonce (uses a slot of the limit), or a parameter is missing (uses none)
  401, 403, 429                              unknown key, banned, over the limit (uses no slot)

Ctrl-C ends it: requests under way are answered, then a report goes to stdout. A second Ctrl-C aborts.`

type serveExchange struct {
	serving
	keys            []string
	limit, banAfter int
	window          time.Duration
	before, after   string
	nonces          bool
	seed            uint64
}

func newServeExchange() *cobra.Command {
	var s serveExchange
	c := &cobra.Command{
		Use:   "exchange",
		Short: "An exchange with API keys, a strict limit, nonces, bans and latency",
		Long:  serveExchangeLong,
		Example: `  paceline serve exchange
  paceline serve exchange --keys alice,bob --latency lognormal:10ms,p99=100ms --log arrivals.jsonl
  curl 'http://127.0.0.1:9999/api/request?api_key=key1&nonce=1&req_id=17'`,
	}
	c.RunE = s.until(s.run)
	s.flags(c, "text, json or csv")
	f := c.Flags()
	f.StringSliceVar(&s.keys, "keys", []string{"key1", "key2", "key3", "key4", "key5"}, "API keys, separated by commas")
	f.IntVar(&s.limit, "limit", 20, "most requests per key in a window")
	f.DurationVar(&s.window, "window", time.Second, "the window, in whole milliseconds")
	f.IntVar(&s.banAfter, "ban-after", 10, "number of refusals (429) that bans a key for good; 0 is never")
	f.StringVar(&s.before, "latency", "uniform:0-50ms", "latency before the check: "+latency.Forms)
	f.StringVar(&s.after, "latency-after", "", "latency after the check (default as --latency)")
	f.BoolVar(&s.nonces, "nonces", true, "want a nonce, above that of the key's last accepted request")
	f.Uint64Var(&s.seed, "seed", 1, "seed of the latencies")
	return c
}

func (s *serveExchange) run(ctx context.Context) error {
	config, err := s.config()
	if err != nil {
		return usageError{err}
	}
	return attend(ctx, &s.serving, func(log io.Writer) (*ratetest.Exchange, error) {
		config.LogTo = log
		return ratetest.NewExchange(config)
	}, func(_ *ratetest.Exchange, url string) string {
		nonces := "nonces must rise"
		if !s.nonces {
			nonces = "any nonce"
		}
		return fmt.Sprintf("serving %s: %d keys, %d requests per %v each, %s, latency %v there and %v back",
			url+ratetest.Path, len(config.Keys), s.limit, s.window, nonces, config.Before, config.After)
	}, func(x *ratetest.Exchange) error {
		r := x.Report()
		return errors.Join(s.write(r), verdicts(r.Judge.Faults, r.Judge.FirstFaults))
	})
}

func (s *serveExchange) config() (ratetest.Config, error) {
	c := ratetest.Config{
		Keys: s.keys,
		Rule: rule.ExchangeConfig{Keys: len(s.keys), Limit: s.limit, Window: s.window, BanAfter: s.banAfter, AnyNonce: !s.nonces},
		Seed: s.seed,
		Keep: -1, // a server may run for days; the log has them all
	}
	switch {
	case len(s.keys) == 0:
		return c, errors.New("--keys: want at least one")
	case s.limit < 1:
		return c, fmt.Errorf("--limit %d: want 1 or more", s.limit)
	case s.window < time.Millisecond || s.window%time.Millisecond != 0:
		return c, fmt.Errorf("--window %v: want a whole number of milliseconds", s.window)
	case s.banAfter < 0:
		return c, fmt.Errorf("--ban-after %d: want 0 (never) or more", s.banAfter)
	case s.output != "text" && s.output != "json" && s.output != "csv":
		return c, fmt.Errorf("--output %q: want text, json or csv", s.output)
	}
	if s.banAfter == 0 {
		c.Rule.BanAfter = -1
	}
	seen := map[string]bool{}
	for _, k := range s.keys {
		if k == "" || seen[k] {
			return c, fmt.Errorf("--keys: %q is empty or there twice", k)
		}
		seen[k] = true
	}
	if s.after == "" {
		s.after = s.before
	}
	var err error
	if c.Before, err = openLaw(s.before); err != nil {
		return c, fmt.Errorf("--latency: %w", err)
	}
	if c.After, err = openLaw(s.after); err != nil {
		return c, fmt.Errorf("--latency-after: %w", err)
	}
	return c, nil
}

func openLaw(name string) (latency.Law, error) {
	return latency.ParseOpen(name, func(file string) (io.ReadCloser, error) { return os.Open(file) })
}

// exchangeReport is what the verb prints. Fields are only ever added.
type exchangeReport struct {
	ElapsedSeconds float64             `json:"elapsed_seconds"`
	Accepted       int                 `json:"accepted"`
	UnknownKey     int                 `json:"unknown_key"`
	Malformed      int                 `json:"malformed"` // 400 for a parameter; used no slot
	Dropped        int                 `json:"dropped"`   // under way when the server closed
	Faults         int                 `json:"faults"`    // verdicts against the rule, as an independent judge saw them
	Keys           []exchangeKeyReport `json:"keys"`
}

type exchangeKeyReport struct {
	Key       string `json:"key"`
	Accepted  int    `json:"accepted"`
	BadNonce  int    `json:"bad_nonce"`
	Limited   int    `json:"limited"`
	Banned    bool   `json:"banned"`
	AfterBan  int    `json:"after_ban"`         // refused because of the ban
	Worst     int    `json:"worst_window"`      // most requests in a window that used a slot
	WorstSent int    `json:"worst_window_sent"` // and with those that were over the limit
}

func (s *serveExchange) write(r ratetest.Report) error {
	e := exchangeReport{
		ElapsedSeconds: r.Elapsed.Seconds(),
		Accepted:       r.Judge.Total[rule.Accepted],
		UnknownKey:     r.Judge.Total[rule.UnknownKey],
		Malformed:      r.Malformed,
		Dropped:        r.Dropped,
		Faults:         r.Judge.Faults,
	}
	for i, k := range r.Judge.Keys {
		e.Keys = append(e.Keys, exchangeKeyReport{
			Key: r.Keys[i], Accepted: k.Counts[rule.Accepted], BadNonce: k.Counts[rule.BadNonce], Limited: k.Counts[rule.Limited],
			Banned: k.Banned, AfterBan: k.Counts[rule.Banned], Worst: k.Worst.Requests, WorstSent: k.WorstSent.Requests,
		})
	}
	switch s.output {
	case "json":
		encoder := json.NewEncoder(s.out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(e)
	case "csv":
		return e.writeCSV(s.out)
	}
	return e.writeText(s.out, s.limit)
}

func (e *exchangeReport) writeText(w io.Writer, limit int) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "key\taccepted\tbad nonce\tlimited\tafter ban\tbanned\tworst window\tas sent\t\n")
	for _, k := range e.Keys {
		banned := "no"
		if k.Banned {
			banned = "yes"
		}
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%s\t%d of %d\t%d\t\n", k.Key, k.Accepted, k.BadNonce, k.Limited, k.AfterBan, banned, k.Worst, limit, k.WorstSent)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%d accepted in %.1f s; %d with an unknown key, %d malformed, %d dropped at the end\n",
		e.Accepted, e.ElapsedSeconds, e.UnknownKey, e.Malformed, e.Dropped)
	return err
}

func (e *exchangeReport) writeCSV(w io.Writer) error {
	c := csv.NewWriter(w)
	c.Write([]string{"key", "accepted", "bad_nonce", "limited", "banned", "after_ban", "worst_window", "worst_window_sent"})
	for _, k := range e.Keys {
		n := strconv.Itoa
		c.Write([]string{k.Key, n(k.Accepted), n(k.BadNonce), n(k.Limited), strconv.FormatBool(k.Banned), n(k.AfterBan), n(k.Worst), n(k.WorstSent)})
	}
	c.Flush()
	return c.Error()
}
