package text_test

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/text"
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
		if got := text.Span(d); got != want {
			t.Errorf("%d ns: %q, want %q", d, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 150000000: "150,000,000", -999: "-999", -1000: "-1,000"} {
		if got := text.Thousands(n); got != want {
			t.Errorf("%d: %q", n, got)
		}
	}
}

// A small amount is never written as zero, so that no text says that $0.00 of $0.00 are spent.
func TestDollars(t *testing.T) {
	for usd, want := range map[float64]string{
		0: "$0.00", 12.5: "$12.50", 1234.567: "$1234.57", 0.1: "$0.10", 0.0999: "$0.0999", 0.05: "$0.0500", 0.0312: "$0.0312", 0.001: "$0.0010",
		0.0008: "$0.00080", 0.00012345: "$0.00012", 1e-9: "$0.0000000010", 1.25e-9: "$0.0000000013", 1e-300: "$0.000000000000",
	} {
		if got := text.Dollars(usd); got != want {
			t.Errorf("%v: %q, want %q", usd, got, want)
		}
	}
}

func TestWindow(t *testing.T) {
	for d, want := range map[time.Duration]string{time.Second: "second", time.Minute: "minute", time.Hour: "hour", 24 * time.Hour: "day", 10 * time.Second: "10 s"} {
		if got := text.Window(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}

// A date more than eleven months away could be of two years, and says which.
func TestDate(t *testing.T) {
	now := time.Date(2026, 11, 28, 8, 0, 0, 0, time.UTC)
	for days, want := range map[int]string{
		0: "Sat 28 Nov 08:00:00", 300: "Fri 24 Sep 08:00:00", 364: "Sat 27 Nov 2027 08:00:00", 4 * 365: "Wed 27 Nov 2030 08:00:00", -400: "Fri 24 Oct 2025 08:00:00",
	} {
		if got := text.Date(now.AddDate(0, 0, days), now); got != want {
			t.Errorf("%d days: %s, want %s", days, got, want)
		}
	}
}
