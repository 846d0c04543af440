package provider_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/corpus"
	"github.com/paceline-go/paceline/provider"
)

// FuzzRead: no response, however odd, makes a dialect panic or break the promises of an Observation. The fields come as
// "Name: value" lines.
func FuzzRead(f *testing.F) {
	for _, name := range provider.Names() {
		for _, s := range corpus.Load(f, "testdata", name) {
			var b strings.Builder
			for k, vs := range s.Response.Header {
				for _, v := range vs {
					b.WriteString(k + ": " + v + "\n")
				}
			}
			f.Add(s.Response.Status, b.String(), s.Response.Body, s.Now.Unix())
		}
	}
	f.Add(429, "Retry-After: 99999999999999999999\nDate: x", []byte("{"), int64(0))
	f.Add(429, "X-RateLimit-Reset: 1e400\nX-RateLimit-Limit: -0", []byte(`{"error":[]}`), int64(1)<<40)
	f.Add(200, "RateLimit-Limit: ,;,\nRateLimit: ;;;", []byte(nil), int64(-1)<<30)
	f.Fuzz(func(t *testing.T, status int, fields string, body []byte, unix int64) {
		if len(fields) > 8<<10 {
			fields = fields[:8<<10]
		}
		now := time.Unix(unix%(1<<38), 0) // to the year 10,680
		h := http.Header{}
		for line := range strings.SplitSeq(fields, "\n") {
			if name, value, ok := strings.Cut(line, ": "); ok {
				h.Add(name, value)
			}
		}
		r := provider.Response{Status: status, Header: h, Body: body}
		if provider.Detect(r) == nil {
			t.Fatal("no dialect")
		}
		for _, name := range provider.Names() {
			d, _ := provider.Lookup(name)
			check(t, name, now, d.Read(now, r))
		}
		unreadIsUnread(t, "", nth(uint8(status)), now, r)
	})
}

// FuzzValue puts one value into every field that any dialect knows, so that every parser of a dialect sees it.
func FuzzValue(f *testing.F) {
	fields := http.Header{}
	for _, name := range provider.Names() {
		for _, s := range corpus.Load(f, "testdata", name) {
			for k := range s.Response.Header {
				fields[k] = nil
			}
		}
	}
	for _, v := range []string{"100", "99.0", "64.57", "12ms", "23h47m36.648s", "1470173023.123", "1672738134824", "2025-08-21T12:40:59Z", "Thu, 15 Jan 2026 12:02:00 GMT", "32/40",
		`"default";r=50;t=30`, `"burst";q=100;w=60,"daily";q=1000;w=86400`, "limit=100, remaining=50, reset=5", "100;w=10", "0", "-1", "-0", "NaN", "+Inf", "1e18", "0x10", "1_000", "9223372036854775808", "1d2h3m", "1d", "d", "12µs", "1h-1m", "-5s",
		"2026-01-15T12:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "Thu, 01 Jan 1970 00:00:00 GMT", "-1/0", "/", "1.9999999999999999", ".5", "1.-5",
		`"a";r=9223372036854775807;t=-1;pk=::`, "limit=1, remaining=-2, reset=99999999999999", "10, 10;w=1;burst=-1", `a;q=1;w=0, "b";q=-1`, "(1 2);q=3", "?1", ":AA==:", "5.5", "\x00", "\xff"} {
		for i := range provider.Names() {
			f.Add(v, uint8(i))
		}
	}
	f.Fuzz(func(t *testing.T, v string, which uint8) {
		d := nth(which)
		h, value := http.Header{}, []string{v}
		for k := range fields {
			h[k] = value
		}
		h.Set("Content-Type", "application/json")
		for _, date := range []string{"", "Thu, 15 Jan 2026 11:00:00 GMT", v} {
			h.Set("Date", date)
			for _, status := range []int{200, 429} {
				check(t, d.Name(), noon, d.Read(noon, provider.Response{Status: status, Header: h}))
			}
		}
	})
}

// nth picks a dialect: one per input is faster than all.
func nth(which uint8) provider.Dialect {
	names := provider.Names()
	d, _ := provider.Lookup(names[int(which)%len(names)])
	return d
}

// FuzzBody gives a dialect a body, with a status that refuses and one that does not.
func FuzzBody(f *testing.F) {
	for i, name := range provider.Names() {
		for _, s := range corpus.Load(f, "testdata", name) {
			if len(s.Response.Body) > 0 {
				f.Add(s.Response.Body, uint8(i))
			}
		}
	}
	for _, s := range []string{"null", "[]", "[null]", `{"error":null}`, `{"error":[null]}`, `{"error":[""]}`, `{"error":["EService: Throttled: "]}`, `{"retry_after":-1}`, `{"retry_after":1e308}`,
		`{"extensions":{"cost":{"throttleStatus":{"maximumAvailable":1e300,"currentlyAvailable":-1,"restoreRate":1e-300}}}}`,
		`{"errors":[{"extensions":{"code":"THROTTLED"}}],"extensions":{"cost":{"requestedQueryCost":1e300,"throttleStatus":{"maximumAvailable":1,"restoreRate":1e-300}}}}`,
		`{"error":{"message":" on (TPM): Limit 99999999999999999999, Used 5, Requested ~. Please try again in -5s."}}`,
		`{"msg":"banned until 99999999999999999999"}`, `{"additional_data":{"retry_after":"-1"}}`, `{"code":5e20}`,
		`{"type":"x#quota-exceeded","violated-policies":["\u001b[2J"]}`} {
		for i := range provider.Names() {
			f.Add([]byte(s), uint8(i))
		}
	}
	json, problem := http.Header{"Content-Type": {"application/json"}}, http.Header{"Content-Type": {"application/problem+json"}}
	f.Fuzz(func(t *testing.T, body []byte, which uint8) {
		d := nth(which)
		for _, status := range []int{200, 400, 403, 418, 429, 503} {
			check(t, d.Name(), noon, d.Read(noon, provider.Response{Status: status, Header: json, Body: body}))
			check(t, d.Name(), noon, d.Read(noon, provider.Response{Status: status, Header: problem, Body: body}))
		}
	})
}
