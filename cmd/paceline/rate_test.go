package main

import (
	"strings"
	"testing"
	"time"
)

func TestParseRate(t *testing.T) {
	for _, c := range []struct {
		text string
		n    int64
		per  time.Duration
	}{
		{"20/s", 20, time.Second}, {"500/m", 500, time.Minute}, {"4500/h", 4500, time.Hour}, {"100000/d", 100000, 24 * time.Hour},
		{"300/10s", 300, 10 * time.Second}, {"5/1.5s", 5, 1500 * time.Millisecond}, {"1/250ms", 1, 250 * time.Millisecond},
		{" 7 / 2d ", 7, 48 * time.Hour}, {"2/.5s", 2, 500 * time.Millisecond}, {"9/1h30m", 9, 90 * time.Minute},
	} {
		if n, per, err := parseRate(c.text); err != nil || n != c.n || per != c.per {
			t.Errorf("%q: %d per %v, %v; want %d per %v", c.text, n, per, err, c.n, c.per)
		}
	}
	for text, want := range map[string]string{
		"20":      `"20" does not say per what time`,
		"":        `"" does not say per what time`,
		"0/s":     `"0/s": "0" is not a whole number from 1 to`,
		"-3/s":    `"-3/s": "-3" is not a whole number`,
		"1.5/s":   `"1.5/s": "1.5" is not a whole number`,
		"/s":      `"/s": "" is not a whole number`,
		"20/":     `"20/": "" is not a time up to a year`,
		"20/x":    `"20/x": "x" is not a time up to a year`,
		"20/0s":   `"20/0s": "0s" is not a time up to a year`,
		"20/-1s":  `"20/-1s": "-1s" is not a time up to a year`,
		"20/10":   `"20/10": "10" is not a time up to a year`,
		"1/400d":  `"1/400d": "400d" is not a time up to a year`,
		"1/NaNd":  `"1/NaNd": "NaNd" is not a time up to a year`,
		"1/s/s":   `"1/s/s": "s/s" is not a time up to a year`,
		"1/1e99d": `"1/1e99d": "1e99d" is not a time up to a year`,
	} {
		_, _, err := parseRate(text)
		if err == nil || !strings.HasPrefix(err.Error(), want) || !strings.HasSuffix(err.Error(), "expected "+rateForms) {
			t.Errorf("%q: %v, want %s …, expected %s", text, err, want, rateForms)
		}
	}
}

func TestByteSize(t *testing.T) {
	for text, want := range map[string]struct {
		size int64
		back string
	}{"1": {1, "1"}, "64KiB": {64 << 10, "64KiB"}, "16MiB": {16 << 20, "16MiB"}, "1 kB": {1000, "1000"}, "1GiB": {1 << 30, "1GiB"}} {
		var b byteSize
		if err := b.Set(text); err != nil || int64(b) != want.size || b.String() != want.back {
			t.Errorf("%q: %d, %s, %v", text, b, b.String(), err)
		}
	}
	for _, text := range []string{"", "0", "-1", "x", "1TB", "2GiB", "9999999999", "1.5MiB", "MiB"} {
		var b byteSize
		if err := b.Set(text); err == nil {
			t.Errorf("%q is %d", text, b)
		}
	}
}
