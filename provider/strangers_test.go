package provider_test

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/corpus"
	"github.com/paceline-go/paceline/provider"
)

// testdata/strangers has answers of servers as others published them, with the required reading
// beside each. It was written from the documentation, without sight of the reader, by another
// author than the reader's. NAME.http is as in internal/testkit/corpus. NAME.want has a fact per
// line:
//
//	host: api.example.com            the host of the request
//	provider: Example                for people
//	limit: requests; 60; left 0; per 1m; reset 30s
//	                                 required. Units with | between them are as good as each other, - is a limit that the
//	                                 answer does not state, "left 699..700" a fraction
//	also: …                          the same, and allowed
//	rate: requests; 0.5/s            so much per time, however it is split
//	refusal: rate limited | none     one of them; without the line, the answer was no refusal
//	whom: key | route                the allowed scopes of the refusal; no scope is no fault
//	back: 29s 31s                    ComeBack has to return an instant in that span
//	back: maybe 1ms 1h               or nothing
//	back: never                      waiting does not help
//
// No reading of a set may lie further ahead than twice the longest span in it, and a minute. The
// sets in blind are a third, drawn at random from each kind of provider. The reader's author does
// not look at them, so neither does a run without -blind.
const strangers = "testdata/strangers"

var showBlind = flag.Bool("blind", false, "name the blind sets of testdata/strangers too: not for who writes the reader")

// Grades of a reading, best first.
const (
	right   = "right"
	part    = "in part" // something is missing, and nothing is false
	nothing = "nothing"
	wrong   = "WRONG" // a client would wait twice and a minute too long, send early, give up, or miss a ban or a bill
)

func TestStrangers(t *testing.T) {
	all, blind := map[string]int{}, map[string]int{}
	for _, path := range strangerSets(t) {
		s := corpus.File(t, path)
		if s.Source == "" {
			t.Errorf("%s does not name its source", path)
		}
		w := readWanted(t, strings.TrimSuffix(path, ".http")+".want")
		o := throughTheDoor(w.host, s)
		check(t, "a stranger", s.Now, o)
		grade, why := w.judge(s.Now, o)
		all[grade]++
		hidden := filepath.Base(filepath.Dir(path)) == "blind"
		if hidden {
			blind[grade]++
		}
		if !hidden || *showBlind {
			t.Logf("%-8s %-28s %-24s as %-16s %s", grade, strings.TrimSuffix(filepath.Base(path), ".http"), w.provider, o.Dialect, strings.Join(why, "; "))
		}
	}
	for _, g := range []struct {
		name string
		of   map[string]int
		most int
	}{{"all", all, 180}, {"blind", blind, 60}} {
		n := g.of[right] + g.of[part] + g.of[nothing] + g.of[wrong]
		t.Logf("%s: %d sets: %d right, %d in part, %d nothing, %d wrong", g.name, n, g.of[right], g.of[part], g.of[nothing], g.of[wrong])
		if n < g.most {
			t.Errorf("%s: %d sets: some were lost", g.name, n)
		}
		if 100*g.of[right] < 95*n || g.of[wrong] > 0 {
			t.Errorf("%s: %d of %d right, %d wrong; want 95 %% right and none wrong", g.name, g.of[right], n, g.of[wrong])
		}
	}
}

func strangerSets(t *testing.T) []string {
	t.Helper()
	var paths []string
	for _, dir := range []string{strangers, strangers + "/blind"} {
		found, err := filepath.Glob(dir + "/*.http")
		if err != nil {
			t.Fatal(err)
		}
		wants, err := filepath.Glob(dir + "/*.want")
		if err != nil || len(wants) != len(found) {
			t.Fatalf("%s: %d answers and %d expectations, %v", dir, len(found), len(wants), err)
		}
		paths = append(paths, found...)
	}
	return paths
}

// throughTheDoor reads an answer as a transport does: by host, and the body of one that was served only where the dialect
// asks for it.
func throughTheDoor(host string, s corpus.Saved) provider.Observation {
	d, ok := provider.ForHost(host)
	if !ok {
		d = provider.Detect(s.Response)
	}
	r := s.Response
	if r.Status < 300 && !provider.InBody(d) {
		r.Body = nil
	}
	return d.Read(s.Now, r)
}

