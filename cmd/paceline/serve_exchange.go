package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/screen"
	"github.com/paceline-go/paceline/internal/text"
	"github.com/paceline-go/paceline/ratetest"
)

const serveExchangeLong = `Serve an exchange with a strict limit. It requires rising nonces, bans a key after too many refusals, and delays each request
before and after its check.

GET or POST /api/request takes api_key and nonce, in the query or as a form in the body. If it has a req_id, the answer has it, too:

  200 {"status":"OK","req_id":17}
  400 {"status":"error","error_msg":"..."}   bad nonce (uses a slot of the limit), or api_key or nonce is missing (uses none)
  401, 403, 429                              unknown key, banned, over the limit (uses no slot)
  413, 415                                   the body has more than 64 KiB, or is no form, such as JSON (uses no slot)

Ctrl-C ends the server: it answers the requests under way, and prints a report. A second Ctrl-C aborts.`

type serveExchange struct {
	serving
	latencies
	keys            []string
	limit, banAfter int
	window          time.Duration
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
	s.serving.flags(c, "text", "json", "csv")
	f := c.Flags()
	f.StringSliceVar(&s.keys, "keys", []string{"key1", "key2", "key3", "key4", "key5"}, "API keys, separated by commas")
	f.IntVar(&s.limit, "limit", 20, "most requests per key in a window")
	f.DurationVar(&s.window, "window", time.Second, "the window, in whole milliseconds")
	f.IntVar(&s.banAfter, "ban-after", 10, "number of refusals (429) that bans a key for good; 0 is never")
	s.latencies.flags(f, "uniform:0-50ms", "")
	f.BoolVar(&s.nonces, "nonces", true, "want a nonce, above that of the key's last accepted request")
	f.Uint64Var(&s.seed, "seed", 1, "seed of the latencies")
	s.clockFlag(c)
	return c
}

func (s *serveExchange) run(ctx context.Context) error {
	config, err := s.config()
	if err != nil {
		return cli.Usage(err)
	}
	return attend(ctx, &s.serving, func(log io.Writer) (*ratetest.Exchange, error) {
		config.LogTo = log
		return ratetest.NewExchange(config)
	}, func(_ *ratetest.Exchange, address string) greeting {
		nonces, first, next := "nonces must rise", "&nonce=1", " --query 'nonce={nonce}'"
		if !s.nonces {
			nonces, first, next = "any nonce", "", ""
		}
		at, keys := address+ratetest.Path, config.Keys
		run := "K1=" + cli.Quoted(keys[0]) + " paceline run --key-env K1"
		if len(keys) > 2 { // other keys, since curl has used some of the first key's limit
			run = "K1=" + cli.Quoted(keys[1]) + " K2=" + cli.Quoted(keys[2]) + " paceline run --key-env K1,K2"
		}
		return greeting{
			fmt.Sprintf("serving %s: %s, %d requests per %v each, %s, latency %v there and %v back",
				at, text.Count(len(config.Keys), "key", "keys"), s.limit, s.window, nonces, config.Before, config.After),
			[]string{
				"curl " + cli.Quoted(at+"?api_key="+url.QueryEscape(keys[0])+first+"&req_id=17"),
				urls(50, at+"?req_id=") +
					fmt.Sprintf("%s %s --query 'api_key={key}'%s -", run, limitFlag(int64(s.limit), s.window), next),
			},
		}
	}, func(x *ratetest.Exchange) error {
		r := x.Report()
		return errors.Join(s.write(r), verdicts(r.Judge.Faults, r.Judge.FirstFaults))
	})
}

func (s *serveExchange) config() (ratetest.Config, error) {
	c := ratetest.Config{
		Keys:  s.keys,
		Limit: s.limit, Window: s.window, BanAfter: s.banAfter,
		AnyNonce: !s.nonces,
		Seed:     s.seed,
		Keep:     -1, // keep no requests: a server may run for days, and the log has all of them
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
	}
	if s.banAfter == 0 {
		c.BanAfter = -1
	}
	seen := map[string]bool{}
	for _, k := range s.keys {
		if k == "" || seen[k] {
			return c, fmt.Errorf("--keys: %q is empty or there twice", k)
		}
		seen[k] = true
	}
	if err := s.checkClock(); err != nil {
		return c, err
	}
	if c.VirtualClients = s.clients; s.clients > 0 {
		s.before = "constant:0s"
	}
	var err error
	c.Before, c.After, err = s.laws()
	return c, err
}

