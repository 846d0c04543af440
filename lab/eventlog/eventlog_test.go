package eventlog_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/lab/eventlog"
)

func read(text string, f eventlog.Format) (events []eventlog.Event, err error) {
	err = eventlog.Read(strings.NewReader(text), f, func(e eventlog.Event) error {
		events = append(events, e)
		return nil
	})
	return events, err
}

func TestInstants(t *testing.T) {
	at := time.Date(2026, 11, 23, 14, 30, 0, 123_456_789, time.UTC)
	for text, want := range map[string]int64{
		"2026-11-23T14:30:00.123456789Z": at.UnixNano(), "2026-11-23T15:30:00.123456789+01:00": at.UnixNano(),
		"1795444200.123456789": at.UnixNano(), "1795444200123.456789": at.UnixNano(), "1795444200123456.789": at.UnixNano(),
		"1795444200123456789": at.UnixNano(), "1795444200.1234567899": at.UnixNano(), "0": 0, "-1.5": -1_500_000_000, "+2": 2e9,
		"  7\t": 7e9, "\ufeff7": 7e9, "99999999999": 0, "100000000000": 1e17, "100000000000000": 1e17, "100000000000000000": 1e17,
	} {
		var f eventlog.Format
		if len(text) <= len("\ufeff7") { // too small to show its unit
			f.Unit = "s"
		}
		got, err := read(text, f)
		if text == "99999999999" { // the largest number of seconds is after 2262
			if err == nil || !strings.Contains(err.Error(), "s of Unix time is not from 1678 to 2262") {
				t.Errorf("%s: %v, %v", text, got, err)
			}
			continue
		}
		if err != nil || len(got) != 1 || got[0].At != want {
			t.Errorf("%s: %v, %v; want %d", text, got, err, want)
		}
	}
	for name, want := range map[string]int64{"at_ns": 5, "at_us": 5e3, "at_ms": 5e6} {
		for _, f := range []eventlog.Format{{Field: name}, {Column: name}} {
			text := `{"` + name + `":5}`
			if f.Column != "" {
				text = name + "\n5\n"
			}
			if got, err := read(text, f); err != nil || got[0].At != want {
				t.Errorf("%s: %v, %v, want %d", name, got, err, want)
			}
			f.Unit = "s" // goes before the name
			if got, err := read(text, f); err != nil || got[0].At != 5e9 {
				t.Errorf("%s in seconds: %v, %v", name, got, err)
			}
		}
	}
	got, err := read("1700000000", eventlog.Format{Unit: "us"})
	if err != nil || got[0].At != 1_700_000_000_000 {
		t.Errorf("in microseconds: %v, %v", got, err)
	}
}

// An error names the line and what was expected.
func TestBadLines(t *testing.T) {
	csv, fields := eventlog.Format{Column: "time", Unit: "s"}, eventlog.Format{Field: "at", By: []string{"id"}, Unit: "s"}
	for _, c := range []struct {
		text   string
		format eventlog.Format
		want   string
	}{
		{"1700000000\n\nx\n", eventlog.Format{}, `line 3: "x" is no instant: want RFC 3339 such as`},
		{"1.", eventlog.Format{}, "line 1: "}, {".5", eventlog.Format{}, "line 1: "}, {"1.2.3", eventlog.Format{}, "line 1: "},
		{"-", eventlog.Format{}, "line 1: "}, {"+-1", eventlog.Format{}, "line 1: "}, {"1e9", eventlog.Format{}, "line 1: "},
		{"99999999", eventlog.Format{Column: "1"}, `"99999999" is no Unix time since 1973`},
		{"2026-11-23", eventlog.Format{}, `line 1: "2026-11-23" is no instant`},
		{"2300-01-01T00:00:00Z", eventlog.Format{}, "is not from 1678 to 2262"},
		{"1677-01-01T00:00:00Z", eventlog.Format{}, "is not from 1678 to 2262"},
		{"99999999999999999999999999", eventlog.Format{}, "is not from 1678 to 2262"},
		{"1700000000\n1700000000000\n", eventlog.Format{}, "line 2: \"1700000000000\" has the size of Unix time in ms, and earlier numbers that in s"},
		{"1\n" + strings.Repeat("9", 2<<20), eventlog.Format{Unit: "s"}, "line 2: longer than 1 MiB"},
		{strings.Repeat("x", 1000), eventlog.Format{}, `xxx"…`},
		{"at,b\n1,2\n", csv, `line 1: no column "time": expected one of "at", "b"`},
		{"1,2\n", eventlog.Format{Column: "0"}, `no column "0": expected one of "1", "2", or a number from 1`},
		{"a,time\n1,2\n3\n", csv, "line 3: 1 columns: expected 2 or more"},
		{"time\n1\n\"a\nb\"\n", csv, `line 3: "a\nb" is no instant`},
		{"time\n1\n\"2\n", csv, "line 3: no CSV"},
		{`{"at":1,"id":2}` + "\n" + `{"at":1}`, fields, `line 2: no field "id": expected one of "at"`},
		{`[1]`, fields, `line 1: "[1]" is no JSON object: expected one per line`}, {"null", fields, "is no JSON object"},
		{`{"at":null,"id":1}`, fields, `line 1: "null" is no instant`},
		{`{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1}`, fields, `"g", "h", …`},
	} {
		if _, err := read(c.text, c.format); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.40q: %v, want an error with %q", c.text, err, c.want)
		}
	}
	broken := errors.New("broken")
	for _, f := range []eventlog.Format{{Unit: "s"}, {Column: "1", Unit: "s"}} {
		r := io.MultiReader(strings.NewReader("1\n2\n"), readerOf{broken})
		if err := eventlog.Read(r, f, func(eventlog.Event) error { return nil }); !errors.Is(err, broken) {
			t.Errorf("%+v: %v, want the error of the reader", f, err)
		}
		if err := eventlog.Read(strings.NewReader("1\n2\n"), f, func(eventlog.Event) error { return broken }); err != broken {
			t.Errorf("%+v: %v, want the error of the function alone", f, err)
		}
	}
}

