package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/app/cli"
)

func TestCheckLog(t *testing.T) {
	t.Parallel()
	orders := write(t, "orders.csv", "time,symbol\n1700000000,A\n1700000001,B\n1700000001.5,A\n1700000002,A\n")
	lines := write(t, "orders.jsonl", `{"at":"2026-11-23T14:30:01Z","n":1}`+"\n"+`{"at":"2026-11-23T14:30:00Z","n":2}`+"\n")
	plain := write(t, "orders.txt", "1700000000000\n1700000001000\n1700000001001\n")
	served := write(t, "served.jsonl", `{"checked_ns":50000000,"checked":50000000}
{"checked_ns":100000000}
{"checked_ns":150000000}
`)
	sent := write(t, "sent.jsonl", `{"at":"2026-11-23T14:30:00Z","upstream":"market","key":"A","weight":50}
{"at":"2026-11-23T14:30:01Z","upstream":"market","key":"B","weight":70}
{"at":"2026-11-23T14:30:02Z","upstream":"market","key":"B"}
{"at":"2026-11-23T14:30:09Z","upstream":"market","key":"A","weight":50}
{"at":"2026-11-23T14:30:10Z","upstream":"other","key":"A","weight":0}
`)
	weights := write(t, "weights.csv", "at,weight\n1,2\n2,5\n2,0\n2,\n")
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{orders + " --column time --limit 3/2s", cli.ExitSomeFailed, "does not hold: 4 events within 2s, of 3: line 2 (2023-11-14T22:13:20Z) to line 5 (2023-11-14T22:13:22Z)\n"},
		{orders + " --column time --limit 3/1.999s", cli.ExitOK, "holds: 4 events; no window of 1.999s held more than 3 events, of 3\nThe first window with so many ended at line 4 "},
		{orders + " --column time --by symbol --limit 3/2s", cli.ExitOK, `ended at line 5 (2023-11-14T22:13:22Z), symbol "A".`},
		{orders + " --column time --by symbol --limit 1/1.5s", cli.ExitSomeFailed, `line 2 (2023-11-14T22:13:20Z) to line 4 (2023-11-14T22:13:21.5Z), symbol "A"`},
		{orders + " --column 1 --limit 3/s", cli.ExitConfig, `line 1: "time" is no instant: want RFC 3339`},
		{orders + " --column when --limit 3/s", cli.ExitConfig, `line 1: no column "when": expected one of "time", "symbol"`},
		{lines + " --field at --limit 1/s", cli.ExitConfig, "line 2: 2026-11-23T14:30:00Z is before line 1, 2026-11-23T14:30:01Z: expected events in order"},
		{lines + " --field at --limit 1/s --sort", cli.ExitSomeFailed, "line 2 (2026-11-23T14:30:00Z) to line 1 "},
		{lines + " --field at --limit 1/999ms --sort", cli.ExitOK, "holds: 2 events"},
		{lines + " --field when --limit 1/s", cli.ExitConfig, `line 1: no field "when": expected one of "at", "n"`},
		{lines + " --field at --limit 1/s --where n=1", cli.ExitOK, "holds: 1 events"},
		{lines + " --field at --limit 1/s --where n!=1", cli.ExitOK, "ended at line 2 "},
		{lines + " --field at --limit 1/s --where n!=1 --where m!=3 --where n=1", cli.ExitConfig, "no events that count"},
		{lines + " --field at --limit 1/s --sort --since 2026-11-23T14:30:00.5Z", cli.ExitOK, "holds: 1 events"},
		{orders + " --column time --limit 2/2s --where symbol=A", cli.ExitSomeFailed, "3 events within 2s, of 2: line 2 (2023-11-14T22:13:20Z) to line 5 "},
		{orders + " --column time --limit 2/2s --where symbol!=A", cli.ExitOK, "holds: 1 events"},
		{orders + " --column time --limit 2/s --since 1700000001.5", cli.ExitOK, "holds: 2 events"},
		{orders + " --column time --limit 2/s --where kind=A", cli.ExitConfig, `no column "kind"`},
		{served + " --field checked_ns --limit 2/s --since 100000000", cli.ExitOK, "holds: 2 events"},
		{plain + " --limit 2/s --where a=b", cli.ExitUsage, "--where is of a column or a field"},
		{lines + " --field at --limit 2/s --where =b", cli.ExitUsage, "--where \"=b\": expected NAME=VALUE"},
		{lines + " --field at --limit 2/s --since noon", cli.ExitUsage, "--since \"noon\" is no instant"},
		{plain + " --limit 2/s", cli.ExitOK, "holds: 3 events"},
		{plain + " --limit 2/1001ms", cli.ExitSomeFailed, "line 1 (2023-11-14T22:13:20Z) to line 3 (2023-11-14T22:13:21.001Z)"},
		{plain + " --limit 2/s --unit ns", cli.ExitSomeFailed, "does not hold: 3 events within 1s"},
		{served + " --field checked_ns --limit 2/s", cli.ExitSomeFailed, "does not hold: 3 events within 1s"},
		{served + " --field checked_ns --limit 2/99ms", cli.ExitOK, "holds: 3 events"},
		{served + " --field checked_ns --limit 2/s --unit s", cli.ExitOK, "holds: 3 events"},
		{served + " --field checked --limit 2/s", cli.ExitConfig, `line 1: "50000000" is no Unix time since 1973, and its size does not show its unit: expected --unit s, ms`},
		{sent + " --field at --by upstream,key --amount weight --limit 100/10s", cli.ExitOK, "holds: 3 events with 170 weight; no window of 10s held more than 100 weight, of 100\nThe first window with so many ended at line 4 (2026-11-23T14:30:09Z), upstream,key \"market,A\""},
		{sent + " --field at --by upstream --amount weight --limit 100/10s", cli.ExitSomeFailed, "does not hold: more than 100 weight within 10s, of 100: line 1 (2026-11-23T14:30:00Z) to line 2 (2026-11-23T14:30:01Z), upstream \"market\"\nThe fullest window of all held 170 weight. "},
		{sent + " --field at --limit 4/10s", cli.ExitSomeFailed, "does not hold: 5 events within 10s, of 4"},
		{sent + " --field at --amount key --limit 4/10s", cli.ExitConfig, `line 1: key "A": expected a whole number from 0 to 17592186044416`},
		{sent + " --field at --amount orders --limit 4/10s", cli.ExitConfig, "no events that count"},
		{sent + " --field at --by upstream,account --limit 4/10s", cli.ExitConfig, `no field "account"`},
		{sent + " --field at --by key --totals --amount weight", cli.ExitOK, "key  events  weight\nA    3       100\nB    2       70\n"},
		{sent + " --field at --by key --totals --where upstream=market", cli.ExitOK, "key  events\nA    2\nB    2\n"},
		{sent + " --field at --by key --totals --limit 9/s -o json", cli.ExitOK, `"totals": [`},
		{sent + " --field at --by key --totals --limit 9/s --sort", cli.ExitOK, "key \"B\".\nkey  events\nA    3\n"},
		{sent + " --field at --by key --totals -o json", cli.ExitOK, `"key": "A",`},
		{lines + " --field at --by n --totals --since 2026-11-23T14:30:00.5Z", cli.ExitOK, "n  events\n1  1\n"},
		{sent + " --field at --totals", cli.ExitUsage, "--totals is of the combinations of --by"},
		{weights + " --column at --unit s --amount weight --limit 6/s", cli.ExitSomeFailed, "more than 6 weight within 1s, of 6: line 2 (1970-01-01T00:00:01Z) to line 3 "},
		{weights + " --column at --unit s --amount weight --limit 7/s", cli.ExitOK, "holds: 2 events with 7 weight"},
		{plain + " --limit 2/s --amount weight", cli.ExitUsage, "--amount is a column or a field"},
		{write(t, "empty.txt", "\n\n") + " --limit 1/s", cli.ExitConfig, "no events that count"},
		{plain, cli.ExitUsage, "--limit is missing"},
		{plain + " --limit 300", cli.ExitUsage, `--limit: "300" does not say per what time`},
		{plain + " --limit 1/s --by symbol", cli.ExitUsage, "--by is a column or a field"},
		{plain + " --limit 1/s --field a --column b", cli.ExitUsage, "expected one of them"},
		{plain + " --limit 1/s --unit h", cli.ExitUsage, `--unit "h": expected s, ms, us, ns`},
		{"--limit 1/s", cli.ExitUsage, "want one log of events, got 0"},
		{"gone.txt --limit 1/s", cli.ExitConfig, "gone.txt"},
		{t.TempDir() + " --limit 1/s", cli.ExitConfig, "is a folder"},
	} {
		code, out, errs := command(append([]string{"check-log"}, strings.Fields(c.args)...)...)
		if code != c.code || !strings.Contains(out+errs, c.want) {
			t.Errorf("%s: exit %d, want %d and %q in\n%s%s", c.args, code, c.code, c.want, out, errs)
		}
		if stated := code == cli.ExitOK || code == cli.ExitSomeFailed; stated != (out != "") || (code == cli.ExitOK) != (errs == "") {
			t.Errorf("%s: exit %d, %q on standard output and %q on standard error", c.args, code, out, errs)
		}
	}
}

