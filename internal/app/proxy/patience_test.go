package proxy

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestPatience(t *testing.T) {
	for _, c := range []struct {
		most   time.Duration
		fields []string
		want   patience
	}{
		{time.Minute, nil, patience{most: time.Minute}},
		{-1, nil, patience{}},
		{time.Minute, []string{FieldMaxWait, "30"}, patience{30 * time.Second, 30 * time.Second, true}},
		{time.Minute, []string{FieldMaxWait, "1m30s"}, patience{time.Minute, 90 * time.Second, true}},
		{time.Minute, []string{FieldMaxWait, " 0.25 "}, patience{250 * time.Millisecond, 250 * time.Millisecond, true}},
		{time.Minute, []string{FieldMaxWait, "0"}, patience{0, 0, true}},
		{time.Minute, []string{FieldMaxWait, "1e999"}, patience{}},
		{time.Minute, []string{FieldMaxWait, "99999999999999999999999"}, patience{time.Minute, longest, true}},
		{time.Minute, []string{"X-Stainless-Timeout", "600"}, patience{time.Minute, 600 * time.Second, true}},
		{time.Minute, []string{"X-Stainless-Timeout", "not given"}, patience{most: time.Minute}},
		{time.Minute, []string{"X-Stainless-Timeout", "0"}, patience{most: time.Minute}},
		{time.Minute, []string{"X-Stainless-Read-Timeout", "5.5", FieldMaxWait, "10"}, patience{5500 * time.Millisecond, 5500 * time.Millisecond, true}},
		{time.Minute, []string{"Grpc-Timeout", "100m"}, patience{100 * time.Millisecond, 100 * time.Millisecond, true}},
		{time.Minute, []string{"Grpc-Timeout", "99999999H"}, patience{time.Minute, longest, true}},
		{time.Minute, []string{"Grpc-Timeout", "123456789S"}, patience{most: time.Minute}},
		{time.Minute, []string{"Grpc-Timeout", "5x"}, patience{most: time.Minute}},
		{time.Minute, []string{"Grpc-Timeout", "+5S"}, patience{most: time.Minute}},
	} {
		h := http.Header{}
		for i := 0; i < len(c.fields); i += 2 {
			h.Add(c.fields[i], c.fields[i+1])
		}
		got, err := patienceOf(h, c.most)
		if wrong := c.want == (patience{}) && c.most > 0; (err != nil) != wrong || err == nil && got != c.want {
			t.Errorf("%v %v: %+v, %v", c.most, c.fields, got, err)
		}
	}
	for _, s := range []string{"", "-1", "soon", "1m-30s", "NaN", "Inf", "0x10", "1_0", "1,5", "٣"} {
		if _, err := patienceOf(http.Header{FieldMaxWait: {s}}, time.Minute); err == nil {
			t.Errorf("%q is taken", s)
		}
	}
}

// No header has anybody wait for longer than the proxy lets them, or for less than no time.
func FuzzPatience(f *testing.F) {
	f.Add("30", "600", "5.5", "100m")
	f.Add("1m30s", "", "x", "99999999H")
	f.Add("1e400", "-5", ".", "H")
	f.Fuzz(func(t *testing.T, own, node, python, grpc string) {
		h := http.Header{FieldMaxWait: {own}, "X-Stainless-Timeout": {node}, "X-Stainless-Read-Timeout": {python}, "Grpc-Timeout": {grpc}}
		p, err := patienceOf(h, time.Minute)
		if err == nil && (p.most < 0 || p.most > time.Minute || p.own < 0 || p.own > longest || p.most > p.own || !p.stated) {
			t.Errorf("%+v", p)
		}
	})
}

// No path that, decoded, has a dotted segment in it is passed on.
func FuzzClimbs(f *testing.F) {
	for _, s := range []string{"/a/b", "/../x", "/a/..", "/..\\x", "..", ".", "/.", "/a/...", "", ".;", "..;x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, path string) {
		want, segment := false, ""
		for _, r := range path + "/" {
			if r != '/' && r != '\\' {
				segment += string(r)
				continue
			}
			want = want || segment == "." || segment == ".."
			segment = ""
		}
		other := strings.ContainsFunc(path, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(";?#", r) })
		if got := climbs(path); got != want && !(got && other) { // what some servers read otherwise may be refused, too
			t.Errorf("%q: %v", path, got)
		}
	})
}

// A client sees a 429 of the server only when its own patience, or --max-wait, is over. The server
// says no time, so the waits between the tries grow: with the least jitter eight of them are over
// before 15 s, and the ninth lasts up to 25.6 s.
func TestAServersRefusalIsWaitedFor(t *testing.T) {
	for _, c := range []struct {
		until            time.Duration // how long the server refuses
		field            string        // Paceline-Max-Wait
		status           int
		earliest, latest time.Duration
	}{
		{15 * time.Second, "", 200, 15 * time.Second, 41 * time.Second},
		{time.Hour, "", 429, 30 * time.Second, time.Minute},
		{time.Hour, "5", 429, 1500 * time.Millisecond, 5 * time.Second},
		{time.Hour, "0", 429, 0, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			began, tries := time.Now(), 0
			x := virtual(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				tries++
				if body, _ := io.ReadAll(r.Body); string(body) != "a body" {
					t.Errorf("try %d has the body %q", tries, body)
				}
				if time.Since(began) < c.until {
					w.WriteHeader(http.StatusTooManyRequests)
				}
			}), to(mustURL(t, "http://up.test"), "100/s"))
			fields := []string{}
			if c.field != "" {
				fields = []string{FieldMaxWait, c.field}
			}
			resp, _ := x.do("POST", "/x", "a body", fields...)
			if took := time.Since(began); resp.StatusCode != c.status || took < c.earliest || took > c.latest || tries > 12 {
				t.Errorf("%+v: %d after %v and %d tries", c, resp.StatusCode, took, tries)
			}
		})
	}
}