type readerOf struct{ err error }

func (r readerOf) Read([]byte) (int, error) { return 0, r.err }

func TestFormats(t *testing.T) {
	want := []eventlog.Event{{Line: 2, At: 1e9, Key: "a", Amount: 1}, {Line: 4, At: 2e9, Key: "b", Amount: 1}}
	for text, format := range map[string]eventlog.Format{
		"k,t\na,1\n\nb,2\n":     {Column: "t", By: []string{"k"}},
		"\nx,1,a\n\nx,2,b,c\n":  {Column: "2", By: []string{"3"}},
		"k,t\r\na,1\r\n\r\nb,2": {Column: "2", By: []string{"k"}},
		"\n" + `{"t":1,"k":"a"}` + "\n \n" + `{"k":"b","t":"2","z":[{}]}`: {Field: "t", By: []string{"k"}},
	} {
		format.Unit = "s"
		if got, err := read(text, format); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	// A cell that looks like the number of another column does not make its line a header.
	if got, err := read("2,1700000000\n", eventlog.Format{Column: "2"}); err != nil || len(got) != 1 || got[0].At != 17e17 {
		t.Errorf("%v, %v", got, err)
	}
}

// The verdict of random logs is that of the definition: the most events of one key in any closed
// window, counted one by one.
func TestCheckIsTheDefinition(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 4))
		limit, span, keys := 1+random.Int64N(6), 1+random.Int64N(40), 1+random.IntN(3)
		c, err := eventlog.NewCheck(limit, time.Duration(span))
		if err != nil {
			t.Fatal(err)
		}
		var events []eventlog.Event
		var want eventlog.Result
		at := int64(17e17)
		for line := range 100 {
			at += random.Int64N(12)
			e := eventlog.Event{Line: line, At: at, Key: fmt.Sprint(random.IntN(keys)), Amount: 1}
			if seed%2 == 0 { // events with amounts
				e.Amount = random.Int64N(4)
			}
			if err := c.Add(e); err != nil {
				t.Fatal(err)
			}
			if e.Amount == 0 {
				continue
			}
			events = append(events, e)
			held, from := int64(0), e
			for _, before := range slices.Backward(events) {
				if before.Key == e.Key && before.At >= at-span {
					if held <= limit { // the shortest way to more than the limit
						from = before
					}
					held += before.Amount
				}
			}
			if held > want.Fullest {
				want.Fullest, want.FullestAt = held, e
			}
			if held > limit && want.Breach == nil {
				want.Breach = &[2]eventlog.Event{from, e}
			}
		}
		got, err := c.Result()
		if err != nil || got.Events != len(events) || got.Fullest != want.Fullest || got.FullestAt != want.FullestAt ||
			fmt.Sprint(got.Breach) != fmt.Sprint(want.Breach) {
			t.Fatalf("seed %d: %d in %d: %+v, %v; want %+v", seed, limit, span, got, err, want)
		}
	}
}

