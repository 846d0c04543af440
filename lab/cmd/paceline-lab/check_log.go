package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/screen"
	"github.com/paceline-go/paceline/internal/text"
	"github.com/paceline-go/paceline/internal/text/rate"
	"github.com/paceline-go/paceline/lab/eventlog"
)

const checkLogLong = `Prove of a log of events that no window held more than a limit, or show the first window that did.
With --amount, events count by a column or field, such as their weight. An event exactly as old as the window still counts. The judge of the laboratory's proofs counts: it shares no code with
the limiters.

FILE is a log, or - for standard input. Without --column and --field it has an instant per line. An instant is RFC 3339,
or a number. A name of the column or field that ends in _ns, _us or _ms says its unit. Other numbers are Unix time:
below 1e11 in seconds, below 1e14 in milliseconds, below 1e17 in microseconds, others in nanoseconds. Below 1e8, --unit is
needed. All numbers of a log have one unit. Empty lines are no events.

Exit codes: 0 the limit is kept; 3 it is not; 4 a line cannot be read, or events are not in order.`

type checkLog struct {
	format eventlog.Format
	limit  string
	since  string
	where  []string
	sort   bool
	totals bool
	output string
	rate   rate.Rate
	from   int64 // of since
	sums   map[string]*logTotal
}

func newCheckLog() *cobra.Command {
	var l checkLog
	c := &cobra.Command{
		Use:   "check-log FILE",
		Short: "Prove of a log of events that no window held more than a limit",
		Long:  checkLogLong,
		Example: `  paceline-lab check-log orders.txt --limit 300/s
  paceline-lab check-log orders.csv --column time --by symbol --limit 50/100ms
  paceline-lab check-log sent.jsonl --field at --sort --by key --amount weight --limit 6000/m
  paceline-lab check-log sent.jsonl --field at --by client --amount tokens --totals
  paceline-lab check-log results.jsonl --field at --sort --limit 100/min -o json
  paceline-lab check-log arrivals.jsonl --field at --where status=200 --limit 20/s`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cli.Usage(fmt.Errorf("want one log of events, got %d arguments", len(args)))
			}
			return nil
		},
		RunE: interruptible(func(cmd *cobra.Command, args []string) error {
			check, err := l.check()
			if err != nil {
				return cli.Usage(err)
			}
			return l.run(cmd, args[0], check)
		}),
	}
	f := c.Flags()
	f.StringVar(&l.limit, "limit", "", "the most events in any window: "+rate.Forms)
	f.StringVar(&l.format.Column, "column", "",
		"column of CSV with the instant: its name in the first line, or its number if the first line is an event")
	f.StringVar(&l.format.Field, "field", "", "field of JSON lines with the instant")
	f.StringSliceVar(&l.format.By, "by", nil,
		"columns or fields with the key, symbol or account of an event, A,B: each combination has windows of its own")
	f.StringVar(&l.format.Amount, "amount", "",
		"column or field with how much an event counts, such as weight; if not given, each counts as one")
	f.StringVar(&l.format.Unit, "unit", "",
		"unit of numbers: "+strings.Join(eventlog.Units, ", ")+"; if not given, the name (checked_ns) or the first number shows it")
	f.StringVar(&l.since, "since", "", "leave out the events before this instant, which has the form of those in the log")
	f.StringArrayVar(&l.where, "where", nil, "NAME=VALUE or NAME!=VALUE, such as status=200: only events whose column or "+
		"field is so; several hold together")
	f.BoolVar(&l.sort, "sort", false, "read all events into memory, and order them by their instants")
	f.BoolVar(&l.totals, "totals", false,
		"write the events of each combination of --by, the most first, and how much they count; --limit may be missing")
	cli.OutputFlag(c, &l.output, "text", "json")
	return c
}

