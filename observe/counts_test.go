package observe_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/observe"
)

func TestAmounts(t *testing.T) {
	var c limit.Cost
	for u := range c {
		c[u] = int64(u + 1)
	}
	if got := observe.StatsOf(0, &limit.Tally{Used: c}).Counts().Used.Cost(); got != c {
		t.Errorf("%v", got)
	}
}

// fill gives each number of a struct, and of those in it, another value: a multiple of by.
func fill(v reflect.Value, by int64, n int64) int64 {
	for _, field := range v.Fields() {
		switch f := field; f.Kind() {
		case reflect.Int, reflect.Int64:
			n++
			f.SetInt(by * n)
		case reflect.Array:
			for k := range f.Len() {
				n++
				f.Index(k).SetInt(by * n)
			}
		case reflect.Struct:
			if f.Type() != reflect.TypeFor[time.Time]() {
				n = fill(f, by, n)
			}
		}
	}
	return n
}

func filled[T any](by int64) (v T) {
	fill(reflect.ValueOf(&v).Elem(), by, 0)
	return v
}

// No field of Counts is left out of a sum.
func TestAddCounts(t *testing.T) {
	sum, more := filled[observe.Counts](3), filled[observe.Counts](4)
	observe.AddCounts(&sum, &more)
	if want := filled[observe.Counts](7); sum != want {
		t.Errorf("%+v, want %+v", sum, want)
	}
}

// Two Stats, subtracted, are what happened between: counts are the difference, Waiting and InFlight those of now.
func TestStatsSub(t *testing.T) {
	now := filled[observe.Stats](7)
	now.At = time.Unix(1000, 0)
	got, want := now.Sub(filled[observe.Stats](2)), filled[observe.Stats](5)
	want.At, want.Waiting, want.InFlight = now.At, now.Waiting, now.InFlight
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// Stats and Counts have the same fields, but for two names and what is waiting and in flight.
func TestStatsAndCounts(t *testing.T) {
	tally := filled[limit.Tally](2)
	s := observe.StatsOf(1, &tally)
	s.Never, s.Late, s.Full, s.Cancelled = -1, -2, -3, -4
	want := observe.Counts{
		Sent: 1, Accepted: 2, Limited: 4, Failed: 6, Unknown: 8, Unsent: 10, Never: -1, Late: -2, Full: -3,
		Cancelled: -4, Used: observe.Amounts{
			Requests: tally.Used[limit.Requests], Weight: tally.Used[limit.Weight], Orders: tally.Used[limit.Orders],
			Input: tally.Used[limit.Input], Output: tally.Used[limit.Output], Tokens: tally.Used[limit.Tokens],
			Money: tally.Used[limit.Money], Other: tally.Used[limit.Other],
		},
	}
	if got := s.Counts(); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