// Keys that come and go are forgotten, and nothing is lost by it.
func TestCheckForgetsKeys(t *testing.T) {
	c, err := eventlog.NewCheck(1, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	const n = 50_000
	for i := range n {
		for _, key := range []string{fmt.Sprint(i), fmt.Sprint("again", i%10_001)} {
			if err := c.Add(eventlog.Event{Line: i, At: int64(i), Key: key, Amount: 1}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if r, err := c.Result(); err != nil || r.Fullest != 1 || r.Breach != nil || r.Events != 2*n {
		t.Errorf("%+v, %v: a key comes again after 10,001 ns", r, err)
	}
	if err := c.Add(eventlog.Event{Line: n, At: n, Key: fmt.Sprint("again", (n-10_000)%10_001), Amount: 1}); err != nil {
		t.Fatal(err)
	}
	if r, _ := c.Result(); r.Breach == nil || r.Breach[0].Line != n-10_000 || r.Breach[1].Line != n {
		t.Errorf("%+v: a key comes again after 10,000 ns", r.Breach)
	}
}

// A key whose last event is exactly as old as the window is not forgotten.
func TestCheckKeepsTheEdge(t *testing.T) {
	c, err := eventlog.NewCheck(1, 100)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5000 { // so many keys that some are forgotten
		at := int64(i / 2500 * 100)
		if err := c.Add(eventlog.Event{Line: i + 1, At: at, Key: fmt.Sprint(i), Amount: 1}); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Add(eventlog.Event{Line: 5001, At: 100, Key: "7", Amount: 1}); err != nil {
		t.Fatal(err)
	}
	if r, _ := c.Result(); r.Breach == nil || r.Breach[0].Line != 8 || r.Fullest != 2 {
		t.Errorf("%+v: key 7 had events at 0 and at 100", r)
	}
}

func TestCheckRefuses(t *testing.T) {
	for _, c := range []struct {
		limit int64
		span  time.Duration
	}{{0, 1}, {1, 0}} {
		if got, err := eventlog.NewCheck(c.limit, c.span); err == nil || got != nil {
			t.Errorf("%+v: %v, %v", c, got, err)
		}
	}
	c, err := eventlog.NewCheck(1, 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Result(); err == nil {
		t.Error("a log without events is proven")
	}
	for _, e := range []struct {
		at   int64
		want string
	}{{-1 << 62, ""}, {-1<<62 - 1, "line 3: "}, {-1 << 61, "is not within 73 years"}, {-1<<61 - 1, ""}} {
		if err := c.Add(eventlog.Event{Line: 3, At: e.at, Amount: 1}); (err == nil) != (e.want == "") || err != nil && !strings.Contains(err.Error(), e.want) {
			t.Errorf("at %d: %v, want %q", e.at, err, e.want)
		}
	}
}

// FuzzRead: whatever a log holds, it is read or an error names its line, the same each time. What was read is
// read again from a plain log of it.
func FuzzRead(f *testing.F) {
	for _, s := range []string{"1\n2\n", "2026-11-23T14:30:00.1Z\n", "t,k\n1,a\n", `{"t":1,"k":"x"}`, "1700000000000\n\n-5.25\n", "\"1\",\"a\nb\"\n\"", "\ufeff1,2,3\n"} {
		for kind := range uint8(6) {
			f.Add([]byte(s), kind)
		}
	}
	f.Fuzz(func(t *testing.T, log []byte, kind uint8) {
		format := []eventlog.Format{
			{}, {Unit: "ms"}, {Column: "1", By: []string{"2"}}, {Column: "t", By: []string{"k"}}, {Field: "t", By: []string{"k"}}, {Field: "t", Unit: "ns"},
		}[kind%6]
		lines := bytes.Count(log, []byte("\n")) + 1
		var plain strings.Builder
		var events []eventlog.Event
		err := eventlog.Read(bytes.NewReader(log), format, func(e eventlog.Event) error {
			if e.Line < 1 || e.Line > lines || len(events) > 0 && e.Line <= events[len(events)-1].Line {
				t.Fatalf("line %d of %d, after %v", e.Line, lines, events)
			}
			events = append(events, e)
			fmt.Fprintln(&plain, eventlog.Instant(e.At))
			return nil
		})
		if err != nil {
			var line int
			if n, _ := fmt.Sscanf(err.Error(), "line %d:", &line); n != 1 || line < 1 || line > lines {
				t.Fatalf("of %d lines: %v", lines, err)
			}
		}
		again, err := read(plain.String(), eventlog.Format{})
		if err != nil || len(again) != len(events) {
			t.Fatalf("%d events, then %d: %v", len(events), len(again), err)
		}
		for i, e := range again {
			if e.At != events[i].At {
				t.Fatalf("%s is read as %d, then as %d", eventlog.Instant(e.At), events[i].At, e.At)
			}
		}
	})
}

// BenchmarkCheck reads and checks a log in memory: 300 events a second.
func BenchmarkCheck(b *testing.B) {
	var plain, fields bytes.Buffer
	for i := range int64(100_000) {
		at := eventlog.Instant(17e17 + i*3_400_000)
		fmt.Fprintln(&plain, at)
		fmt.Fprintf(&fields, `{"id":%d,"at":%q,"symbol":"S%d"}`+"\n", i, at, i%50)
	}
	for name, c := range map[string]struct {
		log    []byte
		format eventlog.Format
	}{"lines": {plain.Bytes(), eventlog.Format{}}, "JSON with keys": {fields.Bytes(), eventlog.Format{Field: "at", By: []string{"symbol"}}}} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(c.log)))
			for b.Loop() {
				check, err := eventlog.NewCheck(300, time.Second)
				if err == nil {
					err = eventlog.Read(bytes.NewReader(c.log), c.format, check.Add)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100_000, "ns/event")
		})
	}
}