// check checks the flags. Without a limit there is no Check.
func (l *checkLog) check() (*eventlog.Check, error) {
	switch {
	case l.totals && len(l.format.By) == 0:
		return nil, errors.New("--totals is of the combinations of --by: expected --by beside it, such as --by client")
	case l.limit == "" && !l.totals:
		return nil, errors.New("--limit is missing: expected the most events in any window, such as --limit 300/s")
	case l.format.Column != "" && l.format.Field != "":
		return nil, errors.New("--column is for CSV and --field for JSON lines: expected one of them")
	case len(l.format.By) > 0 && l.format.Column == "" && l.format.Field == "":
		return nil, errors.New("--by is a column or a field: expected --column or --field beside it")
	case l.format.Amount != "" && l.format.Column == "" && l.format.Field == "":
		return nil, errors.New("--amount is a column or a field: expected --column or --field beside it")
	case len(l.where) > 0 && l.format.Column == "" && l.format.Field == "":
		return nil, errors.New("--where is of a column or a field: expected --column or --field beside it")
	case l.format.Unit != "" && !slices.Contains(eventlog.Units, l.format.Unit):
		return nil, fmt.Errorf("--unit %q: expected %s", l.format.Unit, strings.Join(eventlog.Units, ", "))
	}
	var err error
	for _, text := range l.where {
		c, err := eventlog.ParseCondition(text)
		if err != nil {
			return nil, fmt.Errorf("--where %w", err)
		}
		l.format.Where = append(l.format.Where, c)
	}
	if l.from = math.MinInt64; l.since != "" {
		if l.from, err = eventlog.ParseInstant(l.since, l.format.UnitOf()); err != nil {
			return nil, fmt.Errorf("--since %w", err)
		}
	}
	if l.limit == "" {
		return nil, nil
	}
	if l.rate, err = rate.Parse(l.limit); err != nil {
		return nil, fmt.Errorf("--limit: %w", err)
	}
	check, err := eventlog.NewCheck(l.rate.N, l.rate.Per)
	if err != nil {
		return nil, fmt.Errorf("--limit: %w", err)
	}
	return check, nil
}

func (l *checkLog) run(cmd *cobra.Command, name string, check *eventlog.Check) error {
	file := io.NopCloser(cmd.InOrStdin())
	if name != "-" {
		var err error
		if file, err = os.Open(name); err != nil {
			return cli.Exit(cli.ExitConfig, cli.NoSuchFile(name, err))
		}
	}
	defer file.Close()
	result, err := l.read(cmd.Context(), file, check)
	switch {
	case cmd.Context().Err() != nil:
		return cli.Exit(cli.ExitInterrupted, errors.New("interrupted"))
	case err != nil:
		return cli.Exit(cli.ExitConfig, fmt.Errorf("%s: %w", name, cli.NoSuchFile(name, err)))
	}
	out := cli.Harmless(cmd.OutOrStdout(), l.output)
	switch {
	case l.output == "json" && check == nil:
		err = cli.WriteJSON(out, struct {
			Totals []logTotal `json:"totals"`
		}{l.total()})
	case l.output == "json":
		err = cli.WriteJSON(out, l.report(result))
	default:
		if check != nil {
			_, err = io.WriteString(out, l.text(result))
		}
		err = errors.Join(err, l.writeTotals(out))
	}
	if err == nil && result.Breach != nil {
		err = cli.Exit(cli.ExitSomeFailed, fmt.Errorf("%s does not keep %s", name, l.limit))
	}
	return err
}

// read reads the log to its end.
func (l *checkLog) read(ctx context.Context, file io.Reader, check *eventlog.Check) (eventlog.Result, error) {
	var events []eventlog.Event
	add := func(eventlog.Event) error { return nil }
	if check != nil {
		add = check.Add
	}
	if l.sort && check != nil {
		add = func(e eventlog.Event) error {
			events = append(events, e)
			return nil
		}
	}
	err := eventlog.Read(file, l.format, func(e eventlog.Event) error {
		if e.Line%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if e.At < l.from {
			return nil
		}
		l.count(&e)
		return add(e)
	})
	if err != nil || check == nil {
		return eventlog.Result{}, err
	}
	eventlog.Sort(events)
	for _, e := range events {
		if err := check.Add(e); err != nil {
			return eventlog.Result{}, err
		}
	}
	return check.Result()
}

// logTotal is how many events of a log have a key, and how much they count.
type logTotal struct {
	Key    string `json:"key"`
	Events int    `json:"events"`
	Amount int64  `json:"amount"`
}

