package run

import (
	"math"
	"net/http"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/tally"
	"github.com/paceline-go/paceline/limit"
)

// The ceiling, the rate below it and the percentage agree, whatever the unit of the limit that
// binds. Before, 51.0/s were 12.2 % of 8.03/s: the percentage counted the bucket that was full at
// the start, and the ceiling did not.
func TestCeilingAgrees(t *testing.T) {
	minute := func(n int64, u limit.Unit, bucket bool) format.Rate {
		return format.Rate{N: n, Per: time.Minute, Unit: u, Bucket: bucket}
	}
	chat := limit.Cost{limit.Requests: 1, limit.Input: 12, limit.Output: 50, limit.Tokens: 62}
	for _, c := range []struct {
		name   string
		limits []format.Rate
		keys   int
		sends  int64
		took   time.Duration
		want   float64 // percent
		lasts  float64 // per second, in the long run
	}{
		// In 1 s of a bucket that holds 30,000: 30,500.
		{"tokens", []format.Rate{minute(500, limit.Requests, true), minute(30_000, limit.Tokens, true)}, 1, 51, time.Second, 100 * 51 * 62 / 30_500., 500. / 62},
		{"tokens, many requests", []format.Rate{minute(5000, limit.Requests, true), minute(30_000, limit.Tokens, true)}, 1, 60, time.Second, 100 * 60 * 62 / 30_500., 500. / 62},
		{"input", []format.Rate{minute(600, limit.Input, true)}, 1, 30, 2 * time.Second, 100 * 30 * 12 / 620., 10. / 12},
		{"output", []format.Rate{minute(6000, limit.Output, true)}, 2, 100, time.Minute, 100 * 100 * 50 / 24_000., 4},
		{"requests", []format.Rate{minute(60, limit.Requests, true)}, 1, 119, time.Minute, 100 * 119 / 120., 1},
		{"requests of two keys", []format.Rate{minute(60, limit.Requests, false)}, 2, 100, 2 * time.Minute, 100 * 100 / 360., 2},
		{"a second", []format.Rate{{N: 10, Per: time.Second}}, 1, 100, 10 * time.Second, 100 * 100 / 110., 10},
	} {
		r, err := New(Config{Limits: c.limits, Keys: []format.Key{{Name: "A", Secret: "aaaaaaaa"}, {Name: "B", Secret: "bbbbbbbb"}}[:c.keys]})
		if err != nil {
			t.Fatal(err)
		}
		r.tally.Totals.Sends = int(c.sends)
		if err := r.divide(); err != nil {
			t.Fatal(err)
		}
		tally.Add(&r.tally.Uses[0].Spent, chat, c.sends)
		rate := float64(c.sends) / c.took.Seconds()
		ceiling, percent := r.gauge.ceiling(c.took, false), r.gauge.percent(c.took, false)
		if math.Abs(percent-c.want) > 1e-6 || math.Abs(100*rate/ceiling-percent) > 1e-6 {
			t.Errorf("%s: %v %%, expected %v, of %v/s; %v/s is %v %% of that", c.name, percent, c.want, ceiling, rate, 100*rate/ceiling)
		}
		if got := r.gauge.ceiling(0, false); math.Abs(got-c.lasts) > 1e-9 {
			t.Errorf("%s: %v/s in the long run, expected %v", c.name, got, c.lasts)
		}
	}
}

// The figures of a run at its end, in total and for each key.
func TestFiguresOfARun(t *testing.T) {
	srv, _ := counting(t, func(w http.ResponseWriter, q *http.Request) { time.Sleep(30 * time.Millisecond) })
	b := newBench(t)
	b.config.Keys = []format.Key{{Name: "A", Secret: "aaaaaaaa"}, {Name: "B", Secret: "bbbbbbbb"}}
	b.config.Limits = []format.Rate{{N: 1000, Per: time.Second, Text: "1000/s"}}
	b.config.NonceUnit = time.Millisecond
	var err error
	if b.config.Query, err = format.ParseQuery([]string{"nonce={nonce}"}); err != nil {
		t.Fatal(err)
	}
	got := b.run(requests(20, srv.URL)...)
	if got.err != nil || got.Done != 20 || len(got.Keys) != 2 || got.Latency == nil {
		t.Fatalf("%+v, %v", got.Totals, got.err)
	}
	if !got.AtOnce {
		t.Errorf("20 requests of two keys with 1000/s each: the limits do not let them go at once")
	}
	if l := got.Latency; l.Mean < 30 || l.P50 < 29.8 || l.P99 < l.P50 || l.P99 > 2000 {
		t.Errorf("%+v", l)
	}
	if got.Percent < 60 || got.Percent > 100.01 || got.Ceiling > 2*1000/30+1 {
		t.Errorf("%v %% of %v/s, of 2 keys with one request of 30 ms in flight each", got.Percent, got.Ceiling)
	}
	for _, k := range got.Keys {
		if k.Sends < 5 || k.Done != k.Sends || k.Rejected != 0 || k.Percent < 60 || k.Percent > 100.01 || k.Latency.P50 < 29.8 {
			t.Errorf("%+v", k)
		}
	}
}