// exchangeReport is the output of the verb. Later versions only add fields.
type exchangeReport struct {
	ElapsedSeconds float64             `json:"elapsed_seconds"`
	Accepted       int                 `json:"accepted"`
	UnknownKey     int                 `json:"unknown_key"`
	Malformed      int                 `json:"malformed"` // answered with 400, 413 or 415, and took no slot
	Dropped        int                 `json:"dropped"`   // under way when the server closed
	Faults         int                 `json:"faults"`    // found by an independent judge: the server against its rule
	Limit          int                 `json:"limit"`     // most requests of a key in a window
	Keys           []exchangeKeyReport `json:"keys"`
}

type exchangeKeyReport struct {
	Key       string `json:"key"`
	Accepted  int    `json:"accepted"`
	BadNonce  int    `json:"bad_nonce"`
	Limited   int    `json:"limited"`
	Banned    bool   `json:"banned"`
	AfterBan  int    `json:"after_ban"`         // refused because the key was banned
	Worst     int    `json:"worst_window"`      // largest number of requests in a window that took a slot
	WorstSent int    `json:"worst_window_sent"` // the same, with the requests over the limit counted too
}

func (s *serveExchange) write(r ratetest.Report) error {
	e := exchangeReport{
		ElapsedSeconds: r.Elapsed.Seconds(),
		Accepted:       r.Judge.Total.Accepted,
		UnknownKey:     r.Judge.Total.UnknownKey,
		Malformed:      r.Malformed,
		Dropped:        r.Dropped,
		Faults:         r.Judge.Faults,
		Limit:          s.limit,
	}
	for i, k := range r.Judge.Keys {
		e.Keys = append(e.Keys, exchangeKeyReport{
			Key: r.Keys[i], Accepted: k.Counts.Accepted, BadNonce: k.Counts.BadNonce,
			Limited: k.Counts.Limited,
			Banned:  k.Banned, AfterBan: k.Counts.Banned, Worst: k.Worst.Requests, WorstSent: k.WorstSent.Requests,
		})
	}
	switch s.output {
	case "json":
		return cli.WriteJSON(s.out, e)
	case "csv":
		return e.writeCSV(s.out)
	}
	return e.writeText(s.out)
}

func (e *exchangeReport) writeText(w io.Writer) error {
	t := screen.Table{Right: true}
	t.Head("key", "accepted", "bad nonce", "limited", "after ban", "banned", "worst window", "as sent")
	for _, k := range e.Keys {
		banned := "no"
		if k.Banned {
			banned = "yes"
		}
		n := strconv.Itoa
		t.Row(k.Key, n(k.Accepted), n(k.BadNonce), n(k.Limited), n(k.AfterBan), banned,
			fmt.Sprintf("%d of %d", k.Worst, e.Limit), n(k.WorstSent))
	}
	if err := t.Write(w, screen.TableWidth); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%d accepted in %.1f s; %d with an unknown key, %d malformed, %d dropped at the end\n",
		e.Accepted, e.ElapsedSeconds, e.UnknownKey, e.Malformed, e.Dropped)
	return err
}

func (e *exchangeReport) writeCSV(w io.Writer) error {
	c := csv.NewWriter(w)
	c.Write([]string{"key", "accepted", "bad_nonce", "limited", "banned", "after_ban", "worst_window",
		"worst_window_sent"})
	for _, k := range e.Keys {
		n := strconv.Itoa
		c.Write([]string{k.Key, n(k.Accepted), n(k.BadNonce), n(k.Limited), strconv.FormatBool(k.Banned), n(k.AfterBan),
			n(k.Worst), n(k.WorstSent)})
	}
	c.Flush()
	return c.Error()
}