func TestCheckLogOfStandardInput(t *testing.T) {
	t.Parallel()
	var out, errs strings.Builder
	args := []string{"check-log", "-", "--limit", "1/s", "--unit", "s"}
	code := execute(t.Context(), args, strings.NewReader("1\n2\n3.1\n"), &out, &errs)
	if code != cli.ExitSomeFailed || !strings.Contains(out.String(), "line 1 (1970-01-01T00:00:01Z) to line 2 ") {
		t.Errorf("exit %d, %s%s", code, out.String(), errs.String())
	}
}

// The JSON has what the text has, and control characters of a log reach no terminal.
func TestCheckLogJSON(t *testing.T) {
	t.Parallel()
	log := write(t, "orders.csv", "1,\x1b[2J\n1.25,\x1b[2J\n9,b\n")
	args := []string{"check-log", log, "--column", "1", "--by", "2", "--limit", "1/s", "--unit", "s"}
	code, out, errs := command(append(args, "-o", "json")...)
	var r checkLogReport
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != cli.ExitSomeFailed {
		t.Fatalf("exit %d, %v\n%s%s", code, err, out, errs)
	}
	if r.Holds || r.Events != 3 || r.Limit != 1 || r.Window != 1 || r.Fullest != 2 || r.At.Line != 2 || r.From.Line != 1 ||
		r.To.Line != 2 || r.To.At != "1970-01-01T00:00:01.25Z" || r.To.Key != "\x1b[2J" {
		t.Errorf("%s", out)
	}
	_, text, _ := command(args...)
	if strings.Contains(text+out, "\x1b") || !strings.Contains(text, "2 events within 1s, of 1: line 1 ") {
		t.Errorf("%q", text+out)
	}
}