// count counts an event in the total of its key.
func (l *checkLog) count(e *eventlog.Event) {
	if !l.totals {
		return
	}
	sum := l.sums[e.Key]
	if sum == nil {
		sum = &logTotal{Key: strings.Clone(e.Key)} // which does not hold on to the line of the log
		if l.sums == nil {
			l.sums = map[string]*logTotal{}
		}
		l.sums[sum.Key] = sum
	}
	sum.Events++
	sum.Amount += e.Amount
}

// total returns the totals, those that count most first.
func (l *checkLog) total() []logTotal {
	all := []logTotal{}
	for _, sum := range l.sums {
		all = append(all, *sum)
	}
	slices.SortFunc(all, func(a, b logTotal) int {
		return cmp.Or(cmp.Compare(b.Amount, a.Amount), cmp.Compare(b.Events, a.Events), strings.Compare(a.Key, b.Key))
	})
	return all
}

func (l *checkLog) writeTotals(out io.Writer) error {
	if !l.totals {
		return nil
	}
	var rows screen.Table
	head := []string{strings.Join(l.format.By, ","), "events"}
	if l.format.Amount != "" {
		head = append(head, l.format.Amount)
	}
	rows.Head(head...)
	for _, sum := range l.total() {
		row := []string{text.Sanitize(sum.Key), text.Thousands(int64(sum.Events)), text.Thousands(sum.Amount)}
		rows.Row(row[:len(head)]...)
	}
	return rows.Write(out, screen.TableWidth)
}

func (l *checkLog) text(r eventlog.Result) string {
	key := func(e eventlog.Event) string {
		if len(l.format.By) == 0 {
			return ""
		}
		return fmt.Sprintf(", %s %q", strings.Join(l.format.By, ","), e.Key)
	}
	unit := "events"
	if l.format.Amount != "" {
		unit = l.format.Amount
	}
	place := func(e eventlog.Event) string { return fmt.Sprintf("line %d (%s)", e.Line, eventlog.Instant(e.At)) }
	fullest := place(r.FullestAt) + key(r.FullestAt)
	if b := r.Breach; b != nil {
		held := text.Thousands(l.rate.N + 1)
		if l.format.Amount != "" {
			held = "more than " + text.Thousands(l.rate.N)
		}
		return fmt.Sprintf("does not hold: %s %s within %v, of %s: %s to %s%s\nThe fullest window of all held %s "+
			"%s. It ended at %s.\n", held, unit, l.rate.Per, text.Thousands(l.rate.N),
			place(b[0]), place(b[1]), key(b[1]), text.Thousands(r.Fullest), unit, fullest)
	}
	all := text.Thousands(int64(r.Events)) + " events"
	if l.format.Amount != "" {
		all += " with " + text.Thousands(r.Amount) + " " + unit
	}
	return fmt.Sprintf("holds: %s; no window of %v held more than %s %s, of %s\nThe first window with so many "+
		"ended at %s.\n", all, l.rate.Per, text.Thousands(r.Fullest), unit,
		text.Thousands(l.rate.N), fullest)
}

// checkLogReport is the result as JSON.
type checkLogReport struct {
	Holds   bool         `json:"holds"`
	Events  int          `json:"events"`
	Amount  int64        `json:"amount"`
	Limit   int64        `json:"limit"`
	Window  float64      `json:"window_s"`
	Fullest int64        `json:"fullest"`
	At      loggedEvent  `json:"fullest_at"`
	From    *loggedEvent `json:"first_from,omitempty"`
	To      *loggedEvent `json:"first_to,omitempty"`
	Totals  []logTotal   `json:"totals,omitempty"`
}

type loggedEvent struct {
	Line int    `json:"line"`
	At   string `json:"at"`
	Key  string `json:"key,omitempty"`
}

func (l *checkLog) report(r eventlog.Result) checkLogReport {
	event := func(e eventlog.Event) loggedEvent { return loggedEvent{e.Line, eventlog.Instant(e.At), e.Key} }
	report := checkLogReport{Holds: r.Breach == nil, Events: r.Events, Amount: r.Amount, Limit: l.rate.N, Window: l.rate.Per.Seconds(),
		Fullest: r.Fullest, At: event(r.FullestAt)}
	if l.totals {
		report.Totals = l.total()
	}
	if r.Breach != nil {
		from, to := event(r.Breach[0]), event(r.Breach[1])
		report.From, report.To = &from, &to
	}
	return report
}