func readWanted(t *testing.T, path string) wanted {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var w wanted
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if err := w.add(lines.Text()); err != nil {
			t.Fatalf("%s: %q: %v", path, lines.Text(), err)
		}
	}
	if len(w.refusals) == 0 {
		w.refusals = []provider.Refusal{provider.None}
	}
	if w.host == "" || !w.never && w.to == 0 {
		t.Fatalf("%s says too little: %+v", path, w)
	}
	return w
}

func (w *wanted) add(line string) error {
	name, value, _ := strings.Cut(line, ": ")
	var err error
	var f fact
	switch name {
	case "host":
		w.host = value
	case "provider":
		w.provider = value
	case "limit":
		f, err = readFact(value)
		w.must = append(w.must, f)
	case "also":
		f, err = readFact(value)
		w.may = append(w.may, f)
	case "rate":
		f, err = readRate(value)
		w.rates = append(w.rates, f)
	case "refusal":
		for v := range strings.SplitSeq(value, " | ") {
			r := provider.Refusal(strings.TrimPrefix(v, "none"))
			if r != provider.None && !slices.Contains(provider.Refusals(), r) {
				return fmt.Errorf("no refusal %q", v)
			}
			w.refusals = append(w.refusals, r)
		}
	case "whom":
		for v := range strings.SplitSeq(value, " | ") {
			s := provider.Scope(v)
			if !slices.Contains([]provider.Scope{provider.Key, provider.IP, provider.Model, provider.Route, provider.All}, s) {
				return fmt.Errorf("no scope %q", v)
			}
			w.whom = append(w.whom, s)
		}
	case "back":
		return w.addBack(value)
	default:
		return fmt.Errorf("no such fact")
	}
	return err
}

func (w *wanted) addBack(value string) (err error) {
	if w.never = value == "never"; w.never {
		return nil
	}
	value, maybe := strings.CutPrefix(value, "maybe ")
	from, to, _ := strings.Cut(value, " ")
	w.said = !maybe
	if w.from, err = time.ParseDuration(from); err != nil {
		return err
	}
	w.to, err = time.ParseDuration(to)
	return err
}

var units = []provider.Unit{provider.Requests, provider.Weight, provider.Orders, provider.Input, provider.Output, provider.Tokens, provider.Money, provider.Bytes, provider.Concurrent, provider.Other}

func readFact(value string) (f fact, err error) {
	fields := strings.Split(value, "; ")
	for v := range strings.SplitSeq(fields[0], " | ") {
		u := provider.Unit(v)
		if !slices.Contains(units, u) {
			return f, fmt.Errorf("no unit %q", v)
		}
		f.units = append(f.units, u)
	}
	if len(fields) < 2 {
		return f, fmt.Errorf("no limit")
	}
	if fields[1] != "-" {
		f.limit, err = readCount(fields[1])
	}
	for _, field := range fields[2:] {
		if err != nil {
			return f, err
		}
		word, v, _ := strings.Cut(field, " ")
		switch word {
		case "left":
			low, high, isRange := strings.Cut(v, "..")
			f.left[0], err = readCount(low)
			f.left[1] = f.left[0]
			if isRange && err == nil {
				f.left[1], err = readCount(high)
			}
		case "per":
			f.per, err = time.ParseDuration(v)
		case "reset":
			f.reset, err = time.ParseDuration(v)
		case "used":
			_, err = readCount(v)
		default:
			err = fmt.Errorf("no such field")
		}
	}
	return f, err
}

// readRate has a fraction per second as a count per ten thousand seconds.
func readRate(value string) (f fact, err error) {
	unit, rate, _ := strings.Cut(value, "; ")
	perSecond, err := strconv.ParseFloat(strings.TrimSuffix(rate, "/s"), 64)
	f.units, f.per = []provider.Unit{provider.Unit(unit)}, 10_000*time.Second
	f.limit = provider.Count{N: int64(perSecond*10_000 + 0.5), OK: true}
	return f, err
}

func readCount(s string) (provider.Count, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	return provider.Count{N: n, OK: err == nil}, err
}
