package spell_test

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/spell"
)

func TestWords(t *testing.T) {
	for d, want := range map[time.Duration]string{
		8 * time.Millisecond:              "8 ms",
		120 * time.Millisecond:            "120 ms",
		1:                                 "0.001 ms",
		999999999:                         "1000 ms",
		1559999999:                        "1.56 s",
		7660 * time.Millisecond:           "7.66 s",
		1140 * time.Millisecond:           "1.14 s",
		time.Minute:                       "1 min",
		179560 * time.Millisecond:         "2 min 59.6 s",
		time.Hour:                         "1 h",
		23*time.Hour + 47*time.Minute + 1: "23 h 48 min",
		24 * time.Hour:                    "1 day",
		48 * time.Hour:                    "2 days",
		411480 * time.Second:              "4 days 19 h",
		31 * 24 * time.Hour:               "31 days",
		59*time.Second + 999500*time.Microsecond + 1: "1 min",
		time.Hour - 1: "1 h",
	} {
		if got := spell.Span(d); got != want {
			t.Errorf("%d ns: %q, want %q", d, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 150000000: "150,000,000", -999: "-999", -1000: "-1,000"} {
		if got := spell.Thousands(n); got != want {
			t.Errorf("%d: %q", n, got)
		}
	}
}

func TestWindow(t *testing.T) {
	for d, want := range map[time.Duration]string{time.Second: "second", time.Minute: "minute", time.Hour: "hour", 24 * time.Hour: "day", 10 * time.Second: "10 s"} {
		if got := spell.Window(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}
